"""The gate: ordinary extension wheels pass check-wheel-contents, and the policy's levels switch its findings."""

import subprocess
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.steps import gate

ORDINARY = {
    "a module beside the package": ("demo_ops.cpython-311-x86_64-linux-gnu.so",),
    "a library that repair copied in": ("demo_ext.libs/libgomp-a34b3233.so.1.0.0",),
}


def findings(wheel: Path, levels: dict[str, str]) -> list[str]:
    """The ids that check-wheel-contents still reports."""
    done = subprocess.run(gate.contents_check(wheel, levels), capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    return [line.split(": ")[1] for line in done.stdout.splitlines() if ": W" in line]


@pytest.mark.parametrize("kind", ORDINARY)
def test_an_ordinary_wheel_passes(tmp_path: Path, kind: str) -> None:
    wheel = make_wheel(tmp_path, beside=ORDINARY[kind])
    assert findings(wheel, {}) == []
    assert "W009" in findings(wheel, {"W009": "error", "W010": "error"})


def test_a_level_switches_a_finding_off(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path, beside=("demo_ext/a.txt", "demo_ext/b.txt", "demo_ext/__init__.py")
    )
    assert findings(wheel, {}) == ["W002"]
    assert findings(wheel, {"W002": "off", "size-limit": "off"}) == []
