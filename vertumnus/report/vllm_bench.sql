-- The run with the names of the result file of vLLM's serving benchmark; the view vllm_bench has all runs.
FROM vllm_bench WHERE run_id = $run_id
