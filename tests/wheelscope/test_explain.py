"""`wheelscope explain` on messages of public reports, and on what real loaders print here."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from program import PROGRAM, ROOT, Scope

SCHEMA = json.loads((ROOT / "csrc/wheelscope/schema.json").read_text())
REPORTS = tomllib.loads((Path(__file__).parent / "reports.toml").read_text())["report"]


def machine_of(report: dict[str, Any]) -> dict[str, Any]:
    """The reporter's machine, as `wheelscope machine --json` would have saved it."""
    torch = report.get("torch")
    if torch is not None:
        torch = {"path": "/nonexistent/torch", "cuda": None, "rocm": None, **torch}
    return {
        "schema_version": 2,
        "machine": {
            "architecture": "x86_64",
            "libc": "glibc",
            "libc_version": report.get("glibc", "2.35"),
            "driver": report.get("driver"),
            "gpus": [],
            "python": None,
            "torch": torch,
            "cuda_libraries": report.get("cuda_libraries", []),
            "notes": [],
        },
    }


@pytest.mark.parametrize(
    "report", REPORTS, ids=lambda report: report["link"].split("github.com/")[1]
)
def test_report(scope: Scope, tmp_path: Path, report: dict[str, Any]) -> None:
    saved = tmp_path / "machine.json"
    saved.write_text(json.dumps(machine_of(report)))
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(saved.read_text()))
    document = scope("explain", "--machine", saved, report["text"])
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    (found,) = document["explanations"]
    assert found["kind"] == report["kind"]
    if "whose" in report:
        assert found["provider"] == report["whose"]
    told = "\n".join([found["what"], *found["because"], *found["mend"]])
    for part in report["says"]:
        assert part in told


def test_reports_cover_every_kind() -> None:
    kinds = set(SCHEMA["$defs"]["explanation"]["properties"]["kind"]["enum"])
    unreported = {"no-driver", "damaged-file", "numpy-abi"}
    assert kinds - {report["kind"] for report in REPORTS} == unreported
    assert len({report["link"] for report in REPORTS}) == len(REPORTS)


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    code, library = folder / f"{name}.c", folder / f"{name}.so"
    code.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, code, *options], check=True)
    return library


def loaders_word(library: Path) -> str:
    """What the real loader says of a library."""
    code = f"import ctypes, os; ctypes.CDLL({str(library)!r}, os.RTLD_NOW)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def explained(scope: Scope, text: str) -> Any:
    (found,) = scope("explain", "--python", sys.executable, text)["explanations"]
    return found


def test_real_undefined_symbol(scope: Scope, tmp_path: Path) -> None:
    library = compiled(
        tmp_path, "needs", "int torch_no_such(void); int f(void) { return torch_no_such(); }"
    )
    found = explained(scope, loaders_word(library))
    assert found["kind"] == "undefined-symbol"
    assert found["library"] == str(library)
    assert found["symbol"] == "torch_no_such"


def test_real_missing_library(scope: Scope, tmp_path: Path) -> None:
    compiled(tmp_path, "libabsent", "int g(void) { return 1; }", "-Wl,-soname,libcudart.so.99")
    library = compiled(
        tmp_path, "needs", "int g(void); int f(void) { return g(); }", f"{tmp_path}/libabsent.so"
    )
    found = explained(scope, loaders_word(library))
    assert found["kind"] == "missing-library"
    assert found["needs"] == "libcudart.so.99"


def test_real_damaged_file(scope: Scope, tmp_path: Path) -> None:
    library = tmp_path / "pointer.so"
    library.write_text("version https://git-lfs.github.com/spec/v1\n" * 20)
    assert explained(scope, loaders_word(library))["kind"] == "damaged-file"
    library.write_text("short")
    assert explained(scope, loaders_word(library))["kind"] == "damaged-file"


def test_real_torch_is_compared(scope: Scope) -> None:
    torch = pytest.importorskip("torch")
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
    found = explained(scope, f"x.so: undefined symbol: {symbol}")
    version = torch.__version__
    assert torch._C._GLIBCXX_USE_CXX11_ABI
    assert f"torch {version} here uses the other one" in found["because"]
    assert any(
        sentence.startswith(f"torch {version} here has c10::Error::Error(c10::SourceLocation, ")
        for sentence in found["because"]
    )


@pytest.mark.usefixtures("scope")
def test_a_traceback_on_the_standard_input() -> None:
    text = "Traceback (most recent call last):\n  File x\nImportError: a.so: undefined symbol: f\n"
    done = subprocess.run([PROGRAM, "explain"], input=text, capture_output=True, text=True)
    assert done.returncode == 0
    assert "a.so needs f" in done.stdout
    done = subprocess.run([PROGRAM, "explain"], input="fine\n", capture_output=True, text=True)
    assert done.returncode == 1
    assert "no message that is known here" in done.stderr


@pytest.mark.usefixtures("scope")
def test_the_readmes_example() -> None:
    """README.md shows what the program prints beside torch 2.10.0+cu128."""
    torch = pytest.importorskip("torch")
    if torch.__version__ != "2.10.0+cu128":
        pytest.skip("README.md shows torch 2.10.0+cu128")
    message = "ImportError: _C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    command = [PROGRAM, "explain", "--python", sys.executable, message]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown = (ROOT / "README.md").read_text().partition(f'explain "{message}"\n')[2]
    lines = shown.partition("```")[0].splitlines()
    assert len(lines) == 6
    for line in lines:
        assert line == "  ..." or f"{line}\n" in printed
