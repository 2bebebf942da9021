"""Trace files: one reader a format, one row out; what is wrong with a file is told by its line."""
