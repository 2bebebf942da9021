-- One row: the run in numbers. Latencies are of finished requests after the warm-up, in seconds;
-- percentiles interpolate linearly; attainment and hit rate weigh requests by input tokens.
SELECT run_id, name, execution, status, verdict, reasons,
       requests, measured_requests, finished, failed, rejected, cancelled, interrupted,
       ttft_mean_s, ttft_p50_s, ttft_p90_s, ttft_p99_s,
       ttft_all_p50_s, ttft_all_p90_s, ttft_all_p99_s,
       ttft_bound_mean_s, ttft_bound_p90_s, ttft_over_bound,
       queue_mean_s, cache_wait_mean_s, prefill_mean_s, ext_mean_s, tpot_mean_s,
       slo_attainment, tpot_attainment, hit_rate, oracle_hit_rate,
       requests_per_s, input_tokens_per_s, served_requests_per_s, served_input_tokens_per_s, served_s,
       send_lag_p99_s,
       model, hardware, composition, policy, controller, workload, seed, offered_requests_per_s,
       planned_requests, never_arrived, skipped_rows, wall_s, sim_s, sim_requests_per_s,
       others_cpu_share, CAST(config->>'$.arrival.patience_s' AS DOUBLE) AS patience_s
FROM runs
WHERE run_id = $run_id
