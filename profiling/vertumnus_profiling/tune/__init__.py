"""Calibration of thresholds and weights by simulated trials: ``vertumnus tune`` (sec. 7.2 asks for it)."""
