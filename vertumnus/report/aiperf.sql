-- The run's metrics with AIPerf's tags, units and statistics; the view aiperf has all runs.
FROM aiperf WHERE run_id = $run_id ORDER BY tag
