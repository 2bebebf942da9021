-- Fig. 13(c): every split and merge that was carried out, and how long its stages took.
SELECT run_id, row_number() OVER (PARTITION BY run_id ORDER BY t_ns, epoch) AS place, kind,
       drain_s, switch_s, total_s
FROM reconfigs
WHERE outcome = 'committed' AND drain_s IS NOT NULL AND switch_s IS NOT NULL
ORDER BY run_id, t_ns, epoch
