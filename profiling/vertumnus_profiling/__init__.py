"""Measuring Vertumnus: prefill-time profiles of a model on a machine, and benchmarks of the hot paths."""
