-- Fig. 13(b): mean TTFT of what arrived in each minute of a run.
SELECT run_id, CAST(floor(arrival_s / 60) AS INTEGER) AS "minute", avg(ttft_s) AS ttft_s
FROM requests
WHERE status = 'finished'
GROUP BY ALL
ORDER BY run_id, "minute"
