"""Tests the gate: ordinary extension wheels pass check-wheel-contents, the policy's levels switch its findings, and
variants are compared with their wheel."""

import subprocess
import sys
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import workspace
from wheelyard.core.job import Job, Needs
from wheelyard.problem import Problem
from wheelyard.steps import gate
from wheelyard.tools import wheelscope

ORDINARY = {
    "a module beside the package": ("demo_ops.cpython-311-x86_64-linux-gnu.so",),
    "a library that repair copied in": ("demo_ext.libs/libgomp-a34b3233.so.1.0.0",),
}


def findings(wheel: Path, levels: dict[str, str]) -> list[str]:
    """Returns the ids that check-wheel-contents still reports."""
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


def test_other_tools_take_a_thinned_wheel_as_they_took_it_whole(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, gpus=("8.0", "9.0+PTX"))
    words = ["thin", wheel, "--gpu", "9.0", "-o", tmp_path / "thin"]
    subprocess.run([wheelscope.program(), *words], check=True)
    thinned = tmp_path / "thin" / wheel.name
    assert thinned.stat().st_size < wheel.stat().st_size
    assert findings(thinned, {}) == findings(wheel, {})
    for words in (
        ["twine", "check", thinned],
        ["auditwheel", "show", thinned],
        ["pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "installed", thinned],
    ):
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def judged(folder: Path, wheel: Path, **gpus: str) -> str:
    """Returns what the gate says of a wheel and its variants, each given as a label and the GPU that it is thinned
    for."""
    variants = folder / "variants"
    for label, gpu in gpus.items():
        wheelscope.thin(wheel, gpu, label, variants, folder / "log")
    made = {"wheel": [wheel], "variants": sorted(variants.iterdir())}
    here = workspace(folder, made)
    return gate.run(Job("gate", "x-variants", Needs(), here.inputs), here)


def test_variants_have_all_that_their_wheel_has(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, gpus=("8.0", "9.0+PTX"))
    with pytest.raises(Problem, match=r"has native code for 9\.0, which no variant of it has"):
        judged(tmp_path, wheel, sm80="8.0")
    said = judged(tmp_path, wheel, sm90="9.0")
    assert said == "2 variants serve 8.0, 8.6, 8.9, 9.0"


def test_a_variant_of_another_wheel_is_refused(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / text, text=text, gpus=("8.0", "9.0")) for text in ("a", "b")]
    judged(tmp_path, wheels[0], sm80="8.0", sm90="9.0")
    with pytest.raises(Problem, match=r"are not variants of .*: demo_ext\.py"):
        judged(tmp_path, wheels[1])


def test_a_variant_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, gpus=("8.0", "9.0"))
    judged(tmp_path, wheel, sm80="8.0", sm90="9.0")
    (variant,) = (tmp_path / "variants").glob("*-sm90.whl")
    variant.rename(variant.with_name(variant.name.replace("sm90", "sm120")))
    with pytest.raises(Problem, match=r"the label 'sm120', and variant\.json names 'sm90'"):
        judged(tmp_path, wheel)
