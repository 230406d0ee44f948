"""The live table: every worker and every job once, however many there are."""

from rich.console import Console
from wheelyard.run.cluster import table
from wheelyard.run.cluster.offers import Member


def shown(members: list[Member], at: dict[str, str]) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table.table(members, at, "http://here:8787/status"))
    return captured.get()


def test_workers_and_what_they_do() -> None:
    one = Member("tcp://a:1", "box", 2, {"x86_64": 2, "wheelyard 1": 2})
    text = shown([one], {"build/x": "box", "publish/embedded": "here"})
    assert "http://here:8787/status" in text
    (row,) = (line for line in text.splitlines() if "box" in line)
    assert "x86_64" in row
    assert "build/x" in row
    assert any("here" in line and "publish/embedded" in line for line in text.splitlines())


def test_many_workers_are_counted() -> None:
    many = [Member(f"tcp://a:{n}", f"box-{n:03}", 1, {}) for n in range(100)]
    text = shown(many, {f"build/{n}": f"box-{n:03}" for n in range(100)})
    assert "and 84 more" in text
    assert "84 jobs" in text
