"""Defines the exception that ends a step with a message for people, and counts in words."""


class Problem(Exception):
    """An error that the person at the keyboard can fix; printed without a traceback, exit code 1."""


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: 1 wheel, 2 wheels, 1,200 wheels"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
