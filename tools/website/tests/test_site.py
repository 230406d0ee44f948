"""Tests the site that `make docs` has made: no dead link, no request to another server, no fault that axe-core
finds."""

import re
import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_core_python.selenium import Axe
from maintenance import browser
from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[3]
SITE = ROOT / "build/site"
PAGES = sorted(str(file.relative_to(SITE)) for file in SITE.rglob("*.html"))
REPOSITORY = re.search(r"repository: (\S+)", (ROOT / "mkdocs.yml").read_text())

pytestmark = pytest.mark.skipif(not PAGES, reason="needs `make docs`")
in_browser = pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)


class Html(HTMLParser):
    """A page's anchors, its links, and the files that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given.get("id", ""), given.get("name", "")}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (tag == "link" and given.get("rel") != "canonical"):
            self.loaded.append(given.get("src") or given.get("href", ""))


@cache
def html(file: Path) -> Html:
    return Html(file.read_text())


def dead(page: Path, link: str) -> bool:
    """Whether a link leads to no file of the site or of the repository, or to no anchor there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        assert REPOSITORY
        inside = re.match(rf"{REPOSITORY[1]}/(?:blob|tree)/main/(.*)", link)
        return bool(inside) and not (ROOT / inside[1].partition("#")[0]).exists()
    start = SITE if parts.path.startswith("/") else page.parent
    target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return True
    return bool(parts.fragment) and unquote(parts.fragment) not in html(target).anchors


@pytest.mark.parametrize("page", PAGES)
def test_no_link_is_dead(page: str):
    file = SITE / page
    assert [link for link in html(file).links + html(file).loaded if dead(file, link)] == []


def test_a_dead_link_is_found():
    page = SITE / "index.html"
    repository = REPOSITORY[1] if REPOSITORY else ""
    for link in ("nowhere/", "ops/#nowhere", "#nowhere", f"{repository}/blob/main/nowhere.py"):
        assert dead(page, link), link
    for link in ("ops/", "ops/#speed", "https://example.org/", f"{repository}/tree/main/csrc"):
        assert not dead(page, link), link


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_elsewhere(page: str):
    assert [link for link in html(SITE / page).loaded if urlsplit(link).netloc] == []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yields the address of a web server on loopback that has the site."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module", params=["desktop dark", "phone light"])
def driver(request: pytest.FixtureRequest) -> Iterator[Chrome]:
    with browser.opened(*request.param.split()) as found:
        yield found


@in_browser
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing(page: str, driver: Chrome, address: str):
    driver.get(f"{address}/{page}")
    found = Axe().run(driver)["violations"]
    assert [(fault["id"], [node["html"][:300] for node in fault["nodes"]]) for fault in found] == []


@in_browser
def test_search_finds_a_page(driver: Chrome, address: str):
    driver.get(f"{address}/?q=lineinfo")
    for _ in range(100):
        results = driver.find_elements("css selector", ".md-search-result__item a")
        if results:
            break
        driver.implicitly_wait(0.1)
    assert any("inside/" in (result.get_attribute("href") or "") for result in results)
