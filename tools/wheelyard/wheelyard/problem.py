"""Defines the exception that ends a step with a message for people; names and counts things in words."""

from collections.abc import Sequence


class Problem(Exception):
    """An error that the person at the keyboard can fix; printed without a traceback, exit code 1."""


def some(names: Sequence[str], shown: int = 4) -> str:
    """Returns the first names, and how many more there are: a, b, c, d and 2 more"""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: 1 wheel, 2 wheels, 1,200 wheels"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
