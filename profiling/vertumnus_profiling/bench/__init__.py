"""Small benchmarks of the hot paths: ``python -m vertumnus_profiling.bench [NAMES...]``.

Numbers come with their spread and the machine they were made on. Only ratios of one run compare
between machines, so whatever has a natural yardstick (sets, memcpy, degree 1) is measured beside it.
What one thread does is told in its processor time; the simulator's rates and the ranks' steps are wall
time.
"""
