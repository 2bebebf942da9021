"""The operator's console: a run's log replayed into what the pool is, and keys that change it."""
