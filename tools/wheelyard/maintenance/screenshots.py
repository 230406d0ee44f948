"""Takes pictures of a release's report, and of it with a failure, or of the documentation site.

python -m scripts.screenshots WHEELHOUSE FOLDER           `make screenshots`
python -m scripts.screenshots --site build/site FOLDER    `make docs-pictures`
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from scripts.browser import found

WIDTHS = {"desktop": 1280, "phone": 390}
PHONE = 600  # narrower is a phone
PICTURES = [
    ("desktop", WIDTHS["desktop"], "light"),
    ("phone", WIDTHS["phone"], "light"),
    ("phone-dark", WIDTHS["phone"], "dark"),
]
BEFORE = ("image", "build", "repair", "gate", "verify")  # the steps up to the one that failed
ERROR = "the package's tests failed (exit code 1)\n  | 1 failed: made up for this picture"
BROWSER = found()


@contextmanager
def browser(width: int = 1280, scheme: str = "light") -> Iterator[Chrome]:
    """A headless Chromium whose window is `width` wide and whose user prefers `scheme`."""
    if BROWSER is None:
        sys.exit(
            "error: no browser with a chromedriver of its version; `python -m scripts.browser` says more"
        )
    options = ChromeOptions()
    options.binary_location = BROWSER.program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    driver = Chrome(options=options, service=ChromeService(BROWSER.driver))
    try:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < PHONE}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield driver
    finally:
        driver.quit()


def failed_release(wheelhouse: Path, folder: Path) -> Path:
    """The report of the same release as if one check had failed, and all after it never ran."""
    kept = ["release.json", "*.whl", "*.tar.gz", "evidence/*.json"]
    for file in (file for pattern in kept for file in wheelhouse.glob(pattern)):
        target = folder / file.relative_to(wheelhouse)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(file, target)
    record = json.loads((folder / "release.json").read_text())
    jobs = {name: job for name, job in record["jobs"].items() if name.split("/")[0] in BEFORE}
    victim = next(job for name, job in reversed(jobs.items()) if "-python" in name)
    victim |= {"verdict": "failed", "outputs": {}, "facts": {"error": ERROR}}
    (folder / "release.json").write_text(json.dumps({**record, "jobs": jobs}))
    command = [sys.executable, "-m", "wheelyard", "report"]
    subprocess.run(command, env={**os.environ, "WHEELHOUSE": str(folder)}, check=True)
    return folder / "report.html"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a web server on loopback has the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def take(address: str, target: Path, width: int, scheme: str, tallest: int = 4000) -> None:
    """The whole page, or its first pixels, as a small PNG."""
    with browser(width, scheme) as driver:
        driver.get(address)
        height = driver.execute_script("return document.documentElement.scrollHeight")
        size = {"width": width, "height": min(height, tallest), "deviceScaleFactor": 1}
        size["mobile"] = width < PHONE
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.save_screenshot(str(target))
    Image.open(target).quantize(128).save(target, optimize=True)
    print(target)


def of_site(site: Path, folder: Path) -> None:
    with served(site) as address:
        take(address, folder / "desktop.png", WIDTHS["desktop"], "light", 1200)
        take(f"{address}/ops/", folder / "desktop-dark.png", WIDTHS["desktop"], "dark", 1200)
        take(address, folder / "phone.png", WIDTHS["phone"], "light", 1200)


def main() -> None:
    *site, source, target = sys.argv[1:]
    wheelhouse, folder = Path(source).resolve(), Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    if site:
        of_site(wheelhouse, folder)
        return
    page = (wheelhouse / "report.html").as_uri()
    for name, width, scheme in PICTURES:
        take(page, folder / f"{name}.png", width, scheme)
    with tempfile.TemporaryDirectory() as other:
        page = failed_release(wheelhouse, Path(other)).as_uri()
        for name, width, scheme in PICTURES[:2]:
            take(page, folder / f"failed-{name}.png", width, scheme)


if __name__ == "__main__":
    main()
