-- A row a run with the names of the result file of vLLM's serving benchmark, which counts milliseconds. Of the
-- requests after the warm-up; duration goes to the last end. Gaps between single tokens are not recorded: no itl.
SELECT run_id,
       any_value(runs.offered_requests_per_s) AS request_rate,
       any_value(runs.measured_s) AS duration,
       count(*) FILTER (done) AS completed,
       count(*) FILTER (NOT done) AS failed,
       CAST(sum(r.input_tokens) FILTER (done) AS BIGINT) AS total_input_tokens,
       CAST(sum(r.output_tokens) FILTER (done) AS BIGINT) AS total_output_tokens,
       completed / duration AS request_throughput,
       total_output_tokens / duration AS output_throughput,
       (total_input_tokens + total_output_tokens) / duration AS total_token_throughput,
       count(*) FILTER (done AND slo_met) / duration AS request_goodput,
       1e3 * avg(ttft_s) FILTER (done) AS mean_ttft_ms,
       1e3 * median(ttft_s) FILTER (done) AS median_ttft_ms,
       1e3 * stddev_pop(ttft_s) FILTER (done) AS std_ttft_ms,
       1e3 * quantile_cont(ttft_s, 0.9) FILTER (done) AS p90_ttft_ms,
       1e3 * quantile_cont(ttft_s, 0.99) FILTER (done) AS p99_ttft_ms,
       1e3 * avg(tpot_s) FILTER (done) AS mean_tpot_ms,
       1e3 * median(tpot_s) FILTER (done) AS median_tpot_ms,
       1e3 * stddev_pop(tpot_s) FILTER (done) AS std_tpot_ms,
       1e3 * quantile_cont(tpot_s, 0.9) FILTER (done) AS p90_tpot_ms,
       1e3 * quantile_cont(tpot_s, 0.99) FILTER (done) AS p99_tpot_ms,
       1e3 * avg(e2e_s) FILTER (done) AS mean_e2el_ms,
       1e3 * median(e2e_s) FILTER (done) AS median_e2el_ms,
       1e3 * stddev_pop(e2e_s) FILTER (done) AS std_e2el_ms,
       1e3 * quantile_cont(e2e_s, 0.9) FILTER (done) AS p90_e2el_ms,
       1e3 * quantile_cont(e2e_s, 0.99) FILTER (done) AS p99_e2el_ms
FROM (SELECT *, status = 'finished' AS done FROM requests WHERE measured) AS r JOIN runs USING (run_id)
GROUP BY run_id
ORDER BY run_id
