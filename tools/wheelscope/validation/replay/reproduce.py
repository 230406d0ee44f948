"""Asks Python itself: unpacks the wheel of each case into its environment and imports it there, in
a container.

Writes Python's message into the case. Environments are made once, in build/replay, and may be
deleted.
"""

import json
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from validation import containers, pypi
from validation.corpus.download import pip_options
from validation.program import ROOT
from validation.replay.cases import (
    CASES,
    MIXTURES,
    Case,
    Environment,
    Mixture,
    load_cases,
    load_environments,
    load_mixtures,
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


def mix(mixture: Mixture, environment: Environment) -> Mixture:
    """Makes a mixture, and asks Python and wheelscope."""
    assert environment.suite
    suite, site, path = environment.suite, PLACE / "mixture", PLACE / "path"
    for folder in (site, path):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cp", "-al", make(environment), site], check=True)
    if mixture.uninstall:
        containers.uninstall(site, mixture.uninstall)
    if mixture.install:
        containers.install(suite, site, ["--no-deps", *mixture.install])
    path.mkdir()
    if mixture.path:
        containers.install(suite, path, ["--no-deps", *mixture.path])
    folders = sorted({f"/path/{file.parent.relative_to(path)}" for file in path.rglob("*.so*")})

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        variables = {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
        return containers.run(suite, site, words, mounts={path: "/path"}, variables=variables)

    imported = run(["python", "-c", f"import {mixture.distribution}"])
    document = json.loads(run(["wheelscope", "env", containers.PREFIX, "--json"]).stdout)
    (found,) = [o for o in document["distributions"] if o["name"] == mixture.distribution]
    verdict = {"yes": "works", "depends": "depends", "no": "fails"}[found["loads"]]
    if verdict == "works" and found["unmet"]:
        verdict = "depends"  # the requirements are not fulfilled, but it may work
    return replace(mixture, word=last_word(imported), verdict=verdict)


def reproduce_mixtures(kinds: list[str]) -> None:
    environments = load_environments()
    mixtures = load_mixtures()
    for kind in sorted({one.kind for one in mixtures}):
        if kinds and kind not in kinds:
            continue
        asked = []
        for mixture in mixtures:
            if mixture.kind == kind:
                asked.append(mix(mixture, environments[mixture.environment]))
                said = f"{asked[-1].word or 'works'}; wheelscope: {asked[-1].verdict}"
                print(f"{mixture.what} in {mixture.environment}: {said}", flush=True)
        rows = [vars(mixture) | {"kind": None} for mixture in asked]
        write_rows(MIXTURES, kind, rows)
