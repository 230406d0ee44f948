"""Imports cells of an atlas for real, and compares: `python -m validation.atlas_imports ATLAS.json FOLDER SEED CELLS`.

A few versions of torch are drawn, then cells from those that can be tried without a GPU, on one Python: of projects
that link to torch, with the CUDA of the index's build of torch, where METADATA allows that torch. For each torch an
environment with it is made in FOLDER and deleted after use; what is drawn is installed beside it, with all that it
requires but torch. Its packages are imported, and its libraries that link to torch opened.

A file with the name of the driver's library, and nothing in it, lies where the loader looks.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PYTHON = "3.11"  # which every torch has wheels for
TORCHES = 6  # that are drawn first: an environment with one has five gigabytes
UV = shutil.which("uv") or "uv"
# What an import of the wheel's packages says, and what the loader says of its libraries.
TRY = r"""
import ctypes, importlib, json, pathlib, sys
import torch
root = pathlib.Path(sys.argv[1])
own = [line.split(",")[0] for line in (root / sys.argv[2] / "RECORD").read_text().splitlines()]
heads = {path.split("/")[0] for path in own if path.endswith("/__init__.py") and path.count("/") == 1}
heads |= {path.split(".")[0] for path in own if "/" not in path and path.endswith((".py", ".so"))}
seen = {"import": "works", "open": "works"}
for head in sorted(heads):
    try:
        importlib.import_module(head)
    except BaseException as problem:
        seen["import"] = f"{head}: {type(problem).__name__}: {problem}"
        break
for path in own:
    file = root / path
    if path.endswith(".so") and file.exists() and any(n in file.read_bytes() for n in (b"libtorch", b"libc10")):
        try:
            ctypes.CDLL(str(file))
        except OSError as problem:
            seen["open"] = f"{path}: {problem}"
            break
print("\n" + json.dumps(seen))
"""


def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, **options)


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
                            "verdict": cell["verdict"],
                            "reason": cell["reason"] or "",
                        }
                    )
    return sorted(cells, key=lambda cell: [cell["project"], cell["torch"]])


def install(python: Path, folder: Path, requirement: str) -> str:
    """Beside the torch of an environment; what is wrong, if it fails."""
    leave_out = folder / "leave_out.txt"
    names = ["torch", "triton", "torchvision", "torchaudio"]
    leave_out.write_text("\n".join(f"{name} ; sys_platform == 'never'" for name in names))
    words = [UV, "pip", "install", "--quiet", "--no-cache", "--python", str(python)]
    words += [f"--target={folder / 'beside'}", f"--override={leave_out}", "--only-binary=:all:"]
    return run([*words, requirement]).stderr.strip()


def try_cell(cell: dict[str, str], python: Path, folder: Path) -> dict[str, str]:
    beside = folder / "beside"
    shutil.rmtree(beside, ignore_errors=True)
    if problem := install(python, folder, f"{cell['project']}=={cell['version']}"):
        return {"install": problem}
    name = re.sub(r"[-_.]+", "_", cell["project"])
    infos = [path.name for path in beside.glob("*.dist-info")]
    own = [one for one in infos if re.sub(r"[-_.]+", "_", one.split("-")[0]).lower() == name]
    settings = {**os.environ, "PYTHONPATH": str(beside), "LD_LIBRARY_PATH": str(folder / "driver")}
    try:
        words = [str(python), "-c", TRY, str(beside), *own]
        done = run(words, env=settings, timeout=300, cwd=folder)
    except subprocess.TimeoutExpired:
        return {"import": "takes longer than five minutes"}
    seen: dict[str, str] = {"import": done.stderr[-500:]}
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else seen


def main() -> None:
    atlas = json.loads(Path(sys.argv[1]).read_text())["atlas"]
    folder, seed, count = Path(sys.argv[2]).resolve(), int(sys.argv[3]), int(sys.argv[4])
    cells = population(atlas)
    draw = random.Random(seed)
    torches = draw.sample(sorted({cell["torch"] for cell in cells}), TORCHES)
    cells = [cell for cell in cells if cell["torch"] in torches]
    drawn = draw.sample(cells, min(count, len(cells)))
    (folder / "driver").mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "/dev/null", "-o"]
    subprocess.run([*words, folder / "driver/libcuda.so.1"], check=True)
    print(
        f"{len(cells):,} cells with torch {', '.join(torches)}; {len(drawn)} are tried",
        file=sys.stderr,
    )
    for torch in torches:
        environment = folder / "environment"
        shutil.rmtree(environment, ignore_errors=True)
        run([UV, "venv", "--quiet", "--python", PYTHON, str(environment)], check=True)
        interpreter = environment / "bin/python"
        words = [UV, "pip", "install", "--quiet", "--no-cache", "--python", str(interpreter)]
        made = run([*words, f"torch=={torch}", "numpy", "setuptools<81"])
        for cell in drawn:
            if cell["torch"] != torch:
                continue
            no_torch = {"torch": made.stderr}
            seen = no_torch if made.returncode else try_cell(cell, interpreter, folder)
            print(json.dumps({**cell, **seen}), flush=True)
        shutil.rmtree(environment)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
