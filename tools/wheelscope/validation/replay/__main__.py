"""`python -m validation.replay [--reproduce [KIND ...]]`: the confusion matrix of wheelscope's verdicts."""

import argparse
import collections
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from validation.program import ask
from validation.replay.cases import (
    Case,
    Environment,
    load_cases,
    load_environments,
    load_mixtures,
    load_reports,
    machine,
)
from validation.replay.reproduce import reproduce, reproduce_mixtures

VERDICTS = ("works", "depends", "fails")
MOST_FALSE_FAILS = 0.03


def judge(case: Case, environment: Environment, machine_file: Path) -> tuple[str, str]:
    """Returns the verdict on the installed file, and its reason."""
    # Device code, and a statically linked CUDA runtime, are behind the bytes that are read first.
    deep = [] if environment.suite else ["--deep"]
    (answer,) = ask("fit", case.project, "--machine", machine_file, *deep)["fit"]
    files = answer["files"]
    if case.wheel.endswith(".whl"):
        files = [one for one in files if one["file"] == case.wheel]
    elif case.python:
        tag = "cp" + case.python.replace(".", "")
        files = [
            one
            for one in files
            if f"-{tag}-{tag}-manylinux" in one["file"] and "x86_64" in one["file"]
        ]
    chosen = files[0]  # an installer prefers it
    return chosen["verdict"], f"{chosen['file']}: {chosen['reason'] or 'works'}"


def recognises(report: dict[str, Any]) -> bool:
    found = ask("explain", report["text"])["explanations"]
    return any(one["kind"] == report["kind"] for one in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--reproduce", metavar="KIND", nargs="*", help="ask Python anew, of all kinds or of some"
    )
    kinds = parser.parse_args().reproduce
    if kinds is not None:
        reproduce(kinds)
        reproduce_mixtures(kinds)
    matrix: collections.Counter[tuple[str, str]] = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        machines = {}
        environments = load_environments()
        for name, environment in environments.items():
            machines[name] = Path(folder) / f"{name}.json"
            machines[name].write_text(json.dumps(machine(environment)))
        cases = load_cases()
        with ThreadPoolExecutor(max_workers=4) as pool:  # they wait for the network
            verdicts = pool.map(
                lambda case: judge(
                    case, environments[case.environment], machines[case.environment]
                ),
                cases,
            )
        for case, (verdict, reason) in zip(cases, verdicts, strict=True):
            matrix[case.happened, verdict] += 1
            if (case.happened == "works" and verdict == "fails") or (
                case.happened != "works" and verdict == "works"
            ):
                wrong.append(
                    f"{case.wheel} in {case.environment} {case.happened}, wheelscope: {reason}"
                )
    for mixture in load_mixtures():
        if mixture.verdict is None:
            raise SystemExit(f"error: {mixture.what} was not asked yet: make replay REPRODUCE=1")
        matrix[mixture.happened, mixture.verdict] += 1
        if {mixture.happened, mixture.verdict} == {"works", "fails"}:
            wrong.append(f"{mixture.what} in {mixture.environment} {mixture.happened}")
    reports = load_reports()
    for report in reports:
        matrix["message", "fails" if recognises(report) else "depends"] += 1
    print(f"{'':12}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for happened in ("works", "fails", "reported", "message"):
        counts = (matrix[happened, verdict] for verdict in VERDICTS)
        print(f"{happened:12}" + "".join(f"{count:9}" for count in counts))
    for line in wrong:
        print(line)
    healthy = sum(matrix["works", verdict] for verdict in VERDICTS)
    false_fails = matrix["works", "fails"] / max(healthy, 1)
    false_works = matrix["fails", "works"] + matrix["reported", "works"]
    print(f"false works: {false_works}, false fails: {false_fails:.1%}")
    return 1 if false_works or false_fails > MOST_FALSE_FAILS else 0


if __name__ == "__main__":
    raise SystemExit(main())
