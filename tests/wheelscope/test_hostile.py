"""Small wheels that are built to exhaust memory: wheelscope stays within what their size justifies,
and ends with findings or as unreadable, never by a signal."""

import json
import subprocess
import sys
from pathlib import Path

import hostile
import pytest
from program import PROGRAM, ROOT

MEBIBYTE = 1 << 20
# The measuring process is a small one: what a child inherits at its start counts as its peak.
MEASURE = """
import json, os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
null = open(os.devnull, "w")
done = subprocess.run(sys.argv[1:], stdout=null, stderr=null)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, peak * 1024]))
"""
COMMANDS = {
    "show": ["show", "{}"],
    "show as JSON": ["show", "--json", "{}"],
    "check": ["check", "{}"],
    "cover": ["cover", "--matrix", str(ROOT / "ci/matrix.toml"), "{}"],
    "link": ["link", "--json", "{}", "{}"],
    "diff": ["diff", "{}", "{}"],
    "symbols": ["dump", "--symbols", "--json", "{}"],
    "ptx": ["dump", "--ptx", "{}"],
}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make wheelscope`")
    return {path.parent.name: path for path in hostile.write(tmp_path_factory.mktemp("hostile"))}


def measure(words: list[str | Path]) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    code, peak = json.loads(done.stdout)
    return code, peak


@pytest.mark.parametrize("command", COMMANDS)
def test_memory_is_what_the_size_justifies(wheels: dict[str, Path], command: str) -> None:
    wrong = []
    for name, path in wheels.items():
        words = [word.format(path) for word in COMMANDS[command]]
        code, peak = measure([PROGRAM, *words])
        limit = 4 * path.stat().st_size * words.count(str(path)) + 256 * MEBIBYTE
        if code not in (0, 1, 3):
            wrong.append(f"{name}: ended with {code}")
        if peak > limit:
            wrong.append(f"{name}: {peak / MEBIBYTE:.0f} MiB, {limit / MEBIBYTE:.0f} allowed")
    assert not wrong, "\n".join(wrong)
