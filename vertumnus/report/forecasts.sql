-- Forecasts of moves: predicted mean TTFT of staying and of each move if the arrivals of the last span_s come
-- again, as often as repeats says and load times as fast. observed_ttft_s is of the requests without a first
-- token at t_s, or arriving within repeats * span_s after it, at the load that came, with what was made;
-- undefined where the arrivals ended before that. Those whose clients gave up count with how long they waited,
-- here and in what is predicted. requests, the forecast's, beside observed_requests tell
-- whether as many came. The hindsight columns are the same forecast made later with the arrivals that really
-- came (controller=advise): would the move have paid?
WITH asked AS (
  SELECT *, t_ns / 1e9 AS t_s FROM forecasts WHERE run_id = $run_id AND hindsight_of IS NULL
), stay AS (
  FROM asked WHERE status = 'answered' AND move IS NULL
), arrived AS (
  SELECT max(arrival_s) AS last_s FROM requests WHERE run_id = $run_id
), waits AS (
  SELECT request_id, arrival_s,
         CASE WHEN requests.status = 'finished' THEN ttft_s
              ELSE least(e2e_s, CAST(config->>'$.arrival.patience_s' AS DOUBLE)) END AS wait_s
  FROM requests JOIN runs USING (run_id)
  WHERE run_id = $run_id AND requests.status IN ('finished', 'cancelled')
), served AS (
  SELECT forecast_id, count(request_id) AS observed_requests,
         CASE WHEN any_value(t_s + span_s * repeats) <= (SELECT last_s FROM arrived) THEN avg(wait_s) END
           AS observed_ttft_s
  FROM stay LEFT JOIN waits ON arrival_s <= t_s + span_s * repeats AND arrival_s + wait_s > t_s
  GROUP BY forecast_id
), later AS (
  SELECT hindsight_of AS forecast_id, move, ttft_mean_s,
         first_value(ttft_mean_s) OVER (PARTITION BY forecast_id ORDER BY move NULLS FIRST) AS stay_ttft_mean_s
  FROM forecasts
  WHERE run_id = $run_id AND hindsight_of IS NOT NULL AND status = 'answered'
)
SELECT asked.forecast_id, asked.t_s, asked.span_s, asked.repeats, asked.load, asked.answer_s, asked.move, asked.made,
       stay.ttft_mean_s AS stay_ttft_s,
       asked.ttft_mean_s AS move_ttft_s,
       1 - asked.ttft_mean_s / stay.ttft_mean_s AS gain,
       observed_ttft_s, stay.requests, observed_requests,
       later.stay_ttft_mean_s AS hindsight_stay_ttft_s,
       later.ttft_mean_s AS hindsight_move_ttft_s,
       1 - later.ttft_mean_s / later.stay_ttft_mean_s AS hindsight_gain,
       asked.drain_s, asked.switch_s, asked.missing_blocks, asked.copied_blocks, asked.reason
FROM asked
LEFT JOIN stay USING (forecast_id)
LEFT JOIN served USING (forecast_id)
LEFT JOIN later ON later.forecast_id = asked.forecast_id AND later.move = asked.move
WHERE asked.move IS NOT NULL OR asked.status <> 'answered'
ORDER BY asked.t_s, asked.forecast_id, asked.move
