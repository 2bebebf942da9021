-- Splits and merges in order (sec. 6.2): when each began, what it did, and how long its stages took.
-- drain_s is from the first Drain to the last worker at a boundary, park_s of it the wait of a sibling
-- for the other; switch_s is from the epoch's sending to the new workers' opening. Those that were asked
-- for and refused are here with the reason.
WITH asked AS (
    SELECT t_ns, kind || ' ' || sources || ' -> ' || targets AS move,
           "by",
           drain_s, park_s, switch_s, total_s,
           outcome, reason, redirected_requests, evicted_blocks, epoch
    FROM reconfigs
    WHERE run_id = $run_id
    UNION ALL
    SELECT t_ns, regexp_extract(subject, '^(.*) by (\S+)$', 1),
           regexp_extract(subject, '^(.*) by (\S+)$', 2),
           NULL, NULL, NULL, NULL,
           'refused', reason, NULL, NULL, NULL
    FROM faults
    WHERE run_id = $run_id AND kind = 'wish_refused' AND regexp_matches(subject, '^(split|merge) ')
)
SELECT t_ns / 1e9 AS t_s, * EXCLUDE t_ns
FROM asked
ORDER BY t_ns, epoch
