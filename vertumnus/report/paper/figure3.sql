-- Fig. 3: each hour of the day's arrivals. Long is above 32K tokens, as in sec. 2.3; hits are those of the pool, and
-- of an unlimited cache that all workers share.
SELECT runs.seed, CAST(floor(arrival_s / 3600) AS INTEGER) AS "hour",
       count(*) AS requests,
       avg(if(requests.input_tokens > 32768, 1, 0)) AS long_requests,
       sum(if(requests.input_tokens > 32768, requests.input_tokens, 0)) / sum(requests.input_tokens) AS long_tokens,
       sum(requests.cached_tokens) / sum(requests.input_tokens) AS hit_rate,
       sum(oracle_cached_tokens) / sum(requests.input_tokens) AS oracle_hit_rate
FROM requests JOIN runs USING (run_id)
WHERE requests.status = 'finished' AND arrival_s < 86400
GROUP BY ALL
ORDER BY runs.seed, "hour"
