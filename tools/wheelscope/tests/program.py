"""Runs the built wheelscope for the tests, and makes its input."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parents[1]
PROGRAM = Path(
    os.environ.get("WHEELSCOPE", ROOT / "build/bin/wheelscope")
)  # or one that counts its lines
QUESTIONS = ROOT / "build/wheelscope/wheelscope_questions"
VALIDATOR = jsonschema.Draft202012Validator(json.loads((ROOT / "schema.json").read_text()))

Ask = Callable[..., Any]
Fit = Callable[..., Any]


def valid(document: Any) -> Any:
    """Returns the document if the schema allows it."""
    VALIDATOR.validate(document)
    return document


# The measuring process is small, since a child's peak includes the memory that it inherits.
MEASURE = """
import json, os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
null = open(os.devnull, "w")
done = subprocess.run(sys.argv[1:], stdout=null, stderr=null)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, peak * 1024]))
"""


def measure(*words: str) -> tuple[int, int]:
    """Returns the exit code of a command, and its peak memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, PROGRAM, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    code, peak = json.loads(done.stdout)
    return code, peak


def run(
    *words: str | Path, code: int | None = 0, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Runs a command, which must end with `code` (None: 0 or 1), and returns what it prints."""
    command = [str(word) for word in (PROGRAM, *words)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr or done.stdout
    return done


def run_json(command: str, *arguments: str | Path, code: int | None = 0) -> Any:
    return json.loads(run(command, "--json", *arguments, code=code).stdout)


def scope(command: str, *arguments: str | Path, code: int | None = 0) -> Any:
    """Does the same and checks the output against the schema."""
    return valid(run_json(command, *arguments, code=code))


def save_machine(path: Path, python: dict[str, Any] | None = None, **facts: Any) -> Path:
    """Saves this machine with other facts, as `machine --json` would."""
    document = run_json("machine", "--python", sys.executable)
    document["machine"] |= facts
    document["machine"]["python"] |= python or {}
    path.write_text(json.dumps(document))
    return path


def virtual_environment(prefix: Path, *options: str) -> Path:
    base = sys._base_executable  # type: ignore[attr-defined]
    subprocess.run([base, "-m", "venv", "--without-pip", *options, prefix], check=True)
    return prefix


def site_of(prefix: Path) -> Path:
    return next(prefix.glob("lib/python3*/site-packages"))


def install(prefix: Path, name: str, version: str = "1.0", metadata: str = "") -> Path:
    """Records the files of a folder of site-packages as a distribution; returns its metadata's folder."""
    site = site_of(prefix)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    files = [path.relative_to(site) for path in (site / name).rglob("*") if path.is_file()]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(head + metadata)
    return info


def imports(prefix: Path, name: str, **settings: str) -> bool:
    """True if the environment's Python can import that."""
    words = [prefix / "bin/python", "-c", f"import {name}"]
    return not subprocess.run(words, capture_output=True, env=os.environ | settings).returncode


def compiled(library: Path, source: str, *options: str | Path, compiler: str = "gcc") -> Path:
    library.parent.mkdir(parents=True, exist_ok=True)
    code = library.with_suffix(".c" if compiler == "gcc" else ".cc")
    code.write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, code, *options], check=True)
    code.unlink()
    return library
