"""Asks, for popular packages drawn by a seed, whether `wheelscope env` and `wheelscope fit` agree
with Python."""
