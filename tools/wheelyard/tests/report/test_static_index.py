"""The static index: pip takes the right file from it, hash checked, local versions included."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.report import static_index


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder with two wheels and their index, and its address."""
    wheels = [make_wheel(tmp_path, version=v) for v in ("1.0+cu129torch2.10", "1.0+cu130torch2.15")]
    static_index.write(tmp_path / "simple", "demo_ext", wheels)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()


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
