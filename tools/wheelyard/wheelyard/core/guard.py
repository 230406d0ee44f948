"""Stops the programs that a killed run has left running, before they interfere with the next run.

The guard is a separate process, which is told through a pipe which process groups are running. The system closes that
pipe when the run ends, however it ends; the guard then kills the groups it still knows of, with all their children.
Containers are not children: a program that the guard runs after a kill removes them. If the guard was killed too, the
next run kills the programs that it finds: each has the run's temporary folder in its environment.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

PROGRAM = """
import json, os, signal, subprocess, sys
groups, after_a_kill = set(), []
for line in sys.stdin:
    if line[0] == "!":
        after_a_kill = json.loads(line[1:])
    else:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
if after_a_kill:
    subprocess.run(after_a_kill)
"""
_groups: set[int] = set()
_after_a_kill: list[str] = []
_turn = threading.Lock()
_process: "subprocess.Popen[bytes] | None" = None


def run_after_a_kill(command: list[str]) -> None:
    """Tells the guard to run `command` if this process is killed; an empty command cancels that."""
    with _turn:
        _after_a_kill[:] = command
        _tell(f"!{json.dumps(command)}")


def watch(group: int) -> None:
    """Tells the guard to kill this group of processes when this program ends."""
    with _turn:
        _groups.add(group)
        _tell(f"+{group}")


def forget(group: int) -> None:
    """Tells the guard that a group has ended, as its number may be reused."""
    with _turn:
        _groups.discard(group)
        _tell(f"-{group}")


def _tell(line: str) -> None:
    global _process
    lines = [line]
    if _process is None or _process.poll() is not None:  # not started yet, or killed
        _process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        lines = [f"!{json.dumps(_after_a_kill)}", *(f"+{group}" for group in sorted(_groups))]
    assert _process.stdin is not None
    _process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    _process.stdin.flush()


def end_leftovers(work: Path) -> None:
    """Kills the programs of an earlier run, whose temporary files are below `work`. No other run may be using it."""
    sign = os.fsencode(f"TMPDIR={work}/")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            settings = (process / "environ").read_bytes().split(b"\0")
            is_ours = int(process.name) == os.getpid()
            if not is_ours and any(setting.startswith(sign) for setting in settings):
                os.kill(int(process.name), signal.SIGKILL)


@atexit.register
def _end() -> None:
    if _process is not None:
        _process.communicate(b"![]\n")
