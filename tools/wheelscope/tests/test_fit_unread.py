"""What lies behind the bytes that `wheelscope fit` reads without --deep is not passed over in silence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_wheels
from package_index import Index
from program import PROGRAM, Fit
from sample_wheels import NAME

pytestmark = pytest.mark.usefixtures("scope")
GPU_NOTE = "whether it has code for the GPUs here was not looked at: --deep tells"

# What a CUDA runtime needs of the C library, and a module that holds one.
RUNTIME = """
    extern void dlvsym(), mkfifo(), nftw(), pthread_rwlockattr_setpshared(), shmget();
    void (*needs[])() = {dlvsym, mkfifo, nftw, pthread_rwlockattr_setpshared, shmget};
"""


def machine(folder: Path, driver: str) -> Path:
    """This one, with a GPU."""
    words = [str(PROGRAM), "machine", "--json", "--python", sys.executable]
    document = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    gpus = [{"name": "NVIDIA H200", "capability": "9.0"}]
    document["machine"] |= {"driver": driver, "gpus": gpus}
    path = folder / f"{driver}.json"
    path.write_text(json.dumps(document))
    return path


def test_a_runtime_inside_may_need_a_newer_driver(fit: Fit, index: Index, tmp_path: Path) -> None:
    module = sample_wheels.library(tmp_path, RUNTIME, "-Wl,--no-as-needed", "-ldl", "-lpthread")
    index.page("sample", [index.add(NAME, sample_wheels.wheel(NAME, {"sample.so": module}))])

    def ask(driver: str) -> tuple[Any, int]:
        there = machine(tmp_path, driver)
        [answer], code, _ = fit("sample", "--index", index.simple, "--machine", there)
        return answer["files"][0], code

    file, code = ask("535.54.03")
    assert (file["verdict"], file["obstacle"], code) == ("depends", "driver", 1)
    assert "not known without --deep; 535.54.03 is here" in file["reason"]
    assert file["read"] < file["size"] / 4
    file, code = ask("595.45.04")
    assert (file["verdict"], file["notes"], code) == ("works", [GPU_NOTE], 0)


def test_loose_device_code_is_mentioned(fit: Fit, index: Index, tmp_path: Path) -> None:
    there = machine(tmp_path, "595.45.04")
    name = "loose-1.0-py3-none-any.whl"
    for members, notes in (({}, []), ({"kernels/add.cubin": b"\x7fELF" * 200}, [GPU_NOTE])):
        index.page("loose", [index.add(name, sample_wheels.wheel(name, members))])
        [answer], _, _ = fit("loose", "--index", index.simple, "--machine", there)
        assert answer["files"][0]["notes"] == notes
