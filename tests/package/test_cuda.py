"""What only a GPU can show: streams, graphs, devices, threads, sizes beyond 32 bits."""

import threading

import pytest
import torch
from conftest import needs_gpu

from cuda_ext_example import cust_add, my_add, my_fast_add

pytestmark = needs_gpu


@pytest.fixture(
    params=[my_add, my_fast_add, lambda a, _: cust_add(a, 1)],
    ids=["my_add", "my_fast_add", "cust_add"],
)
def op(request):
    return request.param


def test_runs_on_the_current_stream(op):
    """The op waits for what its stream does before it: a long sleep, and then the input's value."""
    stream = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    ones = torch.ones(1 << 20, device="cuda")
    with torch.cuda.stream(stream):
        op(x, ones)  # loads the kernel and fills the allocator, which both wait for the GPU
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        x.fill_(1)
        out = op(x, ones)
    stream.synchronize()
    assert (out == 2).all()


def test_captured_in_a_graph(op):
    a, b = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")
    op(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = op(a, b)
    for value in (1.0, 5.0, -3.0):
        a.fill_(value)
        graph.replay()
        torch.testing.assert_close(out, torch.full_like(out, value + 1))


def test_more_elements_than_32_bits_count():
    n = 2**31 + 7
    a = torch.full((n,), 3, dtype=torch.int8, device="cuda")
    a[-1] = 50
    for add in (my_add, my_fast_add):
        out = add(a, a)
        assert out[:-1].min() == out[:-1].max() == 6
        assert out[-1] == 100
        del out
    out = cust_add(a, 2)
    assert out[:-1].min() == out[:-1].max() == 5
    assert out[-1] == 52


def test_strided_with_more_elements_than_32_bits_count():
    rows = torch.full((2**16, 1), 3, dtype=torch.int8, device="cuda")
    columns = torch.arange(2**15 + 3, device="cuda").remainder(7).to(torch.int8)
    out = my_fast_add(rows, columns)
    assert out.numel() > 2**31
    assert (out == columns + 3).all()


def test_from_a_thread_that_has_not_used_cuda(op):
    a = torch.ones(100, device="cuda")
    results: list[object] = []

    def work():
        try:
            results.append(op(a, a).sum().item())
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [200]


def test_many_threads_at_once(op):
    a = torch.ones(10_000, device="cuda")
    wrong: list[object] = []

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(100):
                if op(a, a).sum().item() != 20_000:
                    wrong.append(threading.get_ident())

    threads = [threading.Thread(target=work) for _ in range(8)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_runs_on_the_tensors_device(op):
    a = torch.ones(100, device="cuda:1")
    out = op(a, a)
    assert out.device == torch.device("cuda:1")
    assert out.tolist() == [2] * 100
    assert torch.cuda.current_device() == 0


def test_inductor(op):
    compiled = torch.compile(lambda a, b: op(a, b).relu(), fullgraph=True)
    a, b = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    torch.testing.assert_close(compiled(a, b), op(a, b).relu())


def test_an_empty_tensor_launches_nothing(op):
    x = torch.empty(0, 3, device="cuda")
    assert op(x, x).shape == (0, 3)
