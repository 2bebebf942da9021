-- Where the TTFT goes: means over finished requests after the warm-up, in seconds, by input length.
-- ttft = queue + cache wait + prefill + ext, for every request and so for the means; ttft_bound is what
-- the same requests would take alone, each at its best degree with an unlimited shared cache.
SELECT coalesce(length_bucket, 'all') AS length_bucket,
       count(*) AS requests,
       avg(queue_s) AS queue_s,
       avg(cache_wait_s) AS cache_wait_s,
       avg(prefill_s) AS prefill_s,
       avg(ext_s) AS ext_s,
       avg(ttft_s) AS ttft_s,
       avg(ttft_bound_s) AS ttft_bound_s
FROM requests
WHERE run_id = $run_id AND measured AND status = 'finished'
GROUP BY GROUPING SETS ((length_bucket), ())
ORDER BY grouping(length_bucket), min(input_tokens)
