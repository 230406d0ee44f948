"""Threads: the ops called from many at once, and a Python without a GIL that stays without one."""

import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import cuda_ext_example

THREADS = 8

# Each thread is the first to call the op, as far as it knows.
FIRST_CALLS = f"""
import threading, torch, cuda_ext_example
from concurrent.futures import ThreadPoolExecutor
together = threading.Barrier({THREADS})
def first(number):
    a, b = torch.full((1000,), float(number)), torch.ones(1000)
    together.wait()
    return bool((cuda_ext_example.my_add(a, b) == number + 1).all())
with ThreadPoolExecutor({THREADS}) as pool:
    assert all(pool.map(first, range({THREADS})))
"""


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python is built with a GIL"
)
def test_the_gil_stays_off():
    """Of all that these tests import, nothing has switched it on."""
    assert not sys._is_gil_enabled()


def test_the_first_calls_come_together():
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True)


def test_forward_and_backward_in_many_threads(device: str):
    """Each with tensors of its own, and with one that all of them read."""
    shared = torch.randn(1000, device=device)
    together = threading.Barrier(THREADS)

    def work(number: int) -> bool:
        own = torch.full((1000,), float(number), device=device, requires_grad=True)
        together.wait()
        for _ in range(50):
            own.grad = None
            total = cuda_ext_example.my_add(own, shared)
            (total * shared).sum().backward()
            if not (torch.equal(total, own + shared) and torch.equal(own.grad, shared)):
                return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))
