"""Whatever a server does, `wheelscope fit` says what is wrong, answers the rest, and ends."""

import base64
import socket
import sys
import time
from pathlib import Path

import package_index
import pytest
from package_index import Fault, Index
from program import Fit, measure, run
from sample_wheels import NAME

pytestmark = pytest.mark.usefixtures("scope")


@pytest.fixture
def stocked(index: Index, module: bytes) -> Index:
    """Makes an index with one wheel of a few megabytes, and a pure one."""
    index.offer(NAME, {"sample.so": module})
    name = "sound-1.0-py3-none-any.whl"
    index.offer(name, {"sound.py": b""})
    return index


PAGE_FAULTS: dict[str, tuple[Fault, str]] = {
    "404": (package_index.status(404), "the server has no such file (HTTP 404)"),
    "401": (package_index.status(401), "login NAME password WORD` into ~/.netrc"),
    "500": (package_index.status(500), "tried 3 times"),
    "redirect-loop": (
        package_index.status(302, Location="/simple/sample/"),
        "10) redirects followed",
    ),
    "redirect-to-a-file": (package_index.status(302, Location="file:///etc/passwd"), "rotocol"),
    "redirect-nowhere": (package_index.status(302), "redirects without saying where"),
    "endless": (package_index.endless, "longer than"),
    "silent": (package_index.silent, "tried 3 times"),
    "no-index": (
        lambda handler: handler.send_whole(b"hello", {"Content-Type": "text/plain"}),
        "is this a package index?",
    ),
    "half-a-page": (
        lambda handler: handler.send_whole(b'{"files": [', {"Content-Type": "application/json"}),
        "no list of files",
    ),
}


@pytest.mark.parametrize("fault", PAGE_FAULTS)
def test_faults_of_an_index(fit: Fit, stocked: Index, fault: str) -> None:
    stocked.faults["/simple/sample/"], words = PAGE_FAULTS[fault]
    [broken], code, said = fit("sample", "--index", stocked.simple)
    assert code == 3
    assert words in said
    assert broken["take"] is None
    both, code, said = fit("sample", "sound", "--index", stocked.simple)
    assert code == 3
    assert words in said
    assert [one["name"] for one in both["nearest"]] == ["sound"]


FILE_FAULTS: dict[str, tuple[Fault, str]] = {
    "404": (package_index.status(404), "the server has no such file"),
    "cut-off": (package_index.cut_off, "cut off"),
    "changing": (package_index.changing, "changed while it was read"),
    "other-range": (package_index.other_range, "the server sends others"),
    "other-bytes": (package_index.other_bytes, "not a zip archive"),
    "endless": (package_index.endless, "longer than"),
}


@pytest.mark.parametrize("fault", FILE_FAULTS)
@pytest.mark.parametrize("deep", [False, True], ids=["part", "whole"])
def test_faults_of_a_file(fit: Fit, stocked: Index, fault: str, deep: bool) -> None:
    stocked.faults[f"/files/{NAME}"], words = FILE_FAULTS[fault]
    if deep and fault in ("changing", "other-range", "other-bytes"):
        words = {"changing": "", "other-range": "cut off", "other-bytes": "SHA-256"}[fault]
    options = ["--index", stocked.simple, *(["--deep"] if deep else [])]
    [broken], code, said = fit("sample", *options)
    if not words:
        assert broken["take"] == NAME  # one answer cannot change
        return
    assert code == 3
    assert words in said
    assert broken["take"] is None


def test_a_server_without_ranges_is_read_whole(fit: Fit, stocked: Index) -> None:
    stocked.faults[f"/files/{NAME}"] = package_index.no_ranges
    [answer], code, _ = fit("sample", "--index", stocked.simple)
    [file] = answer["files"]
    assert (code, file["verdict"], file["read"]) == (0, "works", file["size"])
    assert file["notes"] == ["its server gives no ranges: all of it was read"]


def test_a_file_of_another_hash(fit: Fit, stocked: Index) -> None:
    stocked.files[f"/files/{NAME}"] = stocked.files[f"/files/{NAME}"][::-1]
    _, code, said = fit("sample", "--deep", "--index", stocked.simple)
    assert code == 3
    assert "is not the file that the index means" in said


def test_a_file_of_another_size(fit: Fit, stocked: Index) -> None:
    stocked.files[f"/files/{NAME}"] += b"more"
    _, code, said = fit("sample", "--index", stocked.simple)
    assert code == 3
    assert "the index says" in said


def test_an_overloaded_server_is_asked_again(fit: Fit, stocked: Index) -> None:
    stocked.faults[f"/files/{NAME}"] = package_index.fails_at_first
    [answer], code, _ = fit("sample", "--index", stocked.simple)
    assert (code, answer["take"]) == (0, NAME)


def test_redirects_are_followed(fit: Fit, stocked: Index) -> None:
    stocked.faults["/here/sample/"] = package_index.status(301, Location="/simple/sample/")
    stocked.files["/else"] = stocked.files[f"/files/{NAME}"]
    stocked.faults[f"/files/{NAME}"] = package_index.status(302, Location="/else")
    [answer], code, _ = fit("sample", "--index", stocked.url + "/here/")
    assert (code, answer["take"]) == (0, NAME)


def test_credentials_of_netrc(fit: Fit, stocked: Index, tmp_path: Path) -> None:
    word = "Basic " + base64.b64encode(b"me:secret").decode()
    stocked.faults["/simple/sample/"] = package_index.password(word)
    assert fit("sample", "--index", stocked.simple)[1] == 3
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    assert fit("sample", "--index", stocked.simple)[1] == 0


def test_credentials_are_not_shown(fit: Fit, stocked: Index) -> None:
    stocked.faults["/simple/sample/"] = package_index.status(401)
    address = stocked.simple.replace("http://", "http://me:secret@")
    _, code, said = fit("sample", "--index", address)
    assert code == 3
    assert "secret" not in said


@pytest.mark.parametrize("beside", [(), ("sound",)])
def test_a_folder_without_the_project_does_not_answer_for_an_index(
    fit: Fit, stocked: Index, tmp_path: Path, beside: tuple[str, ...]
) -> None:
    stocked.faults["/simple/sample/"] = package_index.status(500)
    where = ("--index", stocked.simple, "--find-links", str(tmp_path))
    _, code, said = fit("sample", *beside, *where)
    assert code == 3
    assert "tried 3 times" in said


def test_nobody_listens(fit: Fit) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/simple/"
        _, code, said = fit("sample", "--index", address)
    assert code == 3
    assert "tried 3 times" in said


@pytest.mark.parametrize(("command", "project"), [("fit", "sample"), ("atlas", "torch")])
def test_a_proxy_is_asked(index: Index, tmp_path: Path, command: str, project: str) -> None:
    (tmp_path / "list").write_text("sample\n")
    words = {
        "fit": ["sample", "--python", sys.executable],
        "atlas": [str(tmp_path / "list"), "-o", str(tmp_path / "atlas")],
    }[command]
    where = ["--index", "http://index.example/simple/", "--proxy", index.url]
    run(command, *words, *where, code=3, env={"HOME": str(tmp_path)})  # it has no such page
    assert (f"http://index.example/simple/{project}/", "") in index.asked


def test_an_endless_answer_costs_little(fit: Fit, stocked: Index) -> None:
    stocked.faults["/simple/sample/"] = package_index.endless
    start = time.monotonic()
    fit("sample", "--index", stocked.simple)
    assert time.monotonic() - start < 30
    _, peak = measure("fit", "--timeout=2", "sample", f"--index={stocked.simple}")
    assert peak < 512 << 20
