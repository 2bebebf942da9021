"""Policies: each file has one's parameters and the cost that it charges for an offer."""
