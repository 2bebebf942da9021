"""Vertumnus: adaptive context parallelism for LLM prefill (see README.md)."""

__version__ = "0.1.0"
