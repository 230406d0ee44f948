"""Tests a wheel's normal form: the same files make the same bytes, whoever packed them and however."""

import os
import random
import zipfile
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.tools import wheelfile, wheelscope

EPOCH = 1580601600  # 2020-02-02


def packed_anew(wheel: Path, chance: random.Random) -> None:
    """Packs the same files in another order, with other modes, times, compression and folders, as on another system."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    names = chance.sample([*files], len(files))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.comment = chance.randbytes(3)
        archive.writestr("demo/", "")
        for name in names:
            member = zipfile.ZipInfo(name, (2000 + chance.randrange(30), 1, 2, 3, 4, 6))
            member.external_attr = chance.choice([0o644, 0o600, 0o664, 0o640, 0]) << 16
            member.create_system = chance.choice([0, 3])
            method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            archive.writestr(member, files[name], method, chance.randrange(1, 10))


def test_two_hundred_ways_to_pack_a_wheel_make_one(tmp_path: Path) -> None:
    seen = set()
    for seed in range(200):
        wheel = make_wheel(tmp_path, text="the same " * 50, beside=("a,b.txt", "data/x"))
        packed_anew(wheel, random.Random(seed))
        before = os.umask((0o022, 0o002, 0o027, 0o077)[seed % 4])
        try:
            seen.add(sha256(wheelfile.rewrite(wheel, EPOCH)))
        finally:
            os.umask(before)
    assert len(seen) == 1
    looked = wheelscope.show(wheel)
    assert not [f for f in looked["findings"] if "RECORD" in str(f)]
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist()[-1].endswith("RECORD")
        assert {m.date_time[:3] for m in archive.infolist()} == {(2020, 2, 2)}
        assert {m.external_attr >> 16 for m in archive.infolist()} == {wheelfile.FILE}


def test_a_program_stays_one(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, beside=("tool",))
    with zipfile.ZipFile(wheel) as archive:
        members = [(m, archive.read(m)) for m in archive.infolist()]
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in members:
            member.external_attr = (0o700 if member.filename == "tool" else 0o600) << 16
            archive.writestr(member, data)
    with zipfile.ZipFile(wheelfile.rewrite(wheel, EPOCH)) as archive:
        modes = {m.filename: m.external_attr >> 16 for m in archive.infolist()}
    assert modes.pop("tool") == wheelfile.EXECUTABLE
    assert set(modes.values()) == {wheelfile.FILE}


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("demo_ext.py", "evil = 1")
    with pytest.raises(Problem, match=r"two members named demo_ext\.py"):
        wheelfile.rewrite(wheel, EPOCH)


def test_a_wheel_bound_to_one_python(tmp_path: Path) -> None:
    bound = wheelfile.bind_to_python(make_wheel(tmp_path), "cp313t", EPOCH)
    assert bound.name == "demo_ext-1.0-cp313-cp313t-any.whl"
    with zipfile.ZipFile(bound) as archive:
        assert "Tag: cp313-cp313t-any\n" in archive.read("demo_ext-1.0.dist-info/WHEEL").decode()
    assert not [f for f in wheelscope.show(bound)["findings"] if "RECORD" in str(f)]


def test_a_folder_that_spells_the_name_otherwise(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, name="Demo.Ext")
    bound = wheelfile.bind_to_torch(
        wheel.rename(tmp_path / "demo_ext-1.0-py3-none-any.whl"), "cu130", "2.15", EPOCH
    )
    assert bound.name == "demo_ext-1.0+cu130-py3-none-any.whl"
    with zipfile.ZipFile(bound) as archive:
        assert (
            "Version: 1.0+cu130\n" in archive.read("Demo.Ext-1.0+cu130.dist-info/METADATA").decode()
        )
    empty = tmp_path / "x-1-py3-none-any.whl"
    zipfile.ZipFile(empty, "w").close()
    with pytest.raises(Problem, match=r"has 0 \.dist-info folders"):
        wheelfile.rewrite(empty, EPOCH)
