-- Each worker's totals over the whole run. A worker that came back after a split or merge counts
-- together with its earlier self; busy_share is of the time that the worker was there.
WITH lives AS (
  SELECT worker_id, cp_degree, epoch,
         max(requests) AS requests,
         max(input_tokens) AS input_tokens,
         max(cached_tokens) AS cached_tokens,
         max(queue_peak) AS queue_peak,
         max(busy_s) AS busy_s,
         max(t_ns) / 1e9 - any_value(since_s) AS there_s
  FROM workers
  WHERE run_id = $run_id
  GROUP BY worker_id, cp_degree, epoch
)
SELECT worker_id, cp_degree,
       CAST(sum(requests) AS BIGINT) AS requests,
       CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
       CAST(sum(cached_tokens) AS BIGINT) AS cached_tokens,
       max(queue_peak) AS queue_peak,
       sum(busy_s) AS busy_s,
       sum(there_s) AS there_s,
       sum(busy_s) / nullif(sum(there_s), 0) AS busy_share
FROM lives
GROUP BY worker_id, cp_degree
ORDER BY cp_degree, CAST(split_part(worker_id, 'x', 1) AS INTEGER)
