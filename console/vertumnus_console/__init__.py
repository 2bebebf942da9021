"""The operator's console: a run's log, replayed into what the pool was at any instant. Read-only."""
