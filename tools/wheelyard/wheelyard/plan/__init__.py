"""From the matrix to what is to be done: the project, its cells, its wheels, the plan of a release."""
