"""Tests for any op that need a GPU: streams, graphs, threads, devices, sizes beyond 32 bits."""

import threading
from collections.abc import Callable

import pytest
import torch

from .ops import Op, joined
from .testing_cases import (
    Cases,
    assert_same,
    needs_gpu,
    one_dtype,
    ours,
    random_pair,
    torchs,
    with_dtypes,
)

SHAPE = (64, 1000)


def in_threads(count: int, work: Callable[[], None]) -> None:
    """Runs a function in `count` threads at once and raises their first exception."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def bytes_of(op: Op) -> list[str]:
    """Returns int8 for elementwise ops that have it, because 2^31 elements of it fit into a GPU's memory."""
    return ["int8"] if op.elementwise and "int8" in op.dtypes else []


class CudaTests(Cases):
    """Tests of faults that only CUDA kernels can have."""

    @needs_gpu
    @with_dtypes(one_dtype)
    def test_cuda_stream(self, op: Op, dtype: torch.dtype) -> None:
        """Checks that the op waits for earlier work on its stream: a long sleep, then a copy into its input."""
        x, y = random_pair((1024, 1024), dtype, "cuda")
        late = torch.zeros_like(x)
        with torch.cuda.stream(torch.cuda.Stream()):
            # A first call loads the kernel and fills the allocator, both of which wait for the GPU.
            ours(op)(late, y)
            torch.cuda.synchronize()
            torch.cuda._sleep(200_000_000)
            late.copy_(x)
            out = ours(op)(late, y)
            torch.cuda.current_stream().synchronize()
        assert_same(op, out, torchs(op)(x, y), " on a stream")

    @needs_gpu
    @with_dtypes(one_dtype)
    def test_cuda_graph(self, op: Op, dtype: torch.dtype) -> None:
        x, y = random_pair(SHAPE, dtype, "cuda")
        ours(op)(x, y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = ours(op)(x, y)
        for value in (1, 5, 3):
            x.fill_(value)
            graph.replay()
            assert_same(op, out, torchs(op)(x, y), " in a graph")

    @needs_gpu
    @with_dtypes(one_dtype)
    def test_cuda_in_a_new_thread(self, op: Op, dtype: torch.dtype) -> None:
        x, y = random_pair(SHAPE, dtype, "cuda")
        in_threads(1, lambda: assert_same(op, ours(op)(x, y), torchs(op)(x, y), " in a thread"))

    @needs_gpu
    @with_dtypes(one_dtype)
    def test_cuda_in_many_threads(self, op: Op, dtype: torch.dtype) -> None:
        x, y = random_pair(SHAPE, dtype, "cuda")
        expected = torchs(op)(x, y)

        def work() -> None:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(100):
                    assert_same(op, ours(op)(x, y), expected, " in many threads")

        torch.cuda.synchronize()
        in_threads(8, work)

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
    @with_dtypes(one_dtype)
    def test_cuda_on_the_second_gpu(self, op: Op, dtype: torch.dtype) -> None:
        x, y = random_pair(SHAPE, dtype, "cuda:1")
        out = ours(op)(x, y)
        assert out.device == torch.device("cuda:1")
        assert_same(op, out, torchs(op)(x, y), " on the second GPU")
        assert torch.cuda.current_device() == 0

    @needs_gpu
    @with_dtypes(one_dtype)
    def test_cuda_inductor(self, op: Op, dtype: torch.dtype) -> None:
        x, y = random_pair(SHAPE, dtype, "cuda")
        compiled = torch.compile(lambda *args: joined(op.function(*args)) * 2, fullgraph=True)
        assert_same(op, compiled(*op.arguments_for(x, y)), torchs(op)(x, y) * 2, " compiled")

    @needs_gpu
    @with_dtypes(bytes_of)
    def test_cuda_beyond_32_bits(self, op: Op, dtype: torch.dtype) -> None:
        """Checks the first and last elements of dense and broadcast results."""
        x = torch.full((2**31 + 7,), 3, dtype=dtype, device="cuda")
        x[-1] = 50
        for a, b in ((x, x), (x[: 2**16, None], x[-(2**15) - 3 :])):
            out = ours(op)(a, b)
            assert_same(op, out[:2], torchs(op)(a[:2], b[:2] if b.dim() == a.dim() else b))
            assert_same(op, out[-2:], torchs(op)(a[-2:], b[-2:] if b.dim() == a.dim() else b))
            kinds = torch.unique(out.view(-1)[:: 2**20 + 1])
            assert kinds.numel() <= 2, f"{op.name} of 3 and 50 gives {kinds.tolist()}"
            del out
