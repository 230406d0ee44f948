"""Tests that messages quoted on the pages are those that the programs print."""

import platform
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from walk import ROOT, matches
from wheelyard.core.job import Job, Needs
from wheelyard.run.cluster import offers
from wheelyard.tools import wheelfile

PROGRAM = ROOT / "build/bin/wheelscope"


def quoted(page: str, words: str) -> str:
    """Returns the block of text that contains these words."""
    found = re.findall(r"^```text\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    (block,) = [text for text in found if words in text]
    return str(block)


def test_what_no_worker_offers():
    there = dict.fromkeys(["x86_64", offers.ENGINE, offers.NETWORK], 2) | {offers.MEMORY: 31}
    worker = offers.Member("tls://box-71:1", "box-71", 2, there)
    job = Job("gpu", "x86_64", Needs("x86_64", gpu=True), {})
    said = f"error: {job.name} {offers.lacking(job, [worker], 'tls://laptop:8786')}\n"
    assert quoted("tools/wheelyard/docs/cluster.md", "which no worker offers") == said


@pytest.mark.skipif(not PROGRAM.is_file(), reason="needs `make wheelscope`")
def test_a_wheel_without_device_code(tmp_path: Path):
    tag = f"py3-none-manylinux_2_28_{platform.machine()}"
    library = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", tmp_path / "it.so"]
    code = 'extern "C" void aoti_torch_get_current_device_index(); void f() { aoti_torch_get_current_device_index(); }'
    subprocess.run(library, input=code, text=True, check=True)
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: it\nVersion: 1.0+cu130\n",
        "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "RECORD": "",
    }
    wheel = tmp_path / f"it-1.0+cu130-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tmp_path / "it.so", "it/it.so")
        for name, text in files.items():
            archive.writestr(f"it-1.0+cu130.dist-info/{name}", text)
    wheelfile.rewrite(wheel, 0)  # fills RECORD
    said = subprocess.run([PROGRAM, "check", wheel], capture_output=True, text=True).stdout
    quote = quoted("tools/wheelyard/docs/first-release.md", "[cuda-code]")
    assert matches(re.sub(r"^\S+", "...", quote), said), said
