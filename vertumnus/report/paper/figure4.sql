-- Fig. 4: the predicted and the measured prefill time of every prompt that reused what routing had expected.
SELECT runs.execution, runs.seed, cp_degree, requests.input_tokens, requests.cached_tokens,
       predicted_service_s AS predicted_s, prefill_s AS measured_s,
       abs(predicted_service_s / prefill_s - 1) AS error
FROM requests JOIN runs USING (run_id)
WHERE requests.status = 'finished' AND measured AND requests.cached_tokens = expected_cached_tokens
ORDER BY runs.execution, cp_degree, runs.seed, request_id
