"""Runs jobs on this machine or on a cluster. Nothing here knows a step by name."""
