-- The controller's observation windows in order (sec. 6.1): what arrived, what it asks for, what was made of it.
-- demand_s is the predicted work of the window's requests where they were routed, capacity_s is kappa of the
-- workers in service times the window; both are NULL with a controller that does not look at them.
SELECT "index", start_s, end_s, composition, requests, requests_per_s, long_fraction,
       demand_s, capacity_s, utilisation, signal, persistence, action, reason
FROM windows
WHERE run_id = $run_id
ORDER BY "index"
