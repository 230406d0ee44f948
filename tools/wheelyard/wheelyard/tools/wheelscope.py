"""Runs wheelscope, the wheel inspector; no other module does."""

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from wheelyard.core import environment, shell
from wheelyard.core.digest import sha256
from wheelyard.problem import Problem


def program() -> Path:
    """Returns the path of wheelscope: WHEELSCOPE, or the one beside this Python, or the one on PATH."""
    found = os.environ.get("WHEELSCOPE") or shutil.which("wheelscope", path=environment.path())
    if not found or not Path(found).exists():
        raise Problem(
            "wheelscope is missing; `pip install wheelscope`, or build it: `make wheelscope`"
        )
    return Path(found).resolve()


@functools.cache
def digest() -> str | None:
    """Returns the sha256 of the program, or None if it is missing: its verdicts are inputs of what follows from
    them."""
    try:
        return sha256(program())
    except Problem:
        return None


def _ask(*words: str | Path) -> Any:
    done = subprocess.run(
        [program(), *words, "--json"], capture_output=True, text=True, env=environment.make("/")
    )
    if done.returncode > 1:
        (wheel, *_) = (word.name for word in words if isinstance(word, Path))
        raise Problem(f"wheelscope cannot read {wheel}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def show(wheel: Path) -> dict[str, Any]:
    """Returns what wheelscope sees in a wheel."""
    (facts,) = _ask("show", wheel)["items"]
    return dict(facts)


def thin(wheel: Path, gpu: str, label: str, folder: Path, log: Path) -> None:
    """Writes the variant of a wheel for a GPU into a folder."""
    command = [program(), "thin", wheel, "--gpu", gpu, "--variant", label, "-o", folder]
    shell.run(command, log, what=f"making the variant {label} of {wheel.name}")


def same_code(wheel: Path, variants: list[Path]) -> list[str]:
    """Returns the GPUs that find the same code in one of the variants as in their wheel. Raises if a variant differs in
    anything else, or lacks what it promises."""
    found = [finding for item in _ask("check", *variants)["items"] for finding in item["findings"]]
    wrong = [finding["what"] for finding in found if finding["id"].startswith("variant")]
    answer = _ask("thin", "--check", wheel, *variants)["thin_check"]
    wrong += [f"{d['path']}: {d['difference']}" for d in answer["differences"]]
    if wrong:
        raise Problem(f"these are not variants of {wheel.name}: {'; '.join(wrong)}")
    return list(answer["same_for"])


def check(wheel: Path, policy: Path, log: Path) -> None:
    """Raises unless a wheel is what the policy wants."""
    command = [program(), "check", "--policy", policy, wheel]
    shell.run(command, log, what=f"wheelscope check of {wheel.name}")


def cover(wheels: list[Path], matrix: Path, log: Path) -> None:
    """Raises unless every cell of a matrix is served."""
    shell.run([program(), "cover", "--matrix", matrix, *wheels], log, what="wheelscope cover")


def link(wheel: Path, torch: Path, log: Path) -> None:
    """Raises unless every symbol that a wheel needs is in a torch's wheel."""
    shell.run([program(), "link", wheel, torch], log, what=f"linking {wheel.name} to {torch.name}")
