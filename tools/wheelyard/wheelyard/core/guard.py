"""Stops containers that a killed run has left running, before they interfere with the next run.

A process of its own is told through a pipe which process groups run. The system closes that pipe when the run ends,
however it does, and the groups that are still known then are killed, with all their children. Containers are no
children: a program that the guard runs after a kill removes them. Where the guard was killed too, the next run ends
what it finds: every program of a run has its temporary folder in its environment.
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
    """From now on `command` is run if this process is killed; an empty one takes that back."""
    with _turn:
        _after_a_kill[:] = command
        _tell(f"!{json.dumps(command)}")


def watch(group: int) -> None:
    """Ends this group of processes when this program ends."""
    with _turn:
        _groups.add(group)
        _tell(f"+{group}")


def forget(group: int) -> None:
    """The group has ended, and its number may be another's."""
    with _turn:
        _groups.discard(group)
        _tell(f"-{group}")


def _tell(line: str) -> None:
    global _process
    lines = [line]
    if _process is None or _process.poll() is not None:  # none yet, or somebody has killed it
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
    """Kills the programs of an earlier run, whose temporary files lie below `work`; nobody else may use it now."""
    sign = os.fsencode(f"TMPDIR={work}/")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is over, or another user's
            settings = (process / "environ").read_bytes().split(b"\0")
            is_ours = int(process.name) == os.getpid()
            if not is_ours and any(setting.startswith(sign) for setting in settings):
                os.kill(int(process.name), signal.SIGKILL)


@atexit.register
def _end() -> None:
    if _process is not None:
        _process.communicate(b"![]\n")
