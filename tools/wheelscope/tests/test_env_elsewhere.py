"""`wheelscope env --machine FILE`: the environment is here, the driver and the GPUs are elsewhere."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from program import PROGRAM, Scope


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An environment with a module that needs the driver's library."""
    folder = tmp_path / "env"
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    driver, module = tmp_path / "driver.c", tmp_path / "module.c"
    driver.write_text("int cuInit(unsigned flags) { return 0; }")
    module.write_text("int cuInit(unsigned); void *PyInit_gpu(void) { cuInit(0); return 0; }")
    stub = tmp_path / "libcuda.so.1"
    command = ["gcc", "-shared", "-fPIC", "-o"]
    subprocess.run([*command, stub, driver, "-Wl,-soname,libcuda.so.1"], check=True)
    subprocess.run([*command, site / "gpu.so", module, stub], check=True)
    info = site / "gpu-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu\nVersion: 1.0\n")
    (info / "RECORD").write_text("gpu.so,,\ngpu-1.0.dist-info/METADATA,,\n")
    return folder


def saved(prefix: Path, tmp_path: Path, **facts: Any) -> Path:
    words = [PROGRAM, "machine", "--json", "--python", sys.executable]
    document = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    document["machine"] |= facts
    document["machine"]["python"]["prefix"] = str(prefix)
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(document))
    return path


def test_the_driver_of_another_machine_counts(scope: Scope, prefix: Path, tmp_path: Path) -> None:
    if any(Path("/usr/lib").glob("*/libcuda.so.1")):
        pytest.skip("this machine has a driver")
    [here] = scope("env", prefix, code=1)["distributions"]
    assert here["loads"] == "no"
    node = saved(prefix, tmp_path, driver="580.65.06")
    [there] = scope("env", "--machine", node)["distributions"]
    assert there["loads"] == "yes"
    node = saved(prefix, tmp_path, driver=None)
    [neither] = scope("env", prefix, "--machine", node, code=1)["distributions"]
    assert neither["loads"] == "no"
