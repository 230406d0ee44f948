"""Retries when a connection breaks."""

import time
from collections.abc import Callable
from typing import TypeVar

from wheelyard.problem import Problem

PAUSES = (0.5, 2, 8)  # seconds before another attempt
ANSWER_SECONDS = 120


class Broken(Problem):
    """A failed connection, which may work at the next attempt."""


Result = TypeVar("Result")


def patiently(attempt: Callable[[], Result]) -> Result:
    """Calls `attempt`, and calls it again after each pause while connections fail."""
    for pause in PAUSES:
        try:
            return attempt()
        except Broken:
            time.sleep(pause)
    return attempt()
