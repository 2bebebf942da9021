-- The controller's windows with what arrived, the pool, the TTFT of the arrivals that finished, and the
-- transitions that began in each (Fig. 13). A transition outside every window, as after the last one or
-- by hand, has a row of its own.
WITH spans AS (
  SELECT "index", start_s, end_s, composition, requests, requests_per_s, utilisation, long_fraction,
         signal, action
  FROM windows
  WHERE run_id = $run_id
), moves AS (
  SELECT t_ns / 1e9 AS t_s, epoch, drain_s, switch_s, redirected_requests,
         kind || ' ' || sources || ' -> ' || targets || if(outcome = 'committed', '', ', ' || outcome) AS move
  FROM reconfigs
  WHERE run_id = $run_id
), moved AS (
  SELECT "index",
         string_agg(move, '; ' ORDER BY t_s, epoch) AS transitions,
         sum(drain_s) AS drain_s,
         sum(switch_s) AS switch_s,
         sum(redirected_requests) AS redirected_requests
  FROM spans JOIN moves ON t_s >= start_s AND t_s < end_s
  GROUP BY "index"
), served AS (
  SELECT "index", avg(ttft_s) AS ttft_mean_s, quantile_cont(ttft_s, 0.9) AS ttft_p90_s
  FROM spans JOIN requests ON arrival_s >= start_s AND arrival_s < end_s
  WHERE run_id = $run_id AND status = 'finished'
  GROUP BY "index"
), lone AS (
  SELECT t_s AS start_s, move AS transitions, drain_s, switch_s, redirected_requests
  FROM moves
  WHERE NOT EXISTS (FROM spans WHERE t_s >= start_s AND t_s < end_s)
)
SELECT "index", start_s, end_s, composition, requests, requests_per_s, utilisation, long_fraction,
       ttft_mean_s, ttft_p90_s, signal, action, transitions, drain_s, switch_s,
       CAST(redirected_requests AS BIGINT) AS redirected_requests
FROM (
  FROM spans LEFT JOIN moved USING ("index") LEFT JOIN served USING ("index")
  UNION ALL BY NAME
  FROM lone
)
ORDER BY start_s, "index"
