"""Runs other programs with their output in a log file. A failure becomes a Problem that shows its cause, the end of the
log, and advice on the commonest causes."""

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from wheelyard.core import environment, guard
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
        process = subprocess.Popen(
            words, stdin=source, stdout=output, stderr=output, cwd=cwd or home, start_new_session=True,
            env=environment.make(home, allow, env), umask=environment.UMASK,
        )  # fmt: skip
        guard.watch(process.pid)  # it ends when this program ends, however that happens
        running[process] = threading.get_ident()
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Problem(
                f"{what} was stopped: it had not ended after {limit:.0f} s\n{tail(log)}"
            ) from None
        finally:
            guard.forget(process.pid)
            running.pop(process, None)
    if code != 0:
        raise Problem(f"{what} failed (exit code {code})\n{tail(log)}")


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
    found = cause(lines)
    count = LINES_BELOW_A_CAUSE if found else TAIL_LINES
    shown = [f"  > {line}" for line in found] + [f"  | {line[:300]}" for line in lines[-count:]]
    return "\n".join([*shown, *hints(lines), f"The whole log: {log}"])


# --- Why a program failed -------------------------------------------------------------------------

SHOWN_LINES = 4  # lines shown of a cause: a compiler prints the source line below its message
LONGEST = 300
# Removes the images that no container uses.
PRUNE = "`docker image prune --all --filter label=wheelyard.image`"
# Patterns of causes, the surest first. Only the first match of each counts: later ones follow from it.
CAUSES = [
    re.compile(r"^\S.*?(:\d+(:\d+)?:|\(\d+\):) (fatal |catastrophic )?error\b"),  # g++, clang, nvcc
    re.compile(r"^\S+\.pyx:\d+:\d+: "),  # Cython
    re.compile(r"^CMake Error( at .+:\d+)?"),
    re.compile(r"undefined reference to |cannot find -l"),
    re.compile(r"^error in .+ setup command: "),  # setuptools
    re.compile("This does not look like a platform wheel"),  # auditwheel
    re.compile(r"^ERROR: (No matching distribution|Could not find a version|Cannot install) .+"),
    re.compile(r"no trusted hash was provided for"),  # uv
    re.compile(r"^ERROR: (In --require-hashes mode|THESE PACKAGES DO NOT MATCH THE HASHES)"),  # pip
    re.compile(r"^(E  +)?(ImportError|ModuleNotFoundError|OSError): .+"),
    re.compile(r"^E  +\S"),  # pytest
]
HINTS = {  # advice, by a pattern that a line of the log matches
    "No space left on device": "The disk is full: free some space, then run again. `docker system df` shows what "
    f"images and their layers take; {PRUNE} removes wheelyard's.",
    "TLS handshake timeout": "The image registry is not reachable: `--base debian` needs none.",
    "Killed signal terminated program": "The compiler ran out of memory: raise [build] job_memory_mb in the matrix, so "
    "that fewer run side by side.",
    "ERROR: No matching distribution found": "The package index lacks that version, or a wheel of it for this Python "
    "and CPU.",
    "no trusted hash was provided for": "The lock lacks a package: pin everything that torch needs in ci/torch.lock, "
    "with `uv pip compile --generate-hashes`.",
    "In --require-hashes mode": "The lock that `requires` names lacks a package: make a complete one with "
    "`uv pip compile --universal --generate-hashes`.",
    "FetchContent.cmake": "A build has no network. If this is a download, name its URL and sha256 in the matrix, as "
    '[[build.downloads]], and tell CMake where it is: CMAKE_ARGS = "-DFETCHCONTENT_SOURCE_DIR_<NAME>=...".',
    r"fatal error: \S+\.h\w*: No such file|cannot find -l": "If a Debian package has it, name that package "
    'in the matrix, such as [build] apt = ["libgmp-dev"].',
    "This does not look like a platform wheel": "The build made no library. If its log has `Unknown distribution "
    "option`, name the package that adds this option, such as cffi, in the matrix: [build] requires.",
    "No module named 'torch'": "The build needs torch but does not require it: add it to [build-system] requires.",
}


def cause(lines: list[str]) -> list[str]:
    """Returns the lines of a log that show the cause; empty if no cause is recognised."""
    for pattern in CAUSES:
        for number, line in enumerate(lines):
            if pattern.search(_plain(line)):
                return [_plain(text)[:LONGEST] for text in lines[number : number + SHOWN_LINES]]
    return []


def hints(lines: list[str]) -> list[str]:
    """Returns advice on the causes that are known."""
    return [
        hint for seen, hint in HINTS.items() if any(re.search(seen, _plain(line)) for line in lines)
    ]


def _plain(line: str) -> str:
    """Strips colours, and the clock that image builds print at the start of each line."""
    return re.sub(
        r"^(#\d+ \d+\.\d+ +)|^ {2,}(?=\S+:\d+)", "", re.sub(r"\x1b\[[0-9;]*[mK]", "", line)
    )
