-- Each worker's totals over the whole run, from its last sample; busy_share is of the run's clock.
SELECT worker_id, cp_degree,
       workers.requests,
       workers.input_tokens,
       workers.cached_tokens,
       queue_peak,
       busy_s,
       busy_s / nullif(sim_s, 0) AS busy_share
FROM workers JOIN runs USING (run_id)
WHERE run_id = $run_id
QUALIFY row_number() OVER (PARTITION BY worker_id ORDER BY t_ns DESC) = 1
ORDER BY cp_degree, CAST(split_part(worker_id, 'x', 1) AS INTEGER)
