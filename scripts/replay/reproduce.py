"""Asks Python itself: the wheel of each case is put into its environment and imported there.

What Python said is written into the case. Environments are made once, in build/replay, and may be deleted.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from scripts.replay.cases import FOLDER, ROOT, Case, Environment, load_cases, load_environments

PLACE = ROOT / "build/replay"


def uv(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["uv", *words], capture_output=True, text=True)


def make(environment: Environment) -> Path:
    prefix = PLACE / environment.name
    if not prefix.exists():
        commands: tuple[tuple[str | Path, ...], ...] = (
            ("venv", "--quiet", "--python", environment.python, prefix),
            ("pip", "install", "--quiet", "--python", prefix, *environment.requirements),
        )
        for words in commands:
            done = uv(*words)
            if done.returncode:
                raise SystemExit(
                    f"error: the environment {environment.name} cannot be made: {done.stderr}"
                )
    return prefix  # fmt: skip


def imported(case: Case, prefix: Path, with_torch: bool) -> str | None:
    """Python's last word; None: the import works."""
    target = PLACE / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    python = ("--python-version", case.python) if case.python else ()
    words = ("pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target", target)
    done = uv(*words, "--python", prefix, *python, case.wheel)
    if done.returncode:
        raise SystemExit(f"error: {case.wheel} cannot be installed: {done.stderr}")
    code = ("import torch; " if with_torch else "") + f"import {case.module}"
    run = subprocess.run(
        [prefix / "bin/python", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(target)},
        cwd=PLACE,
    )
    if run.returncode == 0:
        return None
    lines = run.stderr.strip().splitlines() or [f"ended by signal {-run.returncode}"]
    # torch tells the loader's word in the line of the first exception of the chain
    said = [
        line
        for line in lines
        if re.search(r"undefined symbol|cannot open shared|not found \(req", line)
    ]
    word = (said or lines[-1:])[0].strip()
    return word.replace(str(target) + "/", "").replace(str(prefix) + "/", "")  # fmt: skip


def write(path: Path, cases: list[tuple[Case, str | None]]) -> None:
    head = path.read_text().partition("[[case]]")[0]
    text = head
    for case, word in cases:
        facts = {
            "wheel": case.wheel,
            "environment": case.environment,
            "module": case.module,
            "report": case.report,
            "python": case.python,
            "word": word,
        }
        text += "[[case]]\n"
        for key, value in facts.items():
            text += f"{key} = {json.dumps(value)}\n" if value is not None else ""
        text += "\n"
    path.write_text(text.rstrip("\n") + "\n")


def reproduce(kinds: list[str]) -> None:
    environments = load_environments()
    PLACE.mkdir(parents=True, exist_ok=True)
    cases = load_cases()
    for kind in kinds or sorted({case.kind for case in cases}):
        said = []
        for case in cases:
            if case.kind != kind:
                continue
            environment = environments[case.environment]
            said.append((case, imported(case, make(environment), bool(environment.torch))))
            print(f"{case.wheel} in {case.environment}: {said[-1][1] or 'works'}", flush=True)
        write(FOLDER / f"{kind}.toml", said)
