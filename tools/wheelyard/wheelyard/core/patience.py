"""Retries when a connection breaks."""

import time
from collections.abc import Callable
from typing import TypeVar

from wheelyard.problem import Problem

PAUSES = (0.5, 2, 8)  # seconds before another attempt
ANSWER_SECONDS = 120


class Broken(Problem):
    """A connection that broke, which may hold the next time."""


Result = TypeVar("Result")


def patiently(attempt: Callable[[], Result]) -> Result:
    """Makes the attempt, and again after each pause while connections break."""
    for pause in PAUSES:
        try:
            return attempt()
        except Broken:
            time.sleep(pause)
    return attempt()
