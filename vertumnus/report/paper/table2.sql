-- Table 2: the TTFT target of each range of lengths; attained is what met it in the run, attainable what would
-- have on an idle pool at the best degree with an unlimited cache. Both weigh requests by input tokens.
SELECT runs.model, runs.workload, runs.seed, length_bucket,
       min(requests.input_tokens) AS shortest,
       min(slo_ttft_s) AS target_s,
       sum(if(slo_met, requests.input_tokens, 0)) / sum(requests.input_tokens) AS attained,
       sum(if(ttft_bound_s <= slo_ttft_s, requests.input_tokens, 0)) / sum(requests.input_tokens) AS attainable,
       sum(requests.input_tokens) AS tokens
FROM requests JOIN runs USING (run_id)
WHERE measured AND slo_ttft_s IS NOT NULL
GROUP BY ALL
ORDER BY runs.model, runs.workload, shortest, runs.seed
