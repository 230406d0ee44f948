"""The benchmark: it measures what it says, takes turns, judges rightly and writes its files."""

import io
import json
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from opwright.__main__ import main  # noqa: E402
from opwright.bench import clock, measure, report  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")


@pytest.fixture
def run(extension, monkeypatch, tmp_path):
    """Runs the command with arguments; returns its exit status."""

    def run_with(*arguments):
        command = ["opwright", "bench", extension.name, "--output", str(tmp_path), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        return main()

    return run_with


SMALL_RUN = (
    "--device",
    "cpu",
    "--sizes",
    "4",
    "10",
    "--dtypes",
    "float32",
    "float64",
    "--rounds",
    "2",
)


def test_writes_text_json_and_plot(run, extension, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    assert run(*SMALL_RUN) == 0
    result = json.loads((tmp_path / "benchmark.json").read_text())
    assert result["schema_version"] == 2
    assert set(result) == {
        *("machine", "device", "rounds", "schema_version"),
        *("bandwidth", "overhead", "skipped", "checks"),
    }
    for dtype in ("float32", "float64"):
        ops = [op for op in extension.ops if dtype in op.dtypes]
        own = [f"{op.reference}({op.reference_arguments})" for op in ops]
        here = [row for row in result["bandwidth"] if row["dtype"] == dtype]
        assert [r["name"] for r in here if r["layer"] == "op"] == [op.name for op in ops] * 2
        assert [r["beside"] for r in here if r["layer"] == "torch"] == [*dict.fromkeys(own)] * 2
        assert {row["elements"] for row in here} == {16, 1024}
    moves = {op.name: op.moves for op in extension.ops} | {
        op.reference: op.moves for op in extension.ops
    }
    for row in result["bandwidth"]:
        size = moves[row["name"]] * row["elements"] * {"float32": 4, "float64": 8}[row["dtype"]]
        assert row["gb_per_s"] == pytest.approx(size / row["us"] / 1e3)
        assert 0 < row["us_q1"] <= row["us"] <= row["us_q3"]
        assert row["in_cache"]
    wrappers = [row for row in result["overhead"] if row["layer"] == "wrapper"]
    assert [row["name"] for row in wrappers] == [op.name for op in extension.ops] * 3
    modes = [(row["gradient"], row["no_grad"]) for row in wrappers[:: len(extension.ops)]]
    assert modes == [(False, False), (True, False), (False, True)]
    assert (tmp_path / "benchmark.png").read_bytes().startswith(b"\x89PNG")
    output = capsys.readouterr()
    assert "float64: GB/s" in output.out
    assert output.err.splitlines()[-1] == "4/5 float64, 2^10 elements"


def test_without_matplotlib_it_says_so(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(*SMALL_RUN) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["benchmark.json"]
    assert "no plot: matplotlib is not installed" in capsys.readouterr().out


@without_gpu
def test_without_a_gpu_it_measures_the_cpu_and_says_so(run, capsys):
    assert run("--sizes", "10", "--dtypes", "float32", "--rounds", "2") == 0
    assert "Measuring the CPU ops, because torch sees no GPU." in capsys.readouterr().out


def test_what_does_not_fit_into_memory_is_skipped(run, capsys, monkeypatch):
    monkeypatch.setattr(measure, "free_bytes", lambda _: 400 << 10)
    assert (
        run("--device", "cpu", "--sizes", "10", "20", "--dtypes", "float32", "--rounds", "2") == 0
    )
    output = capsys.readouterr().out
    assert "skipped: float32, 2^20 elements: not enough free memory" in output
    assert "2^10*" in output


def test_batches_alternate_and_the_first_round_warms_up():
    order = []

    def ticks(batch, calls):
        assert calls == 7
        batch(calls)
        return float(len(order))

    batches = [lambda _, name=name: order.append(name) for name in "abc"]
    times = clock.rounds_of(ticks, batches, calls=7, rounds=3)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"
    assert times == [[6, 8, 10], [4, 9, 11], [5, 7, 12]]


def contestant(name, layer, beside, function=None):
    return measure.Contestant(name, layer, beside, function, lambda x, y: (x, y), 3)


def test_ratios_are_to_torchs_own_time_in_the_same_round():
    entered = [
        *(contestant("torch.add", "torch", "a"), contestant("my_add", "op", "a")),
        *(contestant("torch.add", "torch", "b"), contestant("cust_add", "op", "b")),
    ]
    own = [2e-6, 4e-6, 8e-6]  # twice torch.add's, however the clock drifts
    times = [[1e-6, 2e-6, 4e-6], own, [1e-5, 1e-5, 1e-5], own]
    rows = list(measure.rows_of(entered, times))
    assert [row["time_ratio"] for row in rows] == pytest.approx([1, 2, 1, 0.4])
    assert [rows[1][key] for key in ("us_q1", "us", "us_q3")] == pytest.approx([3, 4, 6])


def test_inputs_and_outputs_take_turns():
    inputs = measure.InputSets(8, torch.int32, "cpu", sets=3)
    seen = []

    def remember(a, b):
        seen.append((a.data_ptr(), b.data_ptr()))
        return a

    inputs.call(contestant("remember", "op", "a", remember), 4)
    assert len(set(seen[:3])) == 3
    assert seen[3] == seen[0]
    assert all(output is not None for output in inputs.outputs)


def result_of(device, name, ratio, plain=1.0, gradient=2.0, no_grad=1.2, op=2.0):
    row = {"name": "my_fast_add", "layer": "op", "beside": "torch.add(x, y)", "time_ratio": ratio}
    bandwidth = {**row, "dtype": "float32", "elements": 1 << 28, "gb_per_s": 4400.0}
    small = [
        {**row, "layer": layer, "time_ratio": times, "gradient": how == 1, "no_grad": how == 2}
        for how, wrapper in enumerate((plain, gradient, no_grad))
        for layer, times in (("torch", 1.0), ("op", op if how == 0 else 9.0), ("wrapper", wrapper))
    ]
    return report.Result({"device": name}, device, 15, bandwidth=[bandwidth], overhead=small)


@pytest.mark.parametrize(
    ("result", "verdicts"),
    [
        (result_of("cuda", "NVIDIA H200", 1.0), [True, True, True, True, True]),
        (result_of("cuda", "NVIDIA H200", 1.02), [False, True, True, True, True]),
        (result_of("cuda", "NVIDIA H200", 1.0, op=2.1), [True, False, True, True, True]),
        (result_of("cuda", "NVIDIA H200", 1.0, 1.16), [True, True, False, True, True]),
        (result_of("cuda", "NVIDIA H200", 1.0, 1.1, 2.1), [True, True, True, False, True]),
        (result_of("cuda", "NVIDIA H200", 1.0, no_grad=1.3), [True, True, True, True, False]),
        (result_of("cpu", "CPU aarch64", 1.09, 1.5), [True]),
        (result_of("cpu", "CPU aarch64", 1.11), [False]),
    ],
)
def test_judges_the_promised_ratios(result, verdicts):
    assert [check["passed"] for check in report.judge(result, "my_fast_add")] == verdicts


def test_a_missed_ratio_fails_the_run(run, monkeypatch, capsys):
    missed = [{"what": "my_fast_add", "value": 1.2, "limit": "<= 1.1", "passed": False}]
    monkeypatch.setattr(report, "judge", lambda *_: missed)
    monkeypatch.setattr(measure, "measure_bandwidth", lambda *_: [])
    assert run("--device", "cpu", "--check", "--rounds", "2") == 1
    assert "FAIL  my_fast_add: 1.200 <= 1.1" in capsys.readouterr().out


def test_profile_shows_ops_at_atens_level(run, extension, capsys):
    assert run("--device", "cpu", "--profile") == 0
    output = capsys.readouterr().out
    for name in (
        "aten::add",
        *(f"{extension.name}::{op.name}" for op in extension.ops),
    ):
        assert name in output


@needs_gpu
def test_the_gpus_clock_does_not_see_the_host():
    """A tiny kernel takes the GPU less time than its call takes the host."""
    x = torch.ones(1024, device="cuda")

    def batch(calls):
        for _ in range(calls):
            torch.add(x, x)

    clocks = clock.gpu_clock(), clock.host_clock("cuda")
    on_gpu, on_host = (min(measured(batch, 20) for _ in range(10)) for measured in clocks)
    assert on_gpu < on_host


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_bar_on_a_terminal():
    terminal = Terminal()
    progress = report.Progress(2, terminal)
    progress.step("first")
    progress.step("second")
    progress.close()
    frames = terminal.getvalue().split("\r\x1b[K")
    assert frames == ["", f"[{'.' * 30}] 0/2 first", f"[{'#' * 15}{'.' * 15}] 1/2 second", ""]


def test_progress_is_a_few_lines_elsewhere():
    log = io.StringIO()
    progress = report.Progress(200, log)
    for i in range(200):
        progress.step(f"step {i}")
    assert [line.split()[0] for line in log.getvalue().splitlines()] == [
        f"{i}/200" for i in range(0, 200, 20)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "--sizes", "10"], "leave out --sizes"),
        (["--sizes", "32"], "from 0 to 31"),
        (["--rounds", "1"], "--rounds at least 2"),
        (["--dtypes", "bool"], "no op has kernels for bool; use float32"),
        pytest.param(["--device", "cuda"], "torch sees no GPU", marks=without_gpu),
    ],
)
def test_wrong_usage(run, capsys, arguments, message):
    assert run(*arguments) == 1
    assert message in capsys.readouterr().err


def test_a_package_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["opwright", "bench", "no_such_package"])
    assert main() == 1
    assert "No module named 'no_such_package'; install the package first" in capsys.readouterr().err
