-- One row: the run's mean TTFT beside what no placement can beat, in seconds, over finished requests after the
-- warm-up. bound is each request alone, at its best degree, with an unlimited shared cache. together is the same
-- where requests that arrive at one instant share the workers: every instant finds all of them idle, each worker
-- needs a request's least time, and the shortest go first, which on equal workers makes the least sum of
-- completions. A run's workers have other instants' work besides, and need no less; so, noise of step times aside,
-- no placement comes below it. NULL where steps batch requests, which then share a step's fixed cost.
WITH least AS (
  SELECT arrival_s, ttft_s, ext_s, ttft_bound_s, ttft_bound_s - ext_s AS prefill_s,
         row_number() OVER (PARTITION BY arrival_s ORDER BY ttft_bound_s - ext_s, request_id) - 1 AS place
  FROM requests
  WHERE run_id = $run_id AND measured AND status = 'finished'
), pool AS (
  SELECT count(DISTINCT worker_id) AS workers FROM workers WHERE run_id = $run_id
), shared AS (
  SELECT least.*, workers,
         ext_s + sum(prefill_s) OVER (PARTITION BY arrival_s, place % workers ORDER BY place) AS together_s
  FROM least, pool
), steps AS (
  SELECT config->>'$.cluster.step_tokens' = '0' AS are_single FROM runs WHERE run_id = $run_id
), means AS (
  SELECT count(*) AS requests, count(DISTINCT arrival_s) AS instants, max(workers) AS workers,
         avg(ttft_s ORDER BY arrival_s, place) AS ttft_s,
         if(count(*) = count(ttft_bound_s), avg(ttft_bound_s ORDER BY arrival_s, place), NULL) AS bound_s,
         if(count(*) = count(ttft_bound_s), avg(together_s ORDER BY arrival_s, place), NULL) AS together_s
  FROM shared
)
SELECT requests, instants, workers, ttft_s,
       bound_s, ttft_s / bound_s AS over_bound,
       if(are_single, together_s, NULL) AS together_s,
       if(are_single, ttft_s / together_s, NULL) AS over_together
FROM means, steps
