"""The places in which jobs run. Nothing here knows a step by its name."""
