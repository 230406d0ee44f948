"""Clocks of the benchmarks.

On the GPU a sleeping kernel holds the stream while the host enqueues a batch of calls between two
CUDA events, so the events measure the GPU's work and none of the host's. Batches of all contestants
alternate in rounds, so that a drifting clock affects all of them.
"""

import gc
import time
from collections.abc import Callable, Sequence

import torch

Batch = Callable[[int], None]  # makes the given number of calls
Clock = Callable[[Batch, int], float]  # measures the given number of calls of a batch


def repeat(call: Callable[[], object]) -> Batch:
    """Returns a function that makes a given number of calls."""

    def batch(calls: int) -> None:
        for _ in range(calls):
            call()

    return batch


def host_clock(device: str) -> Clock:
    """Returns a clock of the host's time per call, with the GPU's work finished at both ends."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def measure(batch: Batch, calls: int) -> float:
        wait()
        start = time.perf_counter()
        batch(calls)
        wait()
        return (time.perf_counter() - start) / calls

    return measure


def gpu_clock() -> Clock:
    """Returns a clock of the GPU's time per call, without the host's; this file's head explains how."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cycles = 500_000

    def measure(batch: Batch, calls: int) -> float:
        nonlocal cycles
        while True:
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)
            start.record()
            batch(calls)
            stop.record()
            host_was_ahead = not start.query()
            stop.synchronize()
            if host_was_ahead or cycles > 1 << 30:
                return float(start.elapsed_time(stop)) / 1e3 / calls
            cycles *= 2  # the GPU woke up before the host was ready: sleep longer

    return measure


def rounds_of(clock: Clock, batches: Sequence[Batch], calls: int, rounds: int) -> list[list[float]]:
    """Returns each batch's times. Rounds begin with different batches; the first only warms up."""
    times: list[list[float]] = [[] for _ in batches]
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds + 1):
            for i in range(len(batches)):
                which = (turn + i) % len(batches)
                seconds = clock(batches[which], calls)
                if turn > 0:
                    times[which].append(seconds)
    finally:
        gc.enable()
    return times
