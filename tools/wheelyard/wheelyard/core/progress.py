"""Shows a running release: a line for each job that has ended, and in a terminal a bar with the jobs that run."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Display:
    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._columns = BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn()
        self._running: list[str] = []
        self._bar: Progress | None = None

    @contextmanager
    def live(self, jobs: int) -> Iterator[None]:
        """Shows a bar for so many jobs."""
        now = TextColumn("[dim]{task.description}")
        is_off = not self.console.is_terminal
        with Progress(*self._columns, now, console=self.console, disable=is_off) as self._bar:
            self._bar.add_task("", total=jobs)
            yield

    def say(self, text: str) -> None:
        """Prints one line, above the bar."""
        self.console.print(text, markup=False)

    def started(self, job: str) -> None:
        self._running.append(job)
        self._update(0)

    def ended(self, job: str, result: str) -> None:
        """Prints the line of a job that has ended; an unchanged one never started."""
        if job in self._running:
            self._running.remove(job)
        step, _, unit = job.partition("/")
        self.say(f"{step:8} {unit:34} {result}")
        self._update(1)

    def _update(self, ended: int) -> None:
        if self._bar is not None:
            (bar,) = self._bar.task_ids
            self._bar.update(bar, advance=ended, description=", ".join(self._running))
