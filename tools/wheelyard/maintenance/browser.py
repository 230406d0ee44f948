"""Finds and opens the browser for tests: any Chromium that has a chromedriver of its own version.

    python -m maintenance.browser    without a browser: prints the Debian packages that bring one, or advice

Ubuntu has Chromium as a snap only, and GitHub's runners have Google's Chrome.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("google-chrome", "chromium-browser", "chromium")
DRIVERS = ("chromedriver", "chromium.chromedriver")  # the second is the snap's
RUNNERS_DRIVER = "CHROMEWEBDRIVER"  # the variable in which GitHub's runners name its folder
PACKAGES = ("chromium", "chromium-driver")
SYSTEM = Path("/etc/os-release")
WIDTHS = {"desktop": 1280, "phone": 390}
ADVICE = "`snap install chromium`, or Google's Chrome and the chromedriver of its version"


@dataclass(frozen=True)
class Browser:
    program: str
    driver: str


def found() -> Browser | None:
    """Returns the first browser with a chromedriver of its version, beside it, on PATH, or where a runner says."""
    named = [os.environ[name] for name in (RUNNERS_DRIVER, "PATH") if os.environ.get(name)]
    for program in filter(None, map(shutil.which, BROWSERS)):
        folders = os.pathsep.join([*named, str(Path(program).resolve().parent)])
        for driver in filter(None, (shutil.which(name, path=folders) for name in DRIVERS)):
            if version(program) == version(driver) != "":
                return Browser(program, driver)
    return None


def version(program: str) -> str:
    """Returns the first part of a program's version: 141 for `Google Chrome 141.0.7390.54`. Empty if it tells none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    number = re.search(r"\b(\d+)(\.\d+)+", said.stdout)
    return number[1] if number and said.returncode == 0 else ""


FOUND = found()
# Why tests that need a browser are skipped; empty if they are not.
MISSING = "" if FOUND else "needs Chromium or Chrome, with the chromedriver of its version"


@contextmanager
def opened(size: str, scheme: str) -> Iterator["Chrome"]:
    """Yields a headless browser with a window of that size, whose user prefers the colour scheme `light` or `dark`."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    assert FOUND, MISSING
    options = ChromeOptions()
    options.binary_location = FOUND.program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    driver = Chrome(options=options, service=ChromeService(FOUND.driver))
    try:
        window = {"width": WIDTHS[size], "height": 900, "deviceScaleFactor": 1}
        window["mobile"] = size == "phone"
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield driver
    finally:
        driver.quit()


def is_ubuntu() -> bool:
    return SYSTEM.exists() and "ID=ubuntu" in SYSTEM.read_text().splitlines()


def main() -> None:
    if FOUND:
        return
    if is_ubuntu():
        advice = f"no browser here, so what needs one is left out; to have it: {ADVICE}"
        print(advice, file=sys.stderr)
    else:
        print(*PACKAGES)


if __name__ == "__main__":
    main()
