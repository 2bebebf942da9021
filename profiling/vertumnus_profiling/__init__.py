"""Measuring Vertumnus: benchmarks of its hot paths."""
