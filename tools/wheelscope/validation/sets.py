"""Compares fit and uv on sets that people asked for: `python -m validation.sets PROGRAM FOLDER >CSV`.

validation/sets.csv has the requirements, their issue, and what to import. Both answers are
installed as they are, each in a fresh environment in FOLDER, without a GPU, and imported. An answer
fails if an import fails, or complains about a library that did not load. If fit finds no answer,
the requirements that it blames must be in conflict, and no longer so without any one of them.
"""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from validation.fresh import PYTHON, UV, fresh_environment, run

LIST = Path(__file__).with_name("sets.csv")
COMPLAINT = re.compile(
    r"undefined symbol|cannot open shared object|can't load|compiled using NumPy 1"
    r"|_ARRAY_API not found|Skipping import of cpp extensions"
)
Row = dict[str, Any]


def fit(program: str, asked: list[str]) -> Row:
    done = run([program, "fit", "--json", "--format=set", "--timeout=60", *asked])
    if not done.stdout:
        raise SystemExit(f"{asked}: {done.stderr}")
    answer: Row = json.loads(done.stdout)["fit_set"]
    return answer


def ours(program: str, asked: list[str]) -> tuple[list[str], str]:
    """Returns the versions to install, and the explanation."""
    answer = fit(program, asked)
    if answer["found"]:
        doubts = [
            f"{one['name']}: {one['judged']['reason']}"
            for one in answer["packages"]
            if one["judged"]["verdict"] != "works"
        ]
        not_taken = [one["text"] for one in answer["refused"]]
        pins = [f"{one['name']}=={one['version']}" for one in answer["packages"]]
        return sorted(pins), "; ".join(["works" if not doubts else "depends", *doubts, *not_taken])
    reasons = [one["text"] for one in answer["conflict"]]
    parts = [one.removeprefix("you ask for ") for one in reasons if one.startswith("you ask for ")]
    smallest = not fit(program, parts)["found"] and all(
        fit(program, [other for other in parts if other != part])["found"]
        for part in parts
        if len(parts) > 1
    )
    return [], "; ".join(
        ["no", "the smallest reason" if smallest else "NOT the smallest reason", *reasons]
    )


def theirs(asked: list[str]) -> tuple[list[str], str]:
    words = [
        UV,
        "pip",
        "compile",
        "-q",
        "--no-header",
        "--no-annotate",
        f"--python-version={PYTHON}",
        "-",
    ]
    done = run(words, input="\n".join(asked))
    return sorted(done.stdout.split("\n")[:-1]), "" if done.returncode == 0 else done.stderr.strip()


def tried(pins: list[str], imports: list[str], folder: Path) -> str:
    python, settings = fresh_environment(folder)
    made = run([UV, "pip", "install", "--quiet", "--no-deps", *pins], env=settings, timeout=1200)
    if made.returncode:
        return f"not installed: {made.stderr.strip()[-300:]}"
    code = "\n".join(
        ["try: import torch", "except ImportError: pass", *(f"import {one}" for one in imports)]
    )
    try:
        done = run([python, "-c", code], env=settings, timeout=600, cwd=folder)
    except subprocess.TimeoutExpired:
        return "not decided: it takes too long"
    complaints = [line.strip() for line in done.stderr.splitlines() if COMPLAINT.search(line)]
    if done.returncode:
        return f"fails: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"
    return f"complains: {complaints[0]}" if complaints else "loads"


def torch_of(trial: tuple[list[str], list[Row]]) -> str:
    return next((pin for pin in trial[0] if pin.startswith("torch==")), "")


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    answers = folder / "answers.json"
    rows: list[Row] = json.loads(answers.read_text()) if answers.exists() else []
    for row in list(csv.DictReader(LIST.open()))[len(rows) :]:
        asked = row["asked"].split()
        rows.append({**row, "fit": ours(program, asked), "uv": theirs(asked)})
        print(
            row["asked"],
            rows[-1]["fit"][1],
            rows[-1]["uv"][1][-200:],
            sep="\n  ",
            file=sys.stderr,
            flush=True,
        )
        answers.write_text(json.dumps(rows))
    trials: dict[tuple[str, ...], tuple[list[str], list[Row]]] = {}
    for row in rows:
        for who in ("fit", "uv"):
            if pins := row[who][0]:
                trials.setdefault((row["imports"], *pins), (pins, []))[1].append(
                    {"row": row, "who": who}
                )
    torch = ""
    for trial in sorted(trials.values(), key=torch_of):
        if torch_of(trial) != torch:
            torch = torch_of(trial)
            shutil.rmtree(folder / "cache", ignore_errors=True)
        seen = tried(trial[0], trial[1][0]["row"]["imports"].split(), folder)
        for one in trial[1]:
            one["row"][f"{one['who']} loads"] = seen
            print(
                one["row"]["asked"], one["who"], torch, seen, sep=" | ", file=sys.stderr, flush=True
            )
    columns = ["from", "asked", "imports", "fit", "fit loads", "uv", "uv loads"]
    table = csv.DictWriter(sys.stdout, columns, extrasaction="ignore")
    table.writeheader()
    for row in rows:
        table.writerow(
            {
                **row,
                "fit": row["fit"][1],
                "uv": row["uv"][1].splitlines()[0] if row["uv"][1] else "answers",
            }
        )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
