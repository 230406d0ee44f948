"""Runs other programs with their output in a log file. A failure becomes a Problem that shows the end of the log."""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO

from wheelyard.core import cause, environment, guard
from wheelyard.problem import Problem

TAIL_LINES = 15
LINES_BELOW_A_CAUSE = 3
# The longest builds of real extensions take a night; anything longer hangs.
LIMIT_SECONDS = 24 * 60 * 60
running: dict[subprocess.Popen[bytes], int] = {}  # each with the thread that started it
stopping = threading.Event()  # set while a run is being stopped: nothing new starts


def run(
    command: Sequence[object],
    log: Path,
    *,
    what: str,
    env: Mapping[str, str] | None = None,
    allow: Collection[str] = (),
    cwd: Path | None = None,
    stdin: Path | None = None,
    limit: float = LIMIT_SECONDS,
) -> None:
    """Runs `command` to its end; `what` names it in the message if it fails or runs longer than `limit` seconds.

    Its environment has only the variables of ours that `allow` names, and those in `env`.
    """
    if stopping.is_set():
        raise Problem(f"{what} was not started: the run is being stopped")
    words = [str(word) for word in command]
    with (
        log.open("ab") as output,
        (stdin or Path(os.devnull)).open("rb") as source,
        tempfile.TemporaryDirectory(prefix="home-", ignore_cleanup_errors=True) as home,
    ):
        output.write(f"$ {' '.join(words)}\n".encode())
        output.flush()
        given = environment.make(home, allow, env)
        process = start(words, output, stdin=source, cwd=cwd or Path(home), env=given)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Problem(
                f"{what} was stopped: it had not ended after {limit:.0f} s\n{tail(log)}"
            ) from None
        finally:
            ended(process)
    if code != 0:
        raise Problem(f"{what} failed (exit code {code})\n{tail(log)}")


def start(
    words: Sequence[str],
    output: IO[bytes],
    *,
    env: Mapping[str, str],
    stdin: IO[bytes] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program that ends when this one ends, however that happens."""
    process = subprocess.Popen(
        words, stdin=stdin, stdout=output, stderr=output, cwd=cwd, env=env, start_new_session=True,
        umask=environment.UMASK,
    )  # fmt: skip
    guard.watch(process.pid)
    running[process] = threading.get_ident()
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    """Records that a program from `start` has ended."""
    guard.forget(process.pid)
    running.pop(process, None)


def capture(command: Sequence[object], limit: float = 60) -> str | None:
    """Returns the output of a short command, or None if it fails or does not exist. It asks about this machine, so it
    runs with the user's own settings."""
    given = {**os.environ, **environment.FIXED}
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=limit, env=given
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def stop_all(thread: int | None = None) -> None:
    """Ends every running program, or only those of one thread, each with its children."""
    for process, starter in list(running.items()):
        if thread in (None, starter) and process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)


def tail(log: Path) -> str:
    """Returns the cause of a failure, the last lines of its log, advice if there is any, and the path of the whole
    log."""
    lines = log.read_text(errors="replace").splitlines()
    found = cause.of(lines)
    count = LINES_BELOW_A_CAUSE if found else TAIL_LINES
    shown = [f"  > {line}" for line in found] + [f"  | {line[:300]}" for line in lines[-count:]]
    return "\n".join([*shown, *cause.hints(lines), f"The whole log: {log}"])
