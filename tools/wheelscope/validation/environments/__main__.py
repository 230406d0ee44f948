"""`python -m validation.environments [NAME ...]`: compares `wheelscope env` with `import` in real
environments, as a page.

Each environment of tests/environments.toml is made in a container, asked and deleted.
"""

import argparse
import json
import shutil
import statistics
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation import containers
from validation.program import ROOT

LIST = ROOT / "tests/environments.toml"
PAGE = ROOT / "docs/environments.md"
RESULTS = ROOT / "build/environments"
INSIDE = Path(__file__).with_name("inside.py")
HEAD = """# What an environment says, and what Python says

`make env-compare` makes [these environments](../tests/environments.toml) in containers, one after the
other, and asks of every package with libraries in them: `wheelscope env`, and `python -c "import ..."` for each name
that the package is imported by. This page is what it wrote. There is no GPU and no driver in these containers: a
library that needs libcuda.so.1 does not load there.

| environment | size | packages | the same | differ |
|---|---:|---:|---:|---:|
"""
WORDS = {"yes": "loads", "depends": "depends on Python code", "no": "does not load"}


@dataclass(frozen=True)
class Outcome:
    name: str
    what: str
    gigabytes: float
    seconds: list[float]
    distributions: list[dict[str, Any]]

    def differing(self) -> list[str]:
        return [one["name"] for one in self.distributions if not agrees(one)]


def fails(distribution: dict[str, Any]) -> str | None:
    """Returns Python's message for the first of its names that cannot be imported."""
    return next((word for word in distribution["python"].values() if word), None)


def agrees(distribution: dict[str, Any]) -> bool:
    """True if an answer agrees with Python; one that depends on Python code is always right."""
    if distribution["loads"] == "depends":
        return True
    says_no: bool = distribution["loads"] == "no"
    return says_no == (fails(distribution) is not None)


def ask(name: str, facts: dict[str, Any]) -> Outcome:
    suite = containers.SUITES[facts["suite"]]
    site = RESULTS / name / "site-packages"
    if not site.exists():
        for step in facts["steps"]:
            if "install" in step:
                containers.install(suite, site, step["install"])
            else:
                containers.uninstall(site, step["uninstall"])
    done = containers.run(
        suite, site, ["python", "/inside.py"], mounts={INSIDE: "/inside.py"}, limit=3600
    )
    if done.returncode:
        raise SystemExit(f"error: the environment {name} could not be asked: {done.stderr}")
    answer = json.loads(done.stdout)
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    return Outcome(name, facts["what"], size / 1e9, answer["seconds"], answer["distributions"])


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def table(outcome: Outcome, explained: dict[str, str]) -> str:
    """Returns a table of the packages that do not simply load and import."""
    lines = [f"\n## {outcome.name}: {outcome.what}\n"]
    told = []
    for one in outcome.distributions:
        word = fails(one)
        if one["loads"] == "yes" and word is None:
            continue
        reason = explained.get(one["name"], "to be explained")
        mark = "" if agrees(one) else f"; **differs**: {reason}"
        told.append(
            f"| {one['name']} {one['version']} | {WORDS[one['loads']]}{mark} "
            f"| {cell(word) if word else 'imports'} |"
        )
    loading = len(outcome.distributions) - len(told)
    if told:
        lines += ["| package | `wheelscope env` | Python |", "|---|---|---|", *told, ""]
    lines.append(f"{loading} other packages load, and can be imported.\n")
    return "\n".join(lines)


def page(outcomes: list[Outcome], environments: dict[str, Any]) -> str:
    text = HEAD
    for one in outcomes:
        count, differing = len(one.distributions), len(one.differing())
        text += f"| {one.name} | {one.gigabytes:.1f} GB | {count} | {count - differing} | {differing} |\n"
    return text + "".join(
        table(one, environments[one.name].get("explained", {})) for one in outcomes
    )


def main() -> int:
    environments = tomllib.loads(LIST.read_text())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", default=list(environments), help="one that the list has")
    parser.add_argument("--keep", action="store_true", help="do not delete what was installed")
    arguments = parser.parse_args()
    for name in arguments.name:
        outcome = ask(name, environments[name])
        (RESULTS / f"{name}.json").write_text(json.dumps(vars(outcome)))
        if not arguments.keep:
            shutil.rmtree(RESULTS / name)
        took = f"`wheelscope env` took {statistics.median(outcome.seconds):.2f} s"
        count = len(outcome.distributions)
        print(f"{name}: {count} packages, differing: {outcome.differing()}; {took}", flush=True)
    saved = [RESULTS / f"{name}.json" for name in environments]
    outcomes = [Outcome(**json.loads(file.read_text())) for file in saved if file.exists()]
    PAGE.write_text(page(outcomes, environments))
    unexplained = [
        f"{outcome.name}: {name}"
        for outcome in outcomes
        for name in outcome.differing()
        if name not in environments[outcome.name].get("explained", {})
    ]
    print(f"unexplained: {unexplained or 'none'}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
