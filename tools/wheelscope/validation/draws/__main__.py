"""`python -m validation.draws env|fit SEED COUNT PROGRAM FOLDER`: compares verdicts on drawn
packages with Python's answers.

FOLDER/draw.json is written before anything is tried, and FOLDER/results.json after each row, so
that an interrupted run continues where it stopped. Without `uv` on PATH nothing can be installed.
"""

import collections
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from validation.draws import draw, outcome
from validation.draws.draw import Row
from validation.fresh import UV, fresh_environment, run

INSTALL = [UV, "pip", "install", "--quiet", "--only-binary=:all:"]


class Environment:
    """A fresh environment in a folder, in place of the last one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python, settings = fresh_environment(folder)
        self.prefix = folder / "environment"
        self.site = next(self.prefix.glob("lib/python3*/site-packages"))
        # For this environment only: another one has files at the same paths.
        self.settings = settings | {"PYTHONPYCACHEPREFIX": str(self.prefix / "bytecode")}
        self.limits = folder / "limits.txt"
        self.limits.write_text("".join(f"{name}<0\n" for name in draw.TOO_LARGE))

    def install(self, *words: str) -> str:
        """Returns the installer's complaint; empty if it succeeded."""
        done = run([*INSTALL, f"--constraint={self.limits}", *words], env=self.settings)
        return done.stderr.strip()[-400:] if done.returncode else ""

    def judged(self, program: str, *words: str) -> Any:
        done = run([program, *words, "--json"], env=self.settings, timeout=600)
        if not done.stdout:
            raise SystemExit(f"error: {words}: {done.stderr}")
        return json.loads(done.stdout)

    def ask(self, name: str) -> str | None:
        return outcome.imported(self.python, name, self.settings, self.folder)


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
        run([UV, "pip", "uninstall", "--quiet", package], env=environment.settings)
        return f"uninstall {package}"
    if kind == "other version" and (choices := draw.versions(package)):
        version = f"{package}=={one_of(choices, row['pick_version'])}"
        return "nothing" if environment.install("--no-deps", version) else f"{version} over it"
    return "nothing"


def try_environment(row: Row, program: str, folder: Path) -> Row:
    environment = Environment(folder)
    drawn = [one for one in row["install"] if not environment.install(one)]
    if row["numpy"] and "numpy" in outcome.installed(environment.site):
        environment.install("--no-deps", row["numpy"])
    harmed = harm(environment, row, drawn)
    there = outcome.installed(environment.site)
    cases = []
    for verdict in environment.judged(program, "env", str(environment.prefix))["distributions"]:
        if verdict["name"] in there:
            truth, said = outcome.of_import(there[verdict["name"]], environment.ask)
            cases.append(
                {"verdict": verdict["loads"], "truth": truth, "said": said, "answer": verdict}
            )
    return {**row, "installed": drawn, "harmed": harmed, "cases": cases}


def try_package(row: Row, program: str, folder: Path) -> Row:
    environment = Environment(folder)
    if row["beside"]:
        environment.install(row["beside"])
    answer = environment.judged(program, "fit", "--timeout=60", row["ask"])["fit"][0]
    verdict = answer["files"][0]["verdict"] if answer["files"] else "fails"
    said: dict[str, str | None] = {}
    if failed := environment.install(row["ask"]):
        truth = "not installed"
        said[""] = failed
    else:
        name = outcome.canonical(row["ask"].split("==")[0])
        truth, said = outcome.of_import(outcome.installed(environment.site)[name], environment.ask)
    return {**row, "cases": [{"verdict": verdict, "truth": truth, "said": said, "answer": answer}]}


def summary(results: list[Row]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    lines = []
    for number, row in enumerate(results):
        for case in row["cases"]:
            judged = outcome.judgement(case["verdict"], case["truth"])
            counts[judged if judged != "not counted" else f"{judged}: {case['truth']}"] += 1
            if judged.startswith("FALSE"):
                answer = case["answer"]
                what = f"{answer['name']} {answer['version']}" if "name" in answer else row["ask"]
                error = next((error for error in case["said"].values() if error), "imports")
                lines.append(
                    f"{number}: {what}: {judged}: {error} ({row.get('harmed', row.get('beside'))})"
                )
    return "\n".join([*lines, str(dict(sorted(counts.items())))])


def main() -> None:
    kind, seed, count, program = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    folder = Path(sys.argv[5]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    written, kept = folder / "draw.json", folder / "results.json"
    if not written.exists():
        drawn = {"env": draw.environments, "fit": draw.packages}[kind](seed, count)
        written.write_text(json.dumps(drawn, indent=1))
    results: list[Row] = json.loads(kept.read_text()) if kept.exists() else []
    for row in json.loads(written.read_text())[len(results) :]:
        results.append({"env": try_environment, "fit": try_package}[kind](row, program, folder))
        kept.write_text(json.dumps(results, indent=1))
        print(len(results), summary(results[-1:]), file=sys.stderr, flush=True)
    for made in ("environment", "cache"):
        shutil.rmtree(folder / made, ignore_errors=True)
    print(summary(results))


if __name__ == "__main__":
    main()
