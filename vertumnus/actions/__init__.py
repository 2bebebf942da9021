"""The action socket of a run that keeps to the wall clock: operators' wishes go in, answers come back.

What happens is read from the log as it grows; this socket only takes actions. It is a Unix socket in the
run's folder, for its owner alone (mode 0600), and takes lines of JSON, one message each (`protocol`).
"""
