"""`wheelscope fit` picks the working file from a real index on loopback, and reads little of it."""

import shutil
import sys
import threading
from pathlib import Path
from shlex import quote

import pytest
import sample_wheels
from package_index import Handler, Index
from program import Fit, compiled, run_json, save_machine
from sample_wheels import MACHINE, NAME, PYTHON


def test_takes_the_newest_that_works(fit: Fit, index: Index, module: bytes) -> None:
    for version in ("0.9", "1.0", "1.1"):
        for tag in (f"{PYTHON}-{PYTHON}", "cp38-cp38"):
            name = f"sample-{version}-{tag}-manylinux_2_17_{MACHINE}.whl"
            if version == "1.1" and tag != "cp38-cp38":
                name = name.replace("2_17", "2_99")  # newer than any system
            index.offer(name, {"sample.so": module})
    [answer], code, _ = fit("sample")
    assert (answer["take"], code) == (NAME, 0)
    assert (
        answer["command"]
        == f"{quote(sys.executable)} -m pip install sample==1.0 --index-url {index.simple}"
    )
    verdicts = {file["file"]: file for file in answer["files"]}
    assert verdicts[NAME]["verdict"] == "works"
    assert verdicts[NAME]["in_part"]
    assert verdicts[NAME]["read"] < sample_wheels.PADDING / 4
    other = f"sample-1.0-cp38-cp38-manylinux_2_17_{MACHINE}.whl"
    assert verdicts[other]["obstacle"] == "python"
    assert verdicts[other]["read"] == 0
    assert answer["not_judged"] == 2  # 0.9


def test_variants_are_left_to_installers_that_know_them(
    fit: Fit, index: Index, module: bytes
) -> None:
    for name in (NAME, NAME.replace(".whl", "-sm90.whl")):
        index.add(name, sample_wheels.wheel(NAME, {"sample.so": module}))
    [answer], code, _ = fit("sample")
    assert (answer["take"], code) == (NAME, 0)
    assert [file["file"] for file in answer["files"]] == [NAME]


def test_part_and_whole_agree(fit: Fit, index: Index, module: bytes) -> None:
    entry = index.offer(NAME, {"sample.so": module})
    address = index.address(NAME)
    for asked in ("sample", address, f"{address}#sha256={entry['hashes']['sha256']}"):
        [[part], _, _], [[whole], _, _] = (fit(asked), fit(asked, "--deep"))
        assert part["take"] == whole["take"] == NAME
        [seen], [all_of_it] = part["files"], whole["files"]
        assert all_of_it["read"] == all_of_it["size"] == entry["size"]
        assert not all_of_it["in_part"]
        assert seen["read"] < all_of_it["read"] / 4


def test_files_of_a_version_are_read_side_by_side(fit: Fit, index: Index, module: bytes) -> None:
    names = [NAME, NAME.replace(f"{PYTHON}-{PYTHON}", "py3-none")]
    for name in names:
        index.offer(name, {"sample.so": module})
    both, absent = threading.Barrier(2), {f"/files/{name}" for name in names}

    def meet(handler: Handler) -> None:
        """Holds back the first answer for one file until the other one was requested too."""
        if handler.path in absent:
            absent.discard(handler.path)
            both.wait(timeout=10)
        handler.send_file(index.files[handler.path])

    index.faults = dict.fromkeys(absent, meet)
    [answer], code, said = fit("sample")
    assert (code, answer["take"]) == (0, NAME), said
    assert len(index.asked) == len(set(index.asked))  # nothing was requested twice


def test_a_second_run_asks_for_the_page_alone(fit: Fit, index: Index, module: bytes) -> None:
    index.offer(NAME, {"sample.so": module})
    first, *_ = fit("sample")
    asked = len(index.asked)
    second, *_ = fit("sample")
    assert second == first
    paths = {path for path, _ in index.asked[asked:]}
    assert paths - {"/simple/torch/"} == {"/simple/sample/"}  # torch is not installed


def test_a_damaged_cache_is_no_cache(fit: Fit, index: Index, module: bytes, tmp_path: Path) -> None:
    index.offer(NAME, {"sample.so": module})
    first, *_ = fit("sample")
    kept = [file for file in (tmp_path / ".cache/wheelscope").rglob("*") if file.is_file()]
    assert len(kept) > 1
    for number, file in enumerate(kept):
        file.write_bytes(b"" if number % 2 else b"\xa5" * file.stat().st_size)
    assert fit("sample")[0] == first


def test_metadata_of_the_index_spares_the_file(
    fit: Fit, index: Index, module: bytes, tmp_path: Path
) -> None:
    """Only if a torch is installed; otherwise the file is fetched at once, as it tells which torch
    comes."""
    torch = {"path": "/t", "version": "2.15.0", "cuda": None, "rocm": None, "cxx11_abi": True}
    there = save_machine(tmp_path / "node.json", torch=torch)
    index.offer(NAME, {"sample.so": module}, **{"core-metadata": True})
    index.files[f"/files/{NAME}.metadata"] = b"Name: sample\nRequires-Python: >=3.99\n"
    [answer], code, _ = fit("sample", "--machine", there)
    assert code == 1
    assert answer["files"][0]["reason"] == "it requires Python >=3.99"
    assert f"/files/{NAME}" not in [path for path, _ in index.asked]


@pytest.mark.parametrize("soname", ["libabsent.so.7", ""])
def test_says_what_would_have_to_change(
    fit: Fit, index: Index, tmp_path: Path, soname: str
) -> None:
    flags = [f"-Wl,-soname,{soname}"] if soname else []  # without one, a path is needed
    absent = compiled(tmp_path / "libabsent.so.7", "void absent(void) {}", *flags)
    call = "void absent(void); void call(void) { absent(); }"
    needy = sample_wheels.library(tmp_path, call, str(absent))
    absent.unlink()
    index.offer(NAME, {"sample.so": needy})
    [answer], status, _ = fit("sample")
    assert (status, answer["nearest"], answer["take"]) == (1, NAME, None)
    assert answer["change"] == f"a system with {soname or absent}"
    assert answer["files"][0]["obstacle"] == "library"


def test_only_an_sdist(fit: Fit, index: Index) -> None:
    index.add("sample-1.0.tar.gz", b"sources")
    [answer], code, _ = fit("sample")
    assert (code, answer["sdist"]) == (1, "sample-1.0.tar.gz")


def test_yanked_and_prereleases_as_pip_takes_them(fit: Fit, index: Index) -> None:
    for version, yanked in (("1.0", False), ("2.0", "broken"), ("3.0rc1", False)):
        index.offer(f"sample-{version}-py3-none-any.whl", {"sample.py": b""}, yanked=yanked)
    for asked, taken in {"sample": "1.0", "sample==2.0": "2.0", "sample>=3.0rc1": "3.0rc1"}.items():
        [answer], _, _ = fit(asked)
        assert answer["take"] == f"sample-{taken}-py3-none-any.whl"


def test_another_machine(fit: Fit, index: Index, module: bytes, tmp_path: Path) -> None:
    name = NAME.replace("_2_17_", "_2_28_")
    index.offer(name, {"sample.so": module})
    here = run_json("machine", "--python", sys.executable)["machine"]["python"]["tags"]
    tags = {"tags": [tag for tag in here if "_2_28_" not in tag]}
    saved = save_machine(tmp_path / "old.json", tags, libc_version="2.17")
    [answer], code, _ = fit("sample", "--machine", saved)
    assert code == 1
    assert "here is glibc 2.17" in answer["files"][0]["reason"]


def test_ten_thousand_candidates(fit: Fit, index: Index) -> None:
    name = "sample-1.0-py3-none-any.whl"
    entries = [index.offer(name, {"sample.py": b""})]
    entries += [
        {"filename": f"sample-2.{number}-cp27-cp27m-win32.whl", "url": f"/{number}", "hashes": {}}
        for number in range(10_000)
    ]
    index.page("sample", entries)
    [answer], code, _ = fit("sample")
    assert (code, answer["take"]) == (0, name)
    assert answer["not_judged"] == 9_999


def test_a_wheel_on_the_disk(bare_fit: Fit, module: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(sample_wheels.wheel(NAME, {"sample.so": module}))
    [answer], code, _ = bare_fit(tmp_path / NAME)
    assert code == 0
    assert answer["command"] == f"{quote(sys.executable)} -m pip install {tmp_path / NAME}"


@pytest.mark.skipif(not shutil.which("ld.lld"), reason="needs ld.lld, of Debian's package lld")
def test_names_behind_an_erased_search_path(fit: Fit, index: Index, tmp_path: Path) -> None:
    """CMake overwrites the search path of installed libraries with zeros; with lld, libraries
    follow it."""
    compiled(tmp_path / "libabsent.so", "", "-Wl,-soname,libabsent.so.9")
    path = "/where/it/was/built"
    flags = ("-fuse-ld=lld", f"-Wl,-rpath,{path},--no-as-needed", f"-L{tmp_path}", "-labsent")
    module = sample_wheels.library(tmp_path, "", *flags)
    for body in (module, module.replace(path.encode(), bytes(len(path)))):
        index.offer(NAME, {"sample.so": body})
        [answer], _, _ = fit("sample")
        assert "sample.so needs libabsent.so.9" in answer["files"][0]["reason"]
