"""Measures builds: the usual way of writing the same extension, and this project's."""
