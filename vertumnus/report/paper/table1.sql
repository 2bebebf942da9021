-- Table 1: every request of a run, whatever became of it; reuse is that of an unlimited cache that all share.
SELECT runs.workload, runs.seed,
       count(*) AS requests,
       avg(requests.input_tokens) AS input_mean,
       quantile_cont(requests.input_tokens, 0.99) AS input_p99,
       avg(requests.output_tokens) AS output_mean,
       quantile_cont(requests.output_tokens, 0.99) AS output_p99,
       sum(requests.oracle_cached_tokens) / sum(requests.input_tokens) AS reuse
FROM requests JOIN runs USING (run_id)
GROUP BY ALL
ORDER BY runs.workload, runs.seed
