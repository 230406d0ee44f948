"""The one exception that ends a step: its text says what is wrong and what to do."""


class Problem(Exception):
    """Something the person at the keyboard can mend; printed without a traceback, exit code 1."""
