"""Compares wheelscope with other tools and with real machines, as in `python -m
validation.corpus.compare` from the project's folder.
"""
