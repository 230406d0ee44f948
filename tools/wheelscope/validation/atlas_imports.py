"""Imports cells of an atlas for real: `python -m validation.atlas_imports ATLAS.json FOLDER SEED CELLS >TRIED.csv`.

A few versions of torch are drawn, then cells from those that can be tried without a GPU, on one Python: of projects
that link to torch, with the CUDA of the index's build of torch, where METADATA allows that torch. Each cell gets a
fresh environment, with that torch and all that the project requires. Its packages are imported, then its libraries
that link to torch are opened, one by one. Where atlas_calls.toml has a call, its compiled code is called.

The driver's library is Debian's libcuda1, by apt, whose sources must have non-free; there is no GPU behind it.
"""

import csv
import json
import random
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from validation.fresh import PYTHON, UV, fresh_environment, run

TORCHES = 6  # that are drawn first: one has five gigabytes
# What an import of the wheel's packages says, and what the loader says of its libraries.
TRY = r"""
import ctypes, importlib, importlib.metadata, json, sys
import torch
own = [(str(path), path.locate()) for path in importlib.metadata.files(sys.argv[1])]
heads = {path.split("/")[0] for path, _ in own if path.endswith("/__init__.py") and path.count("/") == 1}
heads |= {path.split(".")[0] for path, _ in own if "/" not in path and path.endswith((".py", ".so"))}
seen = {"import": "works", "open": ""}
for head in sorted(heads):
    try:
        importlib.import_module(head)
    except BaseException as problem:
        seen["import"] = f"{head}: {type(problem).__name__}: {problem}"
        break
print("\n" + json.dumps(seen), flush=True)
for path, file in own:
    links = path.endswith(".so") and any(name in file.read_bytes() for name in (b"libtorch", b"libc10"))
    if links or file.name == sys.argv[2]:
        try:
            ctypes.CDLL(str(file))
        except OSError as problem:
            seen["open"] += f"{path}: {problem}; "
print("\n" + json.dumps(seen | {"open": seen["open"] or "works"}), flush=True)
"""
CALL = r"""
import sys, torch
D = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
def close(got, want, within):
    assert got.shape == want.shape and got.isfinite().all(), (got, want)
    worst = (got.double() - want.double()).abs().max().item()
    assert worst <= within * max(want.abs().max().item(), 1), (worst, got, want)
"""
CALLS = tomllib.loads(Path(__file__).with_name("atlas_calls.toml").read_text())


def population(atlas: dict[str, Any]) -> list[dict[str, str]]:
    torches = {torch["minor"]: torch for torch in atlas["torches"]}
    cells = []
    for project in atlas["projects"]:
        for release in project["releases"][:1]:
            if not any(file["torch_abi"] != "none" for file in release["files"]):
                continue
            for cell in release["cells"]:
                torch = torches[cell["torch"]]
                refused = cell["obstacle"] in ("system", "python", "unreadable") or (
                    cell["obstacle"] == "torch" and (cell["reason"] or "").startswith("it requires")
                )
                if refused or cell["cuda"] != (torch["cuda"] or "cpu").split(".")[0]:
                    continue
                if PYTHON in cell["pythons"]:
                    cells.append(
                        {
                            "project": project["name"],
                            "version": release["version"],
                            "torch": torch["version"],
                            "said": cell["verdict"],
                            "reason": cell["reason"] or "",
                        }
                    )
    return sorted(cells, key=lambda cell: [cell["project"], cell["torch"]])


def try_cell(cell: dict[str, str], folder: Path) -> dict[str, str]:
    python, settings = fresh_environment(folder)
    settings["LD_LIBRARY_PATH"] = str(folder / "driver")
    words = [
        UV,
        "pip",
        "install",
        "--quiet",
        f"--only-binary={cell['project']}",
        "setuptools<81",
        "numpy",
    ]
    words += [f"torch=={cell['torch']}", f"{cell['project']}=={cell['version']}"]
    try:
        made = run(words, env=settings, timeout=900)
        if made.returncode:
            return {"import": f"not installed: {made.stderr.strip()}"}
        library = re.match(r"(\S+\.so\S*) ", cell["reason"])
        words = [python, "-c", TRY, cell["project"], library[1] if library else ""]
        done = run(words, env=settings, timeout=300, cwd=folder)
    except subprocess.TimeoutExpired:
        return {"import": "not decided: it takes too long"}
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"import')]
    seen: dict[str, str] = json.loads(answers[-1]) if answers else {"import": done.stderr[-500:]}
    if done.returncode:
        seen["open"] = f"exit code {done.returncode}"
    lines = CALLS.get(cell["project"], "")
    if lines and seen["import"] == "works":
        script = folder / "call.py"  # torch.jit reads the source of what it compiles
        script.write_text(CALL + CALLS.get(lines, lines))
        done = run([python, str(script)], env=settings, timeout=300, cwd=folder)
        said = [
            line for line in done.stderr.splitlines() if re.match(r"\w*(Error|Exception):", line)
        ]
        seen["call"] = " ".join(said[-1:]) or f"exit code {done.returncode}"
        if done.returncode == 0:
            seen["call"] = "works"
    return seen


def main() -> None:
    atlas = json.loads(Path(sys.argv[1]).read_text())["atlas"]
    folder, seed, count = Path(sys.argv[2]).resolve(), int(sys.argv[3]), int(sys.argv[4])
    cells = population(atlas)
    draw = random.Random(seed)
    torches = draw.sample(sorted({cell["torch"] for cell in cells}), TORCHES)
    cells = [cell for cell in cells if cell["torch"] in torches]
    drawn = draw.sample(cells, min(count, len(cells)))
    drawn.sort(key=lambda cell: [torches.index(cell["torch"]), cell["project"]])
    print(f"{len(cells):,} cells with torch {', '.join(torches)}", file=sys.stderr)
    (folder / "driver").mkdir(parents=True)
    fetch = "apt-get download --quiet=2 libcuda1 && dpkg-deb -x libcuda1_*.deb driver"
    flatten = "find driver -name 'libcuda.so.*' -exec cp -P {} driver ';'"
    subprocess.run(f"{fetch} && {flatten}", shell=True, cwd=folder, check=True)
    rows = csv.DictWriter(
        sys.stdout, ["project", "version", "torch", "said", "reason", "import", "open", "call"]
    )
    rows.writeheader()
    torch = ""
    for cell in drawn:
        if cell["torch"] != torch:
            torch = cell["torch"]
            shutil.rmtree(folder / "cache", ignore_errors=True)
        rows.writerow(cell | try_cell(cell, folder))
        sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
