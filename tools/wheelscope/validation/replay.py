"""Prints the confusion matrix of wheelscope's verdicts: `python -m validation.replay`.

The cases are those of recorded/, and the public reports that `wheelscope explain` is tested with.
"""

import collections
import json
import re
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from validation import program, pypi
from validation.program import ROOT, ask

FOLDER = Path(__file__).with_name("recorded")
CASES, ENVIRONMENTS = FOLDER / "cases.toml", FOLDER / "environments.toml"
# Debian's suites: their Python, and their C library.
SUITES = {"bullseye": ("3.9", "2.31"), "bookworm": ("3.11", "2.36"), "trixie": ("3.13", "2.41")}
REPORTS = ROOT / "tests/reports.toml"

VERDICTS = ("works", "depends", "fails")
MOST_FALSE_FAILS = 0.03


Row = dict[str, Any]  # a table of the files above, whose heads describe the keys


def load_cases() -> list[Row]:
    return [one for cases in tomllib.loads(CASES.read_text()).values() for one in cases]


def happened(case: Row) -> str:
    return "fails" if "word" in case else "reported" if "message" in case else "works"


def machine(environment: Row) -> dict[str, Any]:
    """Returns an environment as `wheelscope machine --json` would save it."""
    made = environment.get("suite")
    version, glibc = SUITES[made] if made else (environment["python"], environment["glibc"])
    known = pypi.platforms(int(glibc.removeprefix("2.")), "x86_64")
    python, torch = program.python(version, known), environment.get("torch")
    return program.machine(
        libc_version=glibc,
        driver=environment.get("driver"),
        gpus=[environment["gpu"]] if "gpu" in environment else [],
        python=python,
        torch=torch and {"path": f"{python['site_packages'][0]}/torch", **torch},
    )


def judge(case: Row, environment: Row, machine_file: Path) -> tuple[str, str]:
    """Returns the verdict on the installed file, and its reason."""
    # Device code, and a statically linked CUDA runtime, are behind the bytes that are read first.
    deep = [] if "suite" in environment else ["--deep"]
    wheel = case["wheel"]  # NAME==VERSION, or a file's name
    project = "==".join(wheel.split("-")[:2]) if wheel.endswith(".whl") else wheel
    (answer,) = ask("fit", project, "--machine", machine_file, *deep)["fit"]
    files = answer["files"]
    if wheel.endswith(".whl"):
        files = [one for one in files if one["file"] == wheel]
    elif "python" in case:
        tag = "cp" + case["python"].replace(".", "")
        built = re.compile(rf".*-{tag}-{tag}-manylinux.*x86_64")
        files = [one for one in files if built.match(one["file"])]
    chosen = files[0]  # an installer prefers it
    return chosen["verdict"], f"{chosen['file']}: {chosen['reason'] or 'works'}"


def recognises(report: dict[str, Any]) -> bool:
    found = ask("explain", report["text"])["explanations"]
    return any(one["kind"] == report["kind"] for one in found)


def main() -> int:
    matrix: collections.Counter[tuple[str, str]] = collections.Counter()
    wrong = []
    environments = tomllib.loads(ENVIRONMENTS.read_text())
    cases = load_cases()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=4) as pool:
        machines = {name: Path(folder) / f"{name}.json" for name in environments}
        for name, path in machines.items():
            path.write_text(json.dumps(machine(environments[name])))

        def verdict_on(case: Row) -> tuple[str, str]:
            name = case["environment"]
            return judge(case, environments[name], machines[name])

        verdicts = list(pool.map(verdict_on, cases))  # they wait for the network
    for case, (verdict, reason) in zip(cases, verdicts, strict=True):
        truth = happened(case)
        matrix[truth, verdict] += 1
        if verdict != "depends" and (verdict == "works") != (truth == "works"):
            wrong.append(f"{case['wheel']} in {case['environment']} {truth}, wheelscope: {reason}")
    for report in tomllib.loads(REPORTS.read_text())["report"]:
        matrix["message", "fails" if recognises(report) else "depends"] += 1
    print(f"{'':12}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for truth in ("works", "fails", "reported", "message"):
        counts = (matrix[truth, verdict] for verdict in VERDICTS)
        print(f"{truth:12}" + "".join(f"{count:9}" for count in counts))
    for line in wrong:
        print(line)
    healthy = sum(matrix["works", verdict] for verdict in VERDICTS)
    false_fails = matrix["works", "fails"] / max(healthy, 1)
    false_works = matrix["fails", "works"] + matrix["reported", "works"]
    print(f"false works: {false_works}, false fails: {false_fails:.1%}")
    return 1 if false_works or false_fails > MOST_FALSE_FAILS else 0


if __name__ == "__main__":
    raise SystemExit(main())
