"""`thin` keeps only the device code that a GPU would choose; the loader, readelf, zipfile and
hashlib judge what it wrote."""

import ctypes
import functools
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import program
import pytest
from fixture_elf import Code, Elf, archive_of_objects, fatbin
from fixture_zip import Files
from fixtures import record, wheel
from program import run_json, site_of

from validation.thin import containers

NAME = "pkg-1.0-py3-none-manylinux_2_28_x86_64.whl"
RECORD, SBOM = "pkg-1.0.dist-info/RECORD", "pkg-1.0.dist-info/sboms/pkg.cdx.json"
PAGE = 4096
SOURCE = """
extern const char fatbins[];
static const char *const wrappers[2] = {fatbins, fatbins + FIRST};  /* as .nvFatBinSegment */
static int calls = 41;
char behind[] = "what follows the device code";
const char *container(int i) { return wrappers[i]; }
int call(void) { return ++calls; }
"""


run = functools.partial(program.run, "thin")
thin_json = functools.partial(program.scope, "thin")


def thinned(path: Path, *words: str) -> tuple[Any, dict[str, bytes]]:
    """Returns the report on the new wheel, and its members."""
    [thin] = thin_json(path, *words, "-o", path.parent / "out")["thin"]
    return thin, members(Path(thin["written"]))


def code(target: str, size: int = 100, compression: str = "") -> Code:
    """Makes code for sm_90a or compute_80; its payload says which."""
    kind, arch = target.split("_")
    payload = target.encode() + b" x" + random.Random(target).randbytes(size - len(target) - 2)
    return Code(
        "ptx" if kind == "compute" else "sass",
        int(arch.rstrip("af")),
        payload,
        compression,
        arch.lstrip("0123456789"),
    )


def container(*targets: str, size: int = 100, compression: str = "") -> bytes:
    return fatbin([code(target, size, compression) for target in targets])


def library(
    tmp_path: Path,
    *containers: bytes,
    source: str = SOURCE,
    compiler: tuple[str, ...] = ("cc", "-g"),
) -> bytes:
    """Builds a real shared library with two fat binaries, and pointers to them that the loader
    relocates."""
    folder = tmp_path / "library"
    folder.mkdir(exist_ok=True)
    (folder / "code.bin").write_bytes(b"".join(containers))
    (folder / "code.s").write_text(
        '.section .nv_fatbin,"a"\n.balign 8\n.globl fatbins\n.hidden fatbins\nfatbins:\n'
        f'.incbin "{folder}/code.bin"\n.section .note.GNU-stack,"",@progbits\n'
    )
    host = folder / "host.c"
    host.write_text(source)
    options = ["-O1", "-shared", "-fPIC", f"-DFIRST={len(containers[0])}", "-o", folder / "x.so"]
    subprocess.run([*compiler, *options, host, folder / "code.s"], check=True)
    return (folder / "x.so").read_bytes()


def written(tmp_path: Path, files: Files, name: str = NAME, **changes: Any) -> Path:
    path = tmp_path / name
    path.write_bytes(wheel(files, **changes))
    return path


def repacked(folder: Path, files: Files) -> Path:
    """Packs changed members of a wheel into another wheel, with a correct RECORD."""
    folder.mkdir()
    made = ("RECORD", "WHEEL", "METADATA")
    return written(folder, {n: data for n, data in files.items() if not n.endswith(made)})


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def assert_record_is_true(files: dict[str, bytes]) -> None:
    others = {name: data for name, data in files.items() if name != RECORD}
    expected = record(others, "pkg-1.0.dist-info")
    assert set(files[RECORD].splitlines()) == set(expected.splitlines())


def kept(file: Any) -> list[str]:
    return [sum["code"] for sum in file["kept"]]


@pytest.mark.parametrize(
    ("targets", "gpu", "chosen"),
    [
        ("sm_75 sm_80 sm_90 compute_90", "9.0", "sm_90"),
        ("sm_75 sm_80 sm_90 compute_90", "8.6", "sm_80"),
        ("sm_80 sm_86 sm_90", "8.9", "sm_86"),
        ("sm_80 compute_75 compute_80", "9.0", "compute_80"),  # only by PTX: vLLM has such modules
        ("sm_80 sm_90a compute_80", "9.0", "sm_90a"),
        ("sm_90a compute_80", "10.0", "compute_80"),  # code with `a` runs only on its own GPU
        ("sm_80 sm_100f compute_80", "10.3", "sm_100f"),
        ("sm_80 sm_87 sm_90", "8.9", "sm_80"),  # a Jetson's code runs on no other GPU
        ("sm_80 sm_87 compute_72", "8.7", "sm_87"),
        ("sm_90 sm_90a sm_80", "9.0", "sm_90 sm_90a"),
    ],
)
def test_keeps_what_the_gpu_chooses(tmp_path: Path, targets: str, gpu: str, chosen: str) -> None:
    original = library(tmp_path, container(*targets.split()), container("sm_80", "compute_75"))
    path = written(tmp_path, {"pkg/x.so": original})
    data = thinned(path, "--gpu", gpu)[1]["pkg/x.so"]
    names = {"elf": "sm", "ptx": "compute"}
    first = next(containers(data))  # read without wheelscope
    assert {f"{names[kind]}_{arch}{suffix}" for kind, arch, suffix in first} == set(chosen.split())


@pytest.mark.parametrize("compression", ["", "lz4", "zstd"])
def test_the_loader_finds_everything_where_it_was(tmp_path: Path, compression: str) -> None:
    size = 40 * PAGE + 24
    targets = ("sm_75", "sm_80", "sm_90", "compute_90")
    original = library(tmp_path, *2 * [container(*targets, size=size, compression=compression)])
    thin, after = thinned(written(tmp_path, {"pkg/x.so": original}), "--gpu", "9.0")
    [file], data = thin["files"], after["pkg/x.so"]
    assert len(data) == file["size"] < len(original) - 5 * size
    assert file["keeps_zeros"] is None
    (tmp_path / "thin.so").write_bytes(data)
    loaded = ctypes.CDLL(str(tmp_path / "thin.so"))
    assert loaded.call() == 42
    assert (ctypes.c_char * 29).in_dll(loaded, "behind").value == b"what follows the device code"
    loaded.container.restype = ctypes.c_void_p
    code_size = len(code("sm_90", size, compression).build())
    for i in range(2):
        address = loaded.container(i)
        assert address
        header = ctypes.string_at(address, 16)
        assert header == struct.pack("<IHHQ", 0xBA55ED50, 1, 16, code_size)
        assert ctypes.string_at(address + 16, code_size) == code("sm_90", size, compression).build()
        freed = 3 * size  # most of what was cut: zeros, without a byte of the file
        assert ctypes.string_at(address + 16 + code_size, freed) == bytes(freed)
    told = subprocess.run(
        ["readelf", "-lSWsd", tmp_path / "thin.so"], capture_output=True, text=True, check=True
    )
    assert not told.stderr
    symbols = [line for line in told.stdout.splitlines() if line.endswith(" call")]
    assert len(symbols) == 2  # in .dynsym and .symtab


@pytest.mark.parametrize("data", range(0, PAGE, 512))
def test_exceptions_find_their_handlers(tmp_path: Path, data: int) -> None:
    """Unwinding needs the program headers, which glibc may look for in the zeros behind the data."""
    source = f"""
        char data[{data + 1}] = {{1}}, zeros[{PAGE}];
        __attribute__((noinline)) void thrown() {{ throw 42; }}
        extern "C" int caught() {{ try {{ thrown(); }} catch (int what) {{ return what; }} return 0; }}
    """
    fat = container("sm_80", "sm_90", size=20 * PAGE)
    original = library(tmp_path, fat, source=source, compiler=("g++", "-s"))
    thin, after = thinned(written(tmp_path, {"pkg/x.so": original}), "--gpu", "9.0")
    assert thin["files"][0]["keeps_zeros"] is None
    (tmp_path / "thin.so").write_bytes(after["pkg/x.so"])
    call = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).caught())"
    done = subprocess.run(
        [sys.executable, "-c", call, tmp_path / "thin.so"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_check_wants_program_headers_that_the_loader_finds(fat: Path, tmp_path: Path) -> None:
    _, files = thinned(fat, "--gpu", "9.0")
    data = bytearray(files["pkg/x y.so"])
    first = struct.unpack_from("<Q", data, 32)[0]
    struct.pack_into("<Q", data, first + 16, PAGE)  # PT_PHDR names another address
    other = repacked(tmp_path / "other", {**files, "pkg/x y.so": bytes(data)})
    check = thin_json("--check", fat, other, code=1)["thin_check"]
    assert check["differences"] == [{"path": "pkg/x y.so", "difference": "host-code"}]


def test_a_file_that_cannot_shrink_keeps_zeros(tmp_path: Path) -> None:
    relocatable = container("sm_80", "sm_90", "compute_80", size=9 * PAGE)
    objects = archive_of_objects(Elf(type=1, sections={"__nv_relfatbin": relocatable}).build())
    thin, after = thinned(written(tmp_path, {"pkg/libx.a": objects}), "--gpu", "9.0")
    [file] = thin["files"]
    assert file["keeps_zeros"] == "not-shared"
    assert kept(file) == ["compute_80", "sm_90"]  # a linker may want either
    assert len(after["pkg/libx.a"]) == len(objects)
    assert thin["size"] < thin["size_before"]


@pytest.mark.parametrize(
    ("from_last", "more", "keeps_zeros"),
    [
        (2, 1 << 40, "unusual"),  # .strtab runs past the end: nobody can tell what it was
        (1, 128, None),  # .shstrtab runs into the table that follows it
    ],
)
def test_sections_that_are_too_long(
    tmp_path: Path, from_last: int, more: int, keeps_zeros: str | None
) -> None:
    """Found by the fuzzer."""
    targets = ("sm_75", "sm_80", "sm_90")
    data = bytearray(library(tmp_path, container(*targets, size=9 * PAGE), container("sm_90")))
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    size_at = table + 64 * (count - from_last) + 32
    struct.pack_into("<Q", data, size_at, struct.unpack_from("<Q", data, size_at)[0] + more)
    path = written(tmp_path, {"pkg/x.so": bytes(data)})
    thin, _ = thinned(path, "--gpu", "9.0")
    assert thin["files"][0]["keeps_zeros"] == keeps_zeros
    assert thin_json("--check", path, thin["written"])["thin_check"]["thinning"] is True


@pytest.fixture
def fat(tmp_path: Path) -> Path:
    targets = ("sm_75", "sm_80", "sm_90", "compute_80")
    data = library(tmp_path, container(*targets, size=9 * PAGE), container("sm_80", "compute_80"))
    sbom = json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6"}).encode()
    return written(tmp_path, {"pkg/__init__.py": b"x = 1\n", "pkg/x y.so": data, SBOM: sbom})


def test_the_new_wheel_is_sound_and_says_what_was_cut(fat: Path, tmp_path: Path) -> None:
    thin, after = thinned(fat, "--gpu", "9.0")
    new = Path(thin["written"])
    assert new == tmp_path / "out" / NAME
    before = members(fat)
    statement = "pkg-1.0.dist-info/wheelscope-thin.json"
    assert set(after) - set(before) == {statement}
    assert_record_is_true(after)
    assert thin["installed"] == sum(map(len, after.values()))
    assert {n for n in before if before[n] != after[n]} == {"pkg/x y.so", RECORD, SBOM}
    said = json.loads(after[statement])
    assert said["original"]["sha256"] == hashlib.sha256(fat.read_bytes()).hexdigest()
    assert said["gpus"] == ["9.0"]
    [file] = said["files"]
    cut = {part["code"]: part["count"] for part in file["cut"]}
    assert cut == {"compute_80": 1, "sm_75": 1, "sm_80": 2}
    [note] = json.loads(after[SBOM])["metadata"]["properties"]
    assert note["name"] == "wheelscope:thin"
    with zipfile.ZipFile(fat) as old_zip, zipfile.ZipFile(new) as new_zip:
        for old in old_zip.infolist():
            for field in ("date_time", "external_attr", "compress_type"):
                assert getattr(new_zip.getinfo(old.filename), field) == getattr(old, field)
    assert run_json("show", new)["items"][0]["findings"] == []


DEEP = 300_000 * b"[" + 300_000 * b"]"  # enough to crash


@pytest.mark.parametrize(
    ("sbom", "noted"),
    [
        (b'{"bomFormat": "CycloneDX", "comment": "", "metadata": {"properties": [{}]}}', True),
        (b'{\n  "spdxVersion": "SPDX-2.3"\n}\n', True),
        (b'{"spdxVersion": "SPDX-2.3", "comment": "of its own"}', False),
        (b'{"spdxVersion": ' + DEEP + b"}", False),
    ],
)
def test_check_knows_the_note_of_an_sbom(tmp_path: Path, sbom: bytes, noted: bool) -> None:
    path = written(tmp_path, {"pkg/x.fatbin": container("sm_80", "sm_90"), SBOM: sbom})
    thin, after = thinned(path, "--gpu", "9.0")
    assert (b"device code for 9.0 alone" in after[SBOM]) is noted
    assert thin_json("--check", path, thin["written"])["thin_check"]["thinning"] is True


def test_equal_wheels_give_equal_bytes(fat: Path, tmp_path: Path) -> None:
    run(fat, "--gpu", "9.0", "-o", tmp_path / "one")
    shutil.copy(fat, tmp_path / "library")
    there = {"cwd": tmp_path / "library", "env": {"TZ": "Asia/Tokyo"}}
    run(NAME, "--arch-list", "9.0", "-o", tmp_path / "two", **there)
    assert (tmp_path / "one" / NAME).read_bytes() == (tmp_path / "two" / NAME).read_bytes()


def test_ptx_is_kept_on_request(fat: Path) -> None:
    for words, left in (
        (["--gpu", "9.0", "--keep-ptx"], ["compute_80", "sm_90"]),
        (["--arch-list", "9.0+PTX"], ["compute_80", "sm_90"]),
        (["--arch-list", "7.5;9.0a"], ["compute_80", "sm_75", "sm_90"]),
    ):
        assert kept(thinned(fat, *words)[0]["files"][0]) == left


def test_loose_files_that_cannot_run_are_left_out(tmp_path: Path) -> None:
    cubins = {
        f"pkg/k{sm}.cubin": Elf(machine="cuda", type=2, flags=sm << 8, abi_version=8).build()
        for sm in (80, 86, 90)
    }
    path = written(tmp_path, {**cubins, "pkg/x.fatbin": container("sm_80", "sm_90")})
    after = thinned(path, "--gpu", "8.9")[1]
    assert [name for name in after if name.endswith(".cubin")] == ["pkg/k80.cubin", "pkg/k86.cubin"]
    assert after["pkg/x.fatbin"] == container("sm_80")
    assert_record_is_true(after)


def test_dry_run_has_a_row_for_each_gpu_that_is_served(fat: Path) -> None:
    rows = {tuple(row["gpus"]): row for row in thin_json(fat, "--dry-run")["thin"]}
    assert ("7.0",) not in rows
    assert rows[("9.0",)]["files"][0]["modules"]["9.0"] == {"native": 1, "jit": 1, "unserved": 0}
    assert rows[("7.5",)]["files"][0]["modules"]["7.5"] == {"native": 1, "jit": 0, "unserved": 1}
    assert "1 native, 1 compiled by the driver" in run(fat, "--dry-run", "--gpu", "9.0").stdout


def test_check_accepts_thinnings_alone(fat: Path, tmp_path: Path) -> None:
    run(fat, "--gpu", "9.0", "-o", tmp_path / "out")
    new = tmp_path / "out" / NAME
    check = thin_json("--check", fat, new)["thin_check"]
    assert check["thinning"] is True
    assert "9.0" in check["same_for"]
    assert check["other_for"][:3] == ["7.5", "8.0", "8.6"]
    assert "12.0" in check["other_for"]
    assert thin_json("--check", new, fat, code=1)["thin_check"]["thinning"] is False
    run(fat, "--gpu", "7.5", "-o", tmp_path / "other")
    check = thin_json("--check", fat, new, tmp_path / "other" / NAME)["thin_check"]
    assert check["same_for"] == ["7.5", "9.0"]
    assert check["other_for"][0] == "8.0"
    check = thin_json("--check", fat, new, written(tmp_path / "library", {"a.py": b""}), code=1)
    assert {found["path"] for found in check["thin_check"]["differences"]} >= {f"{NAME}: a.py"}
    before = members(fat)
    host = before["pkg/x y.so"].replace(b"what follows", b"that follows")
    code_changed = before["pkg/x y.so"].replace(b"sm_90 x", b"sm_90 y")
    for files, difference in (
        ({**before, "pkg/x y.so": host}, "host-code"),
        ({**before, "pkg/x y.so": code_changed}, "device-code"),
        ({**before, "pkg/__init__.py": b"x = 2\n"}, "contents"),
        ({**before, "pkg/new.py": b""}, "added"),
        ({name: data for name, data in before.items() if name != "pkg/__init__.py"}, "missing"),
    ):
        other, _ = thinned(repacked(tmp_path / difference, files), "--gpu", "9.0")
        check = thin_json("--check", fat, other["written"], code=1)["thin_check"]
        assert [found["difference"] for found in check["differences"]] == [difference]


def test_refuses_what_it_cannot_vouch_for(fat: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "-o DIR" in run(fat, "--gpu", "9.0", code=2).stderr
    assert "they are 5.0" in run(fat, "--gpu", "9.7", "-o", out, code=2).stderr
    assert "no GPU is named" in run(fat, "-o", out, code=2).stderr
    assert "serves GPU 7.0" in run(fat, "--gpu", "7.0", "-o", out, code=1).stderr
    assert "is the wheel itself" in run(fat, "--gpu", "9.0", "-o", tmp_path, code=3).stderr
    run(fat, "--gpu", "9.0", "-o", out)
    again = run(out / NAME, "--gpu", "9.0", "-o", tmp_path / "again", code=3)
    assert "thinned already" in again.stderr
    false = written(tmp_path / "library", {"a.py": b""}, record_text=b"a.py,sha256=x,1\n")
    assert "RECORD" in run(false, "--gpu", "9.0", "-o", out, code=3).stderr
    assert sorted(path.name for path in out.iterdir()) == [NAME]


def test_nothing_to_cut_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"pkg/__init__.py": b""})
    words = (path, "--gpu", "9.0", "-o", tmp_path / "o")
    assert "nothing: there is no device code" in run(*words).stdout
    assert "no device code for any of these GPUs" in run(path, "--dry-run").stdout
    assert "no native code in this wheel" in run(*words, "--variant", "sm90", code=1).stderr
    assert not (tmp_path / "o").exists()


def test_a_variant_says_which_gpu_it_is_for(fat: Path, tmp_path: Path) -> None:
    run(fat, "--gpu", "9.0", "--variant", "sm90", "-o", tmp_path / "out")
    [new] = (tmp_path / "out").iterdir()
    assert new.name == NAME.replace(".whl", "-sm90.whl")
    said = json.loads(members(new)["pkg-1.0.dist-info/variant.json"])
    assert said["variants"] == {"sm90": {"nvidia": {"sm_arch": ["90_real"]}}}
    assert_record_is_true(members(new))
    words = ("--gpu", "12.0", "--variant", "sm120", "-o", tmp_path / "o")  # only by PTX
    assert "no native code in this wheel" in run(fat, *words, code=1).stderr
    words = ("--arch-list", "8.0;9.0", "--variant", "x", "-o", tmp_path / "o")
    assert "one --gpu" in run(fat, *words, code=2).stderr
    for label in ("SM-90", "null", ""):
        words = ("--gpu", "9.0", "--variant", label, "-o", tmp_path / "o")
        assert "small letters" in run(fat, *words, code=2).stderr


def test_a_variant_has_code_for_all_that_would_get_it(tmp_path: Path) -> None:
    """NVIDIA's provider also gives 80_real to 8.6 and 8.9."""
    data = library(tmp_path, container("sm_75", "sm_80", "sm_86", "sm_87"), container("sm_86"))
    tag = "py3-none-manylinux_2_28_aarch64"
    for name, chosen in (
        (NAME, ["sm_80", "sm_86"]),
        (f"pkg-1.0-{tag}.whl", ["sm_80", "sm_86", "sm_87"]),
    ):
        path = written(tmp_path, {"pkg/x.so": data}, name)
        thin, _ = thinned(path, "--gpu", "8.0", "--variant", "sm80")
        assert kept(thin["files"][0]) == chosen


def findings(path: Path) -> dict[str, str]:
    [item] = run_json("check", path, code=None)["items"]
    return {
        found["id"]: found["what"]
        for found in item["findings"]
        if found["id"].startswith("variant")
    }


def test_check_refuses_a_variant_whose_bytes_say_otherwise(tmp_path: Path) -> None:
    def variant(label: str, value: str, name: str = "sm90") -> Path:
        data = library(tmp_path, container("sm_80", "sm_75"), container("sm_80"))
        said = {"variants": {label: {"nvidia": {"sm_arch": [value]}}}}
        files = {"pkg/x.so": data, "pkg-1.0.dist-info/variant.json": json.dumps(said).encode()}
        return written(tmp_path, files, NAME.replace(".whl", f"-{name}.whl" if name else ".whl"))

    assert findings(variant("sm90", "80_real")) == {}
    claim = findings(variant("sm90", "90_real"))
    assert claim == {
        "variant-claim": "the variant says nvidia :: sm_arch :: 90_real, and has no native code "
        "for GPU 9.0: it holds sm_75, sm_80"
    }
    assert set(findings(variant("other", "80_real"))) == {"variant-label"}
    assert set(findings(variant("sm90", "80_real", ""))) == {"variant-label"}
    plain = written(tmp_path, {"a.py": b""}, NAME.replace(".whl", "-sm90.whl"))
    assert set(findings(plain)) == {"variant-label"}


# Files that variantlib 0.2.2 rejects, and one that it accepts.
@pytest.mark.parametrize(
    ("label", "variants", "sound"),
    [
        ("foo", {"foo": {"ns": {"f": ["v1.0"]}}}, True),
        ("null", {"null": {}}, True),
        ("foo", {"foo": {}}, False),
        ("", {}, False),
        ("null", {"null": {"ns": {"f": ["v"]}}}, False),
        ("foo", {"foo": {"ns": {"f": "v"}}}, False),
        ("foo", {"foo": {"N S": {"f": ["v"]}}}, False),
        ("foo", {"foo": {"ns": {"f-g": ["v"]}}}, False),
        ("foo", {"foo": {"ns": {"f": ["V!"]}}}, False),
        ("foo", {"foo": {"ns": {"f": ["v"]}}, "bar": {"ns": {"f": ["w"]}}}, False),
    ],
)
def test_check_refuses_what_variantlib_does(
    tmp_path: Path, label: str, variants: Any, sound: bool
) -> None:
    said = json.dumps({"variants": variants}).encode()
    path = written(
        tmp_path,
        {"a.py": b"", "pkg-1.0.dist-info/variant.json": said},
        NAME.replace(".whl", f"-{label}.whl" if label else ".whl"),
    )
    what = f"the file name ends in the label '{label}', and variant.json names no sound variant"
    assert findings(path) == ({} if sound else {"variant-label": what})


OWNER = (1234, 1234) if os.getuid() == 0 else (os.getuid(), os.getgid())


def unpacked(path: Path, prefix: Path) -> Path:
    """Unpacks a wheel as pip does; returns the site-packages."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(site_of(prefix))
    return site_of(prefix)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_environment_is_thinned_and_put_back(fat: Path, bare: Path, tmp_path: Path) -> None:
    site = unpacked(fat, bare)
    listed = site / RECORD
    twice = [line for line in listed.read_text().splitlines() if line.startswith("pkg/x y.so")]
    listed.write_text("\n".join([*twice, listed.read_text()]))  # some builders list files twice
    before = contents(site)
    [package] = thin_json("--env", bare, "--gpu", "9.0")["thin_packages"]
    assert (package["name"], package["written"]) == ("pkg", False)
    assert contents(site) == before
    os.link(site / "pkg/x y.so", tmp_path / "cached.so")  # like uv's links
    save = tmp_path / "saved"
    assert "--save" in run("--env", bare, "--gpu", "9.0", "--write", code=2).stderr
    assert "--write" in run("--env", bare, "--gpu", "9.0", "--save", save, code=2).stderr
    (site / "pkg/x y.so").chmod(0o751)
    os.chown(site / "pkg/x y.so", *OWNER)
    run("--env", bare, "--gpu", "9.0", "--write", "--save", save)
    after = contents(site)
    assert {n for n in before if before[n] != after[n]} == {"pkg/x y.so", RECORD}
    assert len(after["pkg/x y.so"]) == package["files"][0]["size"]
    assert_record_is_true(after)
    assert twice[0] not in listed.read_text()
    assert (tmp_path / "cached.so").read_bytes() == before["pkg/x y.so"]
    again = run("--env", bare, "--gpu", "9.0", "--write", "--save", save, code=3)
    assert "empty folder" in again.stderr
    for changed in (2, 0):
        assert f"{changed} files put back" in run("--undo", save).stdout
        assert contents(site) == before
        status = (site / "pkg/x y.so").stat()
        assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o751, *OWNER)


def test_a_package_stays_whole_where_it_cannot_be_thinned(bare: Path, tmp_path: Path) -> None:
    """Code for another GPU, a link into a cache, and a package whose second file cannot be
    replaced."""
    data = library(tmp_path, container("sm_80", "sm_90", size=9 * PAGE), container("sm_80"))
    cubin = Elf(machine="cuda", type=2, flags=80 << 8, abi_version=8).build()
    long = "pkg/" + "x" * 248 + ".so"  # too long for another file's name beside it
    files = {"pkg/a.so": data, "pkg/k80.cubin": cubin, long: data}
    site = unpacked(written(tmp_path, files), bare)
    save = tmp_path / "saved"
    (site / "pkg/k80.cubin").chmod(0o640)
    before = contents(site)
    words = ("--env", bare, "--write", "--save", save, "--gpu")
    assert "no code for 7.5" in run(*words, "7.5").stdout
    assert not save.exists()
    assert "File name too long" in run(*words, "9.0", code=3).stderr
    assert contents(site) == before
    assert (site / "pkg/k80.cubin").stat().st_mode & 0o777 == 0o640
    for name in ("pkg/a.so", long):
        (site / name).rename(tmp_path / "cached.so")
        (site / name).symlink_to(tmp_path / "cached.so")
    done = run("--env", bare, "--gpu", "9.0", "--write", "--save", tmp_path / "other")
    assert done.stdout.count("symbolic link") == 2
    assert "1 file, written" in done.stdout  # the cubin is gone
    assert (tmp_path / "cached.so").read_bytes() == data


def test_a_file_that_changed_since_is_left_alone(fat: Path, bare: Path, tmp_path: Path) -> None:
    site = unpacked(fat, bare)
    library_file = site / "pkg/x y.so"
    original = library_file.read_bytes()
    library_file.write_bytes(original + b"edited")
    done = run("--env", bare, "--gpu", "9.0", "--write", "--save", tmp_path / "saved")
    assert "not what RECORD says" in done.stdout
    library_file.write_bytes(original)
    run("--env", bare, "--gpu", "9.0", "--write", "--save", tmp_path / "saved")
    library_file.write_bytes(library_file.read_bytes() + b"edited")
    before = contents(site)
    assert "was changed after" in run("--undo", tmp_path / "saved", code=3).stderr
    assert contents(site) == before  # RECORD stays too: it is right for the other files
