"""Turns the matrix into a plan: the project, its cells, its wheels."""
