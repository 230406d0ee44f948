"""Opens pages in a real browser, and takes the picture of a release's report: `make picture`.

python -m maintenance.screenshots RELEASE_FOLDER FILE.png
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maintenance.browser import found
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

WIDTHS = {"desktop": 1280, "phone": 390}
PHONE = 600  # pixels; a narrower page is a phone's
BROWSER = found()


@contextmanager
def browser(width: int = 1280, scheme: str = "light") -> Iterator[Chrome]:
    """Yields a headless Chromium whose window is `width` wide and whose user prefers `scheme`."""
    if BROWSER is None:
        sys.exit(
            "error: no browser with a chromedriver of its version; `make browser` names the packages"
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


def take(address: str, target: Path, width: int = WIDTHS["desktop"], tallest: int = 2200) -> None:
    """Saves the whole page, or as much as is not taller than `tallest`, as a PNG."""
    with browser(width) as driver:
        driver.get(address)
        height = driver.execute_script("return document.documentElement.scrollHeight")
        size = {"width": width, "height": min(height, tallest), "deviceScaleFactor": 1}
        size["mobile"] = width < PHONE
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.save_screenshot(str(target))
    print(target)


if __name__ == "__main__":
    report = Path(sys.argv[1], "report.html").resolve()
    if not report.is_file():
        sys.exit(f"error: {report} does not exist; `wheelyard report` writes it")
    take(report.as_uri(), Path(sys.argv[2]))
