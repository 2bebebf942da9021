-- Fig. 2: the median prefill time of prompts of which nothing was cached, by degree and length (powers of two).
SELECT runs.execution, runs.seed, cp_degree, requests.input_tokens, median(prefill_s) AS prefill_s
FROM requests JOIN runs USING (run_id)
WHERE requests.status = 'finished' AND requests.cached_tokens = 0 AND bit_count(requests.input_tokens) = 1
GROUP BY ALL
ORDER BY runs.execution, cp_degree, requests.input_tokens, runs.seed
