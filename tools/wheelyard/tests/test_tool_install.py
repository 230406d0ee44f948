"""wheelscope as users get it: by pip from a release's index on three Pythons, and unpacked where nothing else is."""

import functools
import http.server
import os
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import recorded
from real_releases import real_release
from tools.release import publish
from tools.release import wheels as tool_wheels
from wheelyard.core import engine as engines
from wheelyard.core.engine import Engine
from wheelyard.tools import host_settings, images, suite

pytestmark = real_release(large=True)
PYTHONS = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release folder with nothing but the tools."""
    folder = tmp_path_factory.mktemp("release")
    wheels = tool_wheels.make(folder / "made")
    publish.add_to_release(folder, {name: [wheel] for name, wheel in wheels.items()})
    return folder


@pytest.fixture(scope="module")
def wheel(release: Path) -> Path:
    return next((release / "tools").glob("wheelscope-*.whl"))


@pytest.fixture(scope="module")
def address(release: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=release)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()


@pytest.fixture(scope="module")
def engine(release: Path) -> Iterator[Engine]:
    found = engines.ready(release, print)
    yield found
    found.leave(print)


def image(python: str, engine: Engine, folder: Path) -> str:
    """Debian's suite that has this Python, with that Python and nothing else."""
    tag = f"wheelyard-python:{python}"
    base = suite.ensure(PYTHONS[python], engine, recorded.workspace(folder, {}))
    with tempfile.TemporaryDirectory() as name:
        settings = host_settings.files(Path(name))
        words = [f"--secret=id=apt,src={settings['apt']}", f"--build-arg=PYTHON={python}"]
        words += [f"--build-arg=PYTHON_IMAGE={base}", "--target=python", f"--tag={tag}"]
        build = [engine.builder, "build", "--quiet", *words, images.FOLDER.resolve()]
        subprocess.run(build, env={**os.environ, "DOCKER_BUILDKIT": "1"}, check=True)
    return tag


@pytest.mark.parametrize("python", PYTHONS)
def test_pip_installs_it_by_name(
    python: str, engine: Engine, address: str, wheel: Path, tmp_path: Path
) -> None:
    script = f"""
        python{python} -m venv /venv
        /venv/bin/pip install --quiet --no-cache-dir --index-url {address} wheelscope
        /venv/bin/wheelscope --version
        /venv/bin/python -m wheelscope --version
        /venv/bin/wheelscope show /wheels/{wheel.name}
    """
    words = ["run", "--rm", "--network=host", f"--volume={wheel.parent}:/wheels:ro"]
    container = [image(python, engine, tmp_path), "sh", "-ec", script]
    done = subprocess.run([engine.command, *words, *container], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second, *shown = done.stdout.splitlines()
    assert first == second == f"wheelscope {wheel.name.split('-')[1]}"
    assert wheel.name in shown[0]


def test_it_runs_where_there_is_nothing_else(engine: Engine, wheel: Path, tmp_path: Path) -> None:
    """No Python, no shell, no C library: an image that holds the program and a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".data/data/bin/wheelscope")]
        program = tmp_path / "wheelscope"
        program.write_bytes(archive.read(name))
        assert archive.getinfo(name).external_attr >> 16 & 0o111, "installers would not let it run"
    program.chmod(0o755)
    (tmp_path / wheel.name).write_bytes(wheel.read_bytes())
    tag = "wheelscope-alone"
    archive_of_image = subprocess.run(
        ["tar", "-C", tmp_path, "-cf", "-", "wheelscope", wheel.name],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    subprocess.run([engine.command, "import", "-", tag], input=archive_of_image, check=True)
    run = [engine.command, "run", "--rm", "--network=none", tag, "/wheelscope"]
    for words, answer in ((["--version"], "wheelscope "), (["show", f"/{wheel.name}"], wheel.name)):
        done = subprocess.run([*run, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert answer in done.stdout
    subprocess.run([engine.command, "image", "rm", tag], capture_output=True, check=True)


def test_the_release_lists_both_tools(release: Path) -> None:
    page = (release / "simple/index.html").read_text()
    assert 'href="wheelscope/"' in page
    assert 'href="wheelyard/"' in page
