"""Shows a running release: a progress bar and the time of each step, or plain lines."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


class Bars(Progress):
    """The progress bars, with a runner's own content above them."""

    above: Callable[[], Iterable[RenderableType]] = staticmethod(lambda: ())

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from self.above()
        yield from super().get_renderables()


class Display:
    def __init__(self, *, verbose: bool = False) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.verbose = verbose
        self.summary: list[tuple[str, int, int, float, str]] = []
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[now]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    @contextmanager
    def live(self) -> Iterator[None]:
        with self._bars:
            yield

    def show_above(self, content: Callable[[], Iterable[RenderableType]]) -> None:
        """Shows more content during a run, renewed with the bars."""
        self._bars.above = content

    def say(self, text: str) -> None:
        """Prints one line that must not be missed: a choice made, something installed or started."""
        self._bars.console.print(text, markup=False)

    def show_summary(self) -> None:
        table = Table(title="Release")
        for column in ("step", "tasks", "unchanged", "seconds", "verdict"):
            table.add_column(
                column, justify="right" if column not in ("step", "verdict") else "left"
            )
        for step, total, reused, seconds, verdict in self.summary:
            table.add_row(step, str(total), str(reused), f"{seconds:.1f}", verdict)
        self.console.print(table)


class StepDisplay:
    """The bar of one step."""

    def __init__(self, display: Display, name: str, total: int, reused: int) -> None:
        self.display, self.name, self.total, self.reused = display, name, total, reused
        self.began = time.monotonic()
        self.now: list[str] = []
        self.is_open = True
        self.bar = display._bars.add_task(f"{name:8}", total=total, completed=reused, now="")

    def started(self, unit: str) -> None:
        self.now.append(unit)
        self._update(0)

    def finished(self, unit: str, seconds: float, verdict: str) -> None:
        self.now.remove(unit)
        self._update(1)
        if not self.display.console.is_terminal or self.display.verbose:
            self.display.say(f"{self.name:8} {unit:34} {seconds:7.1f} s  {verdict}")

    def found_unchanged(self) -> None:
        """Counts a job as unchanged that seemed to need another run."""
        self.reused += 1
        self._update(1)

    def close(self, verdict: str) -> None:
        """Stops the bar, and adds its step to the summary, unless that is done."""
        if not self.is_open:
            return
        self.is_open = False
        seconds = time.monotonic() - self.began
        self.display._bars.stop_task(self.bar)
        self.display.summary.append((self.name, self.total, self.reused, seconds, verdict))
        if self.reused == self.total and not self.display.console.is_terminal:
            self.display.say(f"{self.name:8} unchanged ({self.total})")

    def _update(self, advance: int) -> None:
        self.display._bars.update(self.bar, advance=advance, now=", ".join(self.now))
