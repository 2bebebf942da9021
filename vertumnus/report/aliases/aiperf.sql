-- A row for each metric of a run with AIPerf's tags, units and statistics, as its JSON export has them. Of the
-- requests that finished after the warm-up; what is one number of the run has it in avg.
WITH of_requests AS (
  SELECT run_id,
         1e3 * ttft_s AS time_to_first_token,
         1e3 * tpot_s AS inter_token_latency,
         1e3 * e2e_s AS request_latency,
         1 / tpot_s AS output_token_throughput_per_user,
         CAST(input_tokens AS DOUBLE) AS input_sequence_length,
         CAST(output_tokens AS DOUBLE) AS output_sequence_length
  FROM requests
  WHERE measured AND status = 'finished'
), spread AS (
  SELECT run_id, tag, avg("value") AS "avg", min("value") AS "min", max("value") AS "max",
         stddev_pop("value") AS std,
         quantile_cont("value", [0.5, 0.9, 0.95, 0.99]) AS q, q[1] AS p50, q[2] AS p90, q[3] AS p95, q[4] AS p99
  FROM (UNPIVOT of_requests ON COLUMNS(* EXCLUDE (run_id)) INTO NAME tag VALUE "value")
  GROUP BY run_id, tag
), of_run AS (
  SELECT run_id,
         CAST(count(*) FILTER (r.status = 'finished') AS DOUBLE) AS request_count,
         CAST(count(*) FILTER (r.status <> 'finished') AS DOUBLE) AS error_request_count,
         any_value(measured_s) AS benchmark_duration,
         request_count / benchmark_duration AS request_throughput,
         sum(r.output_tokens) FILTER (r.status = 'finished') / benchmark_duration AS output_token_throughput,
         count(*) FILTER (r.status = 'finished' AND slo_met) / benchmark_duration AS goodput
  FROM (FROM requests WHERE measured) AS r JOIN runs USING (run_id)
  GROUP BY run_id
), total AS (
  SELECT run_id, tag, "avg"
  FROM (UNPIVOT of_run ON COLUMNS(* EXCLUDE (run_id)) INTO NAME tag VALUE "avg")
)
SELECT run_id, tag,
       CASE WHEN tag IN ('time_to_first_token', 'inter_token_latency', 'request_latency') THEN 'ms'
            WHEN tag = 'benchmark_duration' THEN 'sec'
            WHEN tag IN ('request_throughput', 'goodput') THEN 'requests/sec'
            WHEN tag = 'output_token_throughput' THEN 'tokens/sec'
            WHEN tag = 'output_token_throughput_per_user' THEN 'tokens/sec/user'
            WHEN tag IN ('request_count', 'error_request_count') THEN 'requests'
            ELSE 'tokens' END AS unit,
       "avg", "min", "max", p50, p90, p95, p99, std
FROM (FROM spread UNION ALL BY NAME FROM total)
ORDER BY run_id, tag
