"""Turns the matrix into work: the project, its cells, its wheels, the plan of a release."""
