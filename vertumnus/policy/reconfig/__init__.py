"""The cluster controller (sec. 6): when the composition of the pool should change, and how."""
