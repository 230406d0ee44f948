"""Popular packages, drawn by a seed: do `wheelscope env` and `wheelscope fit` say what Python says?"""
