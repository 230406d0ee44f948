"""What only a GPU can show: streams, graphs, devices, threads, sizes beyond 32 bits."""

import threading

import pytest
import torch
from conftest import needs_gpu

from cuda_ext_example import cust_add, my_add, my_fast_add
from cuda_ext_example._ops import OPS

pytestmark = needs_gpu


@pytest.fixture(params=OPS, ids=lambda op: op.name)
def op(request):
    """Each op of the list as a function of two matrices, with torch's own for the same."""
    entry = request.param

    def ours(x, y):
        return entry.function(*entry.arguments_for(x, y))

    own = entry.torchs_own()
    ours.torchs = lambda x, y: own(*entry.arguments_for(x, y, reference=True))
    ours.entry = entry
    return ours


def matrix(value=1.0, rows=10, columns=1000, device="cuda"):
    return torch.full((rows, columns), value, device=device)


def test_runs_on_the_current_stream(op):
    """The op waits for what its stream does before it: a long sleep, and then the input's value."""
    stream = torch.cuda.Stream()
    x, ones = matrix(0.0, 1024, 1024), matrix(1.0, 1024, 1024)
    with torch.cuda.stream(stream):
        op(x, ones)  # loads the kernel and fills the allocator, which both wait for the GPU
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        x.fill_(1)
        out = op(x, ones)
    stream.synchronize()
    torch.testing.assert_close(out, op.torchs(ones, ones))


def test_captured_in_a_graph(op):
    a, b = matrix(), matrix()
    op(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = op(a, b)
    for value in (1.0, 5.0, -3.0):
        a.fill_(value)
        graph.replay()
        torch.testing.assert_close(out, op.torchs(a, b))


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


def test_rows_of_more_elements_than_31_bits_count():
    a = torch.full((2, 2**31), 3, dtype=torch.int8, device="cuda")
    column = torch.tensor([[1], [2]], dtype=torch.int8, device="cuda")
    for add in (my_add, my_fast_add):
        out = add(a, column)
        for row, value in zip(out, (4, 5), strict=True):
            assert row.min() == row.max() == value
        del out


def test_from_a_thread_that_has_not_used_cuda(op):
    a = matrix()
    results: list[object] = []

    def work():
        try:
            results.append(op(a, a))
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.testing.assert_close(results, [op.torchs(a, a)])


def test_many_threads_at_once(op):
    a = matrix()
    expected = op.torchs(a, a)
    wrong: list[object] = []

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(100):
                if not torch.allclose(op(a, a), expected):
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
    a = matrix(device="cuda:1")
    out = op(a, a)
    assert out.device == torch.device("cuda:1")
    torch.testing.assert_close(out, op.torchs(a, a))
    assert torch.cuda.current_device() == 0


def test_inductor(op):
    function = op.entry.function
    compiled = torch.compile(lambda *arguments: function(*arguments).relu(), fullgraph=True)
    a, b = torch.randn(10, 100, device="cuda"), torch.randn(10, 100, device="cuda")
    torch.testing.assert_close(compiled(*op.entry.arguments_for(a, b)), op(a, b).relu())


def test_an_empty_tensor_launches_nothing(op):
    x = torch.empty(3, 0, device="cuda")
    assert op(x, x).shape == (3, 0)
