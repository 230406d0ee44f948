"""Asks Python itself: unpacks the wheel of each case into its environment and imports it there, in
a container.

Writes Python's message into the case. Environments are made once, in build/replay, and may be
deleted.
"""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from validation import containers, pypi
from validation.corpus.download import pip_options
from validation.replay.cases import (
    CASES,
    ROOT,
    Case,
    Environment,
    load_cases,
    load_environments,
    write_rows,
)

PLACE = ROOT / "build/replay"
SAID = re.compile(r"undefined symbol|cannot open shared|not found \(req|wrong ELF class")


def make(environment: Environment) -> Path:
    """Makes an environment; returns the folder of its packages."""
    assert environment.suite
    site = PLACE / environment.name
    if not site.exists():
        containers.install(environment.suite, site, environment.requirements)
    return site


def unpack(case: Case, environment: Environment, target: Path) -> None:
    """Puts the wheel into a folder, whatever system and Python it is for."""
    assert environment.suite
    shutil.rmtree(target, ignore_errors=True)
    if case.wheel.endswith(".whl"):
        requirement, options = pip_options(case.wheel)
        pypi.download(requirement, PLACE, options)
        with zipfile.ZipFile(PLACE / case.wheel) as members:
            members.extractall(target)
        (PLACE / case.wheel).unlink()
    else:
        python = [f"--python-version={case.python}"] if case.python else []
        containers.install(environment.suite, target, ["--no-deps", *python, case.wheel])


def imported(case: Case, environment: Environment) -> str | None:
    """Returns Python's message; None if the import works."""
    assert environment.suite
    target = PLACE / "wheel"
    unpack(case, environment, target)
    code = ("import torch; " if environment.torch else "") + f"import {case.module}"
    run = containers.run(
        environment.suite,
        make(environment),
        ["python", "-c", code],
        mounts={target: "/wheel"},
        variables={"PYTHONPATH": "/wheel"},
    )
    return last_word(run)


def last_word(run: subprocess.CompletedProcess[str]) -> str | None:
    """Returns Python's last message; None if nothing is wrong."""
    if run.returncode == 0:
        return None
    lines = run.stderr.strip().splitlines() or [f"ended by signal {run.returncode - 128}"]
    # torch puts the loader's message in the line of the first exception of the chain
    said = [line for line in lines if SAID.search(line)]
    word = (said or lines[-1:])[0].strip()
    return word.replace("/wheel/", "").replace(f"{containers.PREFIX}/", "")


def reproduce(kinds: list[str]) -> None:
    environments = load_environments()
    PLACE.mkdir(parents=True, exist_ok=True)
    cases = load_cases()
    for kind in sorted({case.kind for case in cases if not case.message}):
        if kinds and kind not in kinds:
            continue
        said: list[dict[str, Any]] = []
        for case in cases:
            if case.kind != kind:
                continue
            word = None if case.message else imported(case, environments[case.environment])
            said.append(vars(case) | {"kind": None, "word": word})
            if not case.message:
                print(f"{case.wheel} in {case.environment}: {word or 'works'}", flush=True)
        write_rows(CASES, kind, said)
