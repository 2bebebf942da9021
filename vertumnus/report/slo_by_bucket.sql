-- Token-weighted TTFT attainment by input length, after the warm-up (Table 2). Whatever did not
-- finish counts as missed; requests without a target count in neither part.
SELECT length_bucket,
       count(*) AS requests,
       min(input_tokens) AS min_input_tokens,
       max(input_tokens) AS max_input_tokens,
       min(slo_ttft_s) AS slo_ttft_s,
       sum(if(slo_met, input_tokens, 0)) FILTER (slo_met IS NOT NULL)
         / sum(input_tokens) FILTER (slo_met IS NOT NULL) AS slo_attainment,
       quantile_cont(ttft_s, 0.5) FILTER (status = 'finished') AS ttft_p50_s,
       quantile_cont(ttft_s, 0.9) FILTER (status = 'finished') AS ttft_p90_s
FROM requests
WHERE run_id = $run_id AND measured
GROUP BY length_bucket
ORDER BY min(input_tokens)
