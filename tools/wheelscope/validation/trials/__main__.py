"""`python -m validation.trials env|fit|listed|sets [SEED COUNT]`: compares verdicts with Python's answers.

Each row is tried in a fresh environment of Python 3.11, which uv makes: drawn environments (`env`)
and packages (`fit`), the environments of environments.toml (`listed`), and the sets of sets.csv, as
`fit` chooses them (`sets`). In build/trials, rows.json is written before anything is tried, and
results.json after each row, so that an interrupted run continues where it stopped.
"""

import collections
import csv
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from validation.program import ROOT, WHEELSCOPE
from validation.trials import draw, outcome
from validation.trials.draw import Row

PYTHON = "3.11"  # every torch has wheels for it
HERE = Path(__file__).parent


class Environment:
    """A fresh environment in a folder, in place of the last one."""

    def __init__(self, folder: Path, large: bool = False) -> None:
        self.folder, self.prefix = folder, folder / "environment"
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.settings = {
            **os.environ,
            "UV_CACHE_DIR": str(folder / "cache"),  # large files are shared with it
            "VIRTUAL_ENV": str(self.prefix),
            # For this environment only: another one has files at the same paths.
            "PYTHONPYCACHEPREFIX": str(self.prefix / "bytecode"),
        }
        self.limits = folder / "limits.txt"
        self.limits.write_text("" if large else "".join(f"{name}<0\n" for name in draw.TOO_LARGE))
        self.run("uv", "venv", "--quiet", "--python", PYTHON, str(self.prefix), check=True)
        self.python = str(self.prefix / "bin/python")
        self.site = next(self.prefix.glob("lib/python3*/site-packages"))

    def run(self, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(words, capture_output=True, text=True, env=self.settings, **options)

    def install(self, *words: str) -> str:
        """Returns the installer's complaint; empty if it succeeded."""
        only = ["--only-binary=:all:", f"--constraint={self.limits}"]
        done = self.run("uv", "pip", "install", "--quiet", *only, *words)
        return done.stderr.strip()[-400:] if done.returncode else ""

    def uninstall(self, *names: str) -> str:
        return self.run("uv", "pip", "uninstall", "--quiet", *names).stderr

    def put_on_path(self, *words: str) -> None:
        """Puts the libraries of these packages on LD_LIBRARY_PATH."""
        place = self.prefix / "path"
        self.install("--no-deps", f"--target={place}", *words)
        folders = sorted({str(file.parent) for file in place.rglob("*.so*")})
        self.settings["LD_LIBRARY_PATH"] = ":".join(folders)

    def judged(self, *words: str) -> Any:
        done = self.run(str(WHEELSCOPE), *words, "--json", timeout=600)
        if not done.stdout:
            raise SystemExit(f"error: {words}: {done.stderr}")
        return json.loads(done.stdout)

    def ask(self, name: str) -> str | None:
        return outcome.imported(self.python, name, self.settings, self.folder)

    def cases(self) -> list[Row]:
        """Judges and imports every package."""
        there = outcome.installed(self.site)
        cases = []
        for verdict in self.judged("env", str(self.prefix))["distributions"]:
            if verdict["name"] in there:
                truth, said = outcome.of_import(there[verdict["name"]], self.ask)
                cases.append(
                    {"verdict": verdict["loads"], "truth": truth, "said": said, "answer": verdict}
                )
        return cases


def one_of(several: list[Any], pick: float) -> Any:
    return several[int(pick * len(several))]


def harm(environment: Environment, row: Row, drawn: list[str]) -> str:
    """Damages an environment as drawn, and says how."""
    there = outcome.installed(environment.site)
    kind, pick = row["harm"], row["pick"]
    package = one_of(sorted(there), pick) if there else ""
    ours = [requirement for requirement in drawn if requirement.split("==")[0] in there]
    if kind in ("delete", "shorten"):
        files = sorted(
            Path(path.locate())
            for requirement in ours
            for path in there[requirement.split("==")[0]].files or []
            if path.name.endswith(row["files"])
        )
        if not files:
            return "nothing"
        file = one_of(files, pick)
        whole = file.read_bytes()
        file.unlink()  # it may share its bytes with the installer's cache
        if kind == "shorten":
            file.write_bytes(whole[: len(whole) // 2])
        return f"{kind} {file.relative_to(environment.site)}"
    if kind in ("other processor", "other Python") and ours:
        requirement = one_of(ours, pick)
        words = {
            "other processor": "--python-platform=aarch64-manylinux_2_28",
            "other Python": "--python-version=3.12",
        }
        failed = environment.install("--no-deps", "--reinstall", words[kind], requirement)
        return "nothing" if failed else f"{requirement} is that for {kind}"
    if kind == "uninstall" and package:
        environment.uninstall(package)
        return f"uninstall {package}"
    if kind == "other version" and (choices := draw.versions(package)):
        version = f"{package}=={one_of(choices, row['pick_version'])}"
        return "nothing" if environment.install("--no-deps", version) else f"{version} over it"
    return "nothing"


def try_environment(row: Row, folder: Path) -> Row:
    environment = Environment(folder)
    drawn = [one for one in row["install"] if not environment.install(one)]
    if row["numpy"] and "numpy" in outcome.installed(environment.site):
        environment.install("--no-deps", row["numpy"])
    harmed = harm(environment, row, drawn)
    return {**row, "installed": drawn, "harmed": harmed, "cases": environment.cases()}


def try_listed(row: Row, folder: Path) -> Row:
    environment = Environment(folder, large=True)
    for step in row["steps"]:
        for verb, words in step.items():
            if failed := getattr(environment, verb)(*words):
                raise SystemExit(f"error: {row['name']}: {failed}")
    if row.get("path"):
        environment.put_on_path(*row["path"])
    explained = row.get("explained", {})
    cases = [one for one in environment.cases() if one["answer"]["name"] not in explained]
    return {**row, "cases": cases}


def try_package(row: Row, folder: Path) -> Row:
    environment = Environment(folder)
    if row["beside"]:
        environment.install(row["beside"])
    answer = environment.judged("fit", "--timeout=60", row["ask"])["fit"][0]
    verdict = answer["files"][0]["verdict"] if answer["files"] else "fails"
    said: dict[str, str | None] = {}
    if failed := environment.install(row["ask"]):
        truth, said[""] = "not installed", failed
    else:
        name = outcome.canonical(row["ask"].split("==")[0])
        truth, said = outcome.of_import(outcome.installed(environment.site)[name], environment.ask)
    return {**row, "cases": [{"verdict": verdict, "truth": truth, "said": said, "answer": answer}]}


def try_set(row: Row, folder: Path) -> Row:
    """Installs what `fit` chose; or, where it finds no set, what uv chooses."""
    environment = Environment(folder, large=True)
    asked = row["asked"].split()
    answer = environment.judged("fit", "--format=set", "--timeout=60", *asked)["fit_set"]
    chosen = answer["packages"]
    works = all(one["judged"]["verdict"] == "works" for one in chosen)
    verdict = ("works" if works else "depends") if answer["found"] else "fails"
    pins = [f"{one['name']}=={one['version']}" for one in chosen]
    failed = environment.install(*(["--no-deps", *pins] if answer["found"] else asked))
    said = {"": failed} if failed else {one: environment.ask(one) for one in row["imports"].split()}
    truth = "fails" if any(said.values()) else "imports"
    return {**row, "cases": [{"verdict": verdict, "truth": truth, "said": said, "answer": answer}]}


def listed(*_: int) -> list[Row]:
    named = tomllib.loads((HERE / "environments.toml").read_text()).items()
    return [{"name": name, **facts} for name, facts in named]


def sets(*_: int) -> list[Row]:
    with (HERE / "sets.csv").open() as file:
        return [{key: row[key] for key in ("asked", "imports")} for row in csv.DictReader(file)]


KINDS: dict[str, tuple[Callable[..., list[Row]], Callable[[Row, Path], Row]]] = {
    "env": (draw.environments, try_environment),
    "fit": (draw.packages, try_package),
    "listed": (listed, try_listed),
    "sets": (sets, try_set),
}


def summary(results: list[Row]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    lines = []
    for number, row in enumerate(results):
        for case in row["cases"]:
            judged = outcome.judgement(case["verdict"], case["truth"])
            counts[judged if judged != "not counted" else f"{judged}: {case['truth']}"] += 1
            if judged.startswith("FALSE"):
                answer = case["answer"]
                what = (
                    f"{answer['name']} {answer['version']}" if "name" in answer else answer["asked"]
                )
                error = next((error for error in case["said"].values() if error), "imports")
                where = row.get("name") or row.get("harmed") or row.get("beside")
                lines.append(f"{number}: {what}: {judged}: {error} ({where})")
    return "\n".join([*lines, str(dict(sorted(counts.items())))])


def main() -> None:
    kind, *numbers = sys.argv[1:]
    make, attempt = KINDS[kind]
    folder = ROOT / "build/trials" / "-".join([kind, *numbers])
    folder.mkdir(parents=True, exist_ok=True)
    written, kept = folder / "rows.json", folder / "results.json"
    if not written.exists():
        written.write_text(json.dumps(make(*map(int, numbers)), indent=1))
    results: list[Row] = json.loads(kept.read_text()) if kept.exists() else []
    for row in json.loads(written.read_text())[len(results) :]:
        results.append(attempt(row, folder))
        kept.write_text(json.dumps(results, indent=1))
        print(len(results), summary(results[-1:]), file=sys.stderr, flush=True)
    for made in ("environment", "cache"):
        shutil.rmtree(folder / made, ignore_errors=True)
    print(summary(results))


if __name__ == "__main__":
    main()
