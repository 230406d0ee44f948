"""Tests the embedded index: twine uploads to it and pip installs from it, as with any other; nothing in it ever
changes."""

import base64
import dataclasses
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.steps import publish
from wheelyard.tools import index
from wheelyard.tools.index import Index

STATE = "0" * 64  # the digest of an sdist
LOCALS = ("cu130torch2.14", "cu130torch2.15")


def send(where: Index, file: Path) -> list[str]:
    return publish.upload(where, "demo_ext", {file: sha256(file)}, file.with_name("log"))


def pip(simple: str, wanted: str, folder: Path) -> list[str]:
    words = [sys.executable, "-m", "pip", "download", "--isolated", "--no-deps", "--no-cache-dir"]
    told = ["--index-url", simple, "--dest", folder, wanted]
    subprocess.run([*words, *told], check=True, capture_output=True)
    return [file.name for file in folder.iterdir()]


def test_what_twine_uploads_is_there_for_pip_and_later_runs(tmp_path: Path) -> None:
    """Wheels for one torch have an index of their own."""
    plain = make_wheel(tmp_path, version="1.0", text="--boundary\r\n\0 \r\n\r\n")
    bound = [make_wheel(tmp_path, version=f"1.0+{local}") for local in LOCALS]
    with index.embedded(tmp_path / "index", STATE) as served:
        assert served.part
        assert send(served, plain) == [plain.name]
        for wheel, local in zip(bound, LOCALS, strict=True):
            part = served.part(local.replace("torch", "-torch"))
            assert send(part, wheel) == [wheel.name]
            assert pip(part.simple, "demo_ext", tmp_path / local) == [wheel.name]
    with index.embedded(tmp_path / "index", STATE) as served:
        assert send(served, plain) == []
        assert pip(served.simple, "demo_ext==1.0", tmp_path / "plain") == [plain.name]
        address = served.address(bound[0].name, sha256(bound[0])).replace("#", "?")
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == bound[0].read_bytes()
    with index.embedded(tmp_path / "index", "1" * 64) as served:
        assert served.files("demo_ext") == {}


def test_a_file_never_changes_and_only_this_run_adds_one(tmp_path: Path) -> None:
    wheel, other = (make_wheel(tmp_path / text, text=text) for text in ("good", "evil"))
    with index.embedded(tmp_path / "index", STATE) as served:
        with pytest.raises(Problem, match="HTTPError: 403 "):
            send(dataclasses.replace(served, password="guessed"), other)
        assert served.files("demo_ext") == {}
        send(served, wheel)
        publish._send(served, other, tmp_path / "log")
        assert served.files("Demo.Ext") == {wheel.name: sha256(wheel)}, "the same project"
        with pytest.raises(Problem, match=r"with other bytes.*raise the version"):
            send(served, other)


@pytest.mark.parametrize("path", ["../evil-1.0-py3-none-any.whl", "a/b-1.whl", ""])
def test_a_name_that_is_none_leads_nowhere(tmp_path: Path, path: str) -> None:
    form = f'--b\r\nContent-Disposition: x; name="content"; filename="{path}"\r\n\r\nevil\r\n--b--'
    with index.embedded(tmp_path / "index", STATE) as served:
        allowed = base64.b64encode(f"{index.USER}:{served.password}".encode()).decode()
        headers = {
            "Authorization": f"Basic {allowed}",
            "Content-Type": "multipart/form-data; boundary=b",
        }
        request = urllib.request.Request(served.upload, form.encode(), headers)
        with pytest.raises(OSError):
            urllib.request.urlopen(request)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
