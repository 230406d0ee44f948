"""`wheelscope explain` on messages of public reports, on held-out ones, and on what real loaders print."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from program import ROOT, compiled, scope, valid

from validation.attributes import contradicted
from validation.program import machine, python
from validation.tables import read_csv

HERE = Path(__file__).parent
REPORTS = tomllib.loads((HERE / "reports.toml").read_text())["report"]
HELD_OUT = tomllib.loads((HERE / "held_out_messages.toml").read_text())
SAID = tomllib.loads((HERE / "messages.toml").read_text())
ENTRIES = tomllib.loads((ROOT / "src/data/explain.toml").read_text())


@pytest.mark.parametrize(
    "report", REPORTS, ids=lambda report: report["link"].split("github.com/")[1]
)
def test_report(tmp_path: Path, report: dict[str, Any]) -> None:
    saved = tmp_path / "machine.json"
    known = {"libc_version": report.get("glibc", "2.35")}
    known |= {
        fact: report[fact] for fact in ("driver", "torch", "cuda_libraries") if fact in report
    }
    saved.write_text(json.dumps(valid(machine(**known))))
    (found,) = scope("explain", "--machine", saved, report["text"])["explanations"]
    assert found["kind"] == report["kind"]
    if "whose" in report:
        assert found["provider"] == report["whose"]
    for part in report["says"]:
        assert part in told([found])


def told(explanations: list[dict[str, Any]]) -> str:
    """Returns what people read of them."""
    return "\n".join(
        "\n".join([one["what"], one["provider"] or "", *one["because"], *one["fix"]])
        for one in explanations
    )


@pytest.fixture(scope="module")
def plain_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saves a machine without a GPU, Python or torch, so that all answers come from the message."""
    saved = tmp_path_factory.mktemp("explain") / "machine.json"
    saved.write_text(json.dumps(machine()))
    return saved


@pytest.mark.parametrize("kind", ENTRIES)
def test_every_entry_knows_its_own_message(plain_machine: Path, kind: str) -> None:
    entry = ENTRIES[kind]
    document = scope("explain", "--machine", plain_machine, entry["message"])
    found = document["explanations"][0]
    assert found["kind"] == kind
    assert found["report"] == entry["link"]
    assert found["what"]
    assert found["fix"]
    assert not found["fix"][0].startswith("or ")
    assert "{" not in found["what"] + "".join(found["because"] + found["fix"]).replace(
        "torch = { index", ""
    )


def test_entries_are_complete() -> None:
    links = [entry["link"] for entry in ENTRIES.values()]
    assert len(ENTRIES) >= 150
    assert len(set(links)) == len(links)
    assert not {link.removeprefix("https://github.com/") for link in links} & set(HELD_OUT)


@pytest.mark.parametrize("link", HELD_OUT)
def test_held_out_message(plain_machine: Path, link: str) -> None:
    document = scope("explain", "--machine", plain_machine, HELD_OUT[link]["text"])
    answer = told(document["explanations"])
    for item in HELD_OUT[link]["says"]:
        assert any(word in answer for word in item.split("|")), (item, answer)


H200 = {
    "libc_version": "2.31",
    "driver": "525.60.13",
    "gpus": [{"name": "NVIDIA H200", "capability": "9.0"}] * 2,
    "python": python("3.11.7", []),
    "torch": {"path": "/t", "version": "2.14.0", "cuda": "13.0"},
    "cuda_libraries": [
        {
            "name": "libcudart.so.13",
            "path": "/c",
            "distribution": "nvidia-cuda-runtime",
            "version": "13.0",
        }
    ],
}
MACHINES: dict[str, dict[str, Any]] = {
    "without": {},
    "h200": H200,
    "cpu": {**H200, "driver": None, "torch": {**H200["torch"], "cuda": None}},
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name in MACHINES for text in SAID[name]]
)
def test_what_is_said_on_a_machine(tmp_path: Path, name: str, text: str) -> None:
    saved = tmp_path / "machine.json"
    saved.write_text(json.dumps(valid(machine(**MACHINES[name]))))
    answer = told(scope("explain", "--machine", saved, text)["explanations"])
    for words in SAID[name][text]:
        assert (words.removeprefix("!") in answer) != words.startswith("!"), (words, answer)


@pytest.mark.parametrize("text", ["[WinError 127]", "-bash: nvcc: command not found"])
def test_message_that_looks_like_a_list_or_an_option(text: str) -> None:
    (found,) = scope("explain", text)["explanations"]
    assert found["message"] == text


def loaders_word(library: Path) -> str:
    """Returns the real loader's message about a library."""
    code = f"import ctypes, os; ctypes.CDLL({str(library)!r}, os.RTLD_NOW)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def explained(text: str) -> Any:
    (found,) = scope("explain", "--python", sys.executable, text)["explanations"]
    return found


def test_real_undefined_symbol(tmp_path: Path) -> None:
    source = "int torch_no_such(void); int f(void) { return torch_no_such(); }"
    library = compiled(tmp_path / "needs.so", source)
    found = explained(loaders_word(library))
    assert found["kind"] == "undefined-symbol"
    assert found["library"] == str(library)
    assert found["symbol"] == "torch_no_such"


def test_real_missing_library(tmp_path: Path) -> None:
    soname = "-Wl,-soname,libcudart.so.99"
    absent = compiled(tmp_path / "libabsent.so", "int g(void) { return 1; }", soname)
    uses = "int g(void); int f(void) { return g(); }"
    library = compiled(tmp_path / "needs.so", uses, absent)
    found = explained(loaders_word(library))
    assert found["kind"] == "missing-library"
    assert found["needs"] == "libcudart.so.99"


def test_real_damaged_file(tmp_path: Path) -> None:
    library = tmp_path / "pointer.so"
    library.write_text("version https://git-lfs.github.com/spec/v1\n" * 20)
    assert explained(loaders_word(library))["kind"] == "damaged-file"
    library.write_text("short")
    assert explained(loaders_word(library))["kind"] == "damaged-file"


def test_real_torch_is_compared() -> None:
    torch = pytest.importorskip("torch")
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
    found = explained(f"x.so: undefined symbol: {symbol}")
    version = torch.__version__
    assert torch._C._GLIBCXX_USE_CXX11_ABI
    assert f"the installed torch {version} uses the other ABI" in found["because"]
    assert any(
        sentence.startswith(
            f"the installed torch {version} has c10::Error::Error(c10::SourceLocation, "
        )
        for sentence in found["because"]
    )


def test_what_is_installed_does_not_contradict_the_table_of_names() -> None:
    rows = read_csv("attributes.csv")
    assert any(distribution == "typing-extensions" for _, _, distribution, *_ in rows)
    assert contradicted(rows) == []
