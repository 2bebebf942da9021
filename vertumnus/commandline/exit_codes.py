"""What the exit codes of ``vertumnus`` mean."""

OK = 0
FAILED = 1
"""A run started and failed."""
BAD_INPUT = 2
"""Nothing was started: a key, value, flag or file is the user's to mend."""
INVALID = 3
"""The run finished, but its verdict says that its numbers do not count."""
INTERRUPTED = 130
"""Ctrl-C; what was recorded until then is kept."""
