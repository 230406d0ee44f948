"""The static index: pip takes the right file from it, hash checked, local versions included; uv the right variant."""

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.report import static_index
from wheelyard.tools import wheelscope


@contextmanager
def index_of(folder: Path, wheels: list[Path]) -> Iterator[str]:
    """The address of an index of wheels in a folder."""
    static_index.write(folder / "simple", "demo_ext", wheels)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder with two wheels and their index, and its address."""
    wheels = [make_wheel(tmp_path, version=v) for v in ("1.0+cu129torch2.10", "1.0+cu130torch2.15")]
    with index_of(tmp_path, wheels) as url:
        yield tmp_path, url


def pip_download(url: str, requirement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "download", "--isolated", "--no-deps", "--no-cache-dir"]
    where = ["--index-url", url, "--dest", str(folder)]
    return subprocess.run([*command, *where, requirement], capture_output=True, text=True)


def test_pip_takes_the_local_version_it_is_asked_for(served: tuple[Path, str]) -> None:
    folder, url = served
    done = pip_download(url, "demo_ext==1.0+cu130torch2.15", folder / "got")
    assert done.returncode == 0, done.stderr
    assert [p.name for p in (folder / "got").iterdir()] == [
        "demo_ext-1.0+cu130torch2.15-py3-none-any.whl"
    ]


def test_a_changed_file_is_refused_by_its_hash(served: tuple[Path, str]) -> None:
    folder, url = served
    wheel = folder / "demo_ext-1.0+cu129torch2.10-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    done = pip_download(url, "demo_ext==1.0+cu129torch2.10", folder / "got")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


FORCE = "NV_VARIANT_PROVIDER_FORCE"
TARGETS = ("7.0+PTX", "8.0", "8.6", "9.0+PTX", "12.0")


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with a wheel, its variants and their index, and its address."""
    folder = tmp_path_factory.mktemp("variants")
    wheel = make_wheel(folder, gpus=TARGETS)
    for gpu in (target.removesuffix("+PTX") for target in TARGETS):
        label = "sm" + gpu.replace(".", "")
        wheelscope.thin(wheel, gpu, label, folder, folder / "log")
    with index_of(folder, sorted(folder.glob("*.whl"))) as url:
        yield folder, url


# What `plan` says: the nearest earlier target of the same major version, for any driver.
TAKEN = {
    "7.0": "sm70", "7.5": "sm70", "8.0": "sm80", "8.6": "sm86", "8.9": "sm86", "9.0": "sm90",
    "10.0": "", "10.3": "", "11.0": "", "12.0": "sm120", "12.1": "sm120", "6.1": "", "": "",
}  # fmt: skip


@pytest.mark.parametrize("driver", ["12.8", "13.0"])
@pytest.mark.parametrize("gpu", TAKEN)
def test_uv_takes_the_variant_of_a_gpu(
    variants: tuple[Path, str], tmp_path: Path, gpu: str, driver: str
) -> None:
    found, url = tmp_path / "found", variants[1]
    command = ["uv", "pip", "install", "--preview-features", "wheel-variants", "--no-deps"]
    where = ["--no-cache", "--index-url", url, "--python", sys.executable, "--target", str(found)]
    forced = {f"{FORCE}_SM_ARCH": gpu, f"{FORCE}_CUDA_DRIVER_VERSION": driver} if gpu else {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"HOME": str(tmp_path), "PATH": path, **forced}
    done = subprocess.run(
        [*command, *where, "demo_ext"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(f.read_text()) for f in found.glob("*.dist-info/variant.json")]
    assert [list(one["variants"]) for one in said] == [[TAKEN[gpu]]] * bool(TAKEN[gpu])


def test_pip_takes_the_wheel_that_is_no_variant(variants: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = variants
    done = pip_download(url, "demo_ext", tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.read_bytes() == (folder / wheel.name).read_bytes()
    assert "-sm" not in wheel.name
