-- Every worker that there was, from the sending of its epoch to that of its successors' or the run's end; one
-- that went out of service has the time at which a sample found it so (records.worker_sample_s).
SELECT worker_id, cp_degree, epoch,
       any_value(since_s) AS start_s,
       max(t_ns) / 1e9 AS end_s,
       min(t_ns) FILTER (service = 'out of service') / 1e9 AS out_of_service_s
FROM workers
WHERE run_id = $run_id
GROUP BY worker_id, cp_degree, epoch
ORDER BY start_s, CAST(split_part(worker_id, 'x', 1) AS INTEGER), epoch
