"""Tests the pages of `wheelscope atlas` in a real browser, from a folder without a server: desktop and phone."""

import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from maintenance import browser
from selenium.webdriver import Chrome

PROGRAM = Path(__file__).parents[2] / "wheelscope/build/bin/wheelscope"
TAG = "cp311-cp311-manylinux_2_28_x86_64"
HOSTILE = '<img src=x onerror="document.title=1">'

pytestmark = [
    pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING),
    pytest.mark.skipif(not PROGRAM.exists(), reason="needs `make wheelscope`"),
]


def put_wheel(root: Path, name: str, requires: str = "") -> None:
    """Puts a wheel on the index in `root`; its one library is compiled from nothing."""
    project, version, *_ = name.split("-")
    folder, info = root / "simple" / project, f"{project}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    words = [
        "gcc",
        "-shared",
        "-Wl,-soname,libtorch_cpu.so",
        "-o",
        str(root / "one.so"),
        "-x",
        "c",
        "/dev/null",
    ]
    subprocess.run(words, check=True)
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(
            root / "one.so", f"{project}/lib/libtorch_cpu.so" if project == "torch" else "one.so"
        )
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{requires}",
        )
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {TAG}\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    links = "".join(f'<a href="{file.name}">{file.name}</a>' for file in folder.glob("*.whl"))
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("index")
    for name in ("torch-2.9.1", "torch-2.10.0"):
        put_wheel(root, f"{name}-{TAG}.whl")
    put_wheel(
        root,
        f"alpha-1.0-{TAG}.whl",
        f"Requires-Dist: torch>=2.10; platform_version != '{HOSTILE}'\n",
    )
    put_wheel(root, f"beta-1.0-{TAG}.whl", "Requires-Dist: torch==2.9.1\n")
    (root / "list.txt").write_text("alpha\nbeta\nabsent\n")
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_address[1]}/simple/"
        words = [PROGRAM, "atlas", root / "list.txt", "-o", root / "the site", "--index", index]
        done = subprocess.run(words, capture_output=True, text=True)
        server.shutdown()
    assert done.returncode == 3, done.stderr  # one project is absent
    return root / "the site"


@pytest.fixture(scope="module", params=["desktop dark", "phone light"])
def driver(request: pytest.FixtureRequest) -> Iterator[Chrome]:
    with browser.opened(*request.param.split()) as found:
        yield found


@pytest.mark.parametrize("page", ["index", "project/alpha", "project/beta", "project/absent"])
def test_axe_finds_nothing(page: str, driver: Chrome, site: Path):
    driver.get((site / f"{page}.html").as_uri())
    found = Axe().run(driver)["violations"]
    assert [(fault["id"], [node["html"][:300] for node in fault["nodes"]]) for fault in found] == []
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert not driver.find_elements("css selector", "img")
    assert driver.title != "1"


def test_search_leaves_what_has_every_word(driver: Chrome, site: Path):
    driver.get((site / "index.html").as_uri())
    field = driver.find_element("id", "search")

    def shown() -> list[str]:
        rows = driver.find_elements("css selector", "tbody tr")
        return [row.find_element("tag name", "a").text for row in rows if row.is_displayed()]

    assert shown() == ["absent", "alpha", "beta"]
    field.send_keys("ALPHA 1.0")
    assert shown() == ["alpha"]
    assert driver.find_element("id", "count").text == "1 project"
    driver.refresh()
    assert shown() == ["alpha"]
    driver.find_element("link text", "alpha").click()
    assert "alpha" in driver.title
    assert HOSTILE in driver.find_element("tag name", "main").text
