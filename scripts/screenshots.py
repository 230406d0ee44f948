"""Takes pictures of a page at desktop and phone width, light and dark: `make screenshots`."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

WIDTHS = {"desktop": 1280, "phone": 390}
PROGRAM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@contextmanager
def browser(width: int = 1280, scheme: str = "light") -> Iterator[Chrome]:
    """A headless Chromium whose window is `width` wide and whose user prefers `scheme`."""
    options = ChromeOptions()
    options.binary_location = PROGRAM or "chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    driver = Chrome(options=options, service=ChromeService(DRIVER or "chromedriver"))
    try:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield driver
    finally:
        driver.quit()


def main() -> None:
    page, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    prefix = sys.argv[3] + "-" if len(sys.argv) > 3 else ""
    folder.mkdir(parents=True, exist_ok=True)
    for name, scheme in (("desktop", "light"), ("phone", "light"), ("phone", "dark")):
        with browser(WIDTHS[name], scheme) as driver:
            driver.get(page.as_uri())
            height = driver.execute_script("return document.documentElement.scrollHeight")
            size = {"width": WIDTHS[name], "height": min(height, 4000), "deviceScaleFactor": 1}
            size["mobile"] = name == "phone"
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            file = folder / f"{prefix}{name}{'-dark' if scheme == 'dark' else ''}.png"
            driver.save_screenshot(str(file))
            Image.open(file).quantize(128).save(file, optimize=True)
            print(file)


if __name__ == "__main__":
    main()
