-- Copies of KV blocks between workers (sec. 7.2), in total and by purpose and who wanted them: the prefix
-- manager, its prefetch, a request (pull, reconcile) or an operator. wire_s adds up the time on the wire,
-- wait_s the time from order to end; bytes and blocks are those of copies that finished.
SELECT coalesce(purpose, 'all') AS purpose,
       origin,
       count(*) AS copies,
       count(*) FILTER (outcome = 'finished') AS finished,
       count(*) FILTER (outcome = 'failed') AS failed,
       CAST(coalesce(sum(blocks), 0) AS BIGINT) AS blocks,
       CAST(coalesce(sum(payload_bytes), 0) AS BIGINT) AS payload_bytes,
       sum(wire_s) AS wire_s,
       avg(wait_s) AS wait_mean_s,
       max(wait_s) AS wait_max_s
FROM cache_ops
WHERE run_id = $run_id AND purpose <> 'reclaim'
GROUP BY GROUPING SETS ((purpose, origin), ())
ORDER BY grouping(purpose), purpose, origin
