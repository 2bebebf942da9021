"""Runs against one another: groups by what differs, pairs by arrivals, differences with intervals."""
