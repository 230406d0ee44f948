"""The browser: whichever is there with a chromedriver of its own version, on Debian, on Ubuntu, on GitHub's runners."""

from pathlib import Path

import pytest
from maintenance import browser


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser; programs go into its folder bin."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.delenv(browser.RUNNERS_DRIVER, raising=False)
    monkeypatch.setattr(browser, "SYSTEM", tmp_path / "os-release")
    return tmp_path


def install(file: Path, said: str, status: int = 0) -> str:
    """A program that tells its version."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{said}'\nexit {status}\n")
    file.chmod(0o755)
    return str(file)


def test_debians(machine: Path) -> None:
    program = install(machine / "bin/chromium", "Chromium 140.0.7339.207 built on Debian")
    driver = install(machine / "bin/chromedriver", "ChromeDriver 140.0.7339.207 (abc)")
    assert browser.found() == browser.Browser(program, driver)


def test_a_runners(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chrome, with its driver in a folder that a variable names."""
    monkeypatch.setenv(browser.RUNNERS_DRIVER, str(machine / "driver"))
    program = install(machine / "bin/google-chrome", "Google Chrome 141.0.7390.54")
    driver = install(machine / "driver/chromedriver", "ChromeDriver 141.0.7390.54")
    assert browser.found() == browser.Browser(program, driver)


def test_a_snap(machine: Path) -> None:
    """Ubuntu's package chromium-browser is a script that asks for the snap, until that is there."""
    install(machine / "bin/chromium-browser", "Command requires the chromium snap", status=1)
    assert browser.found() is None
    program = install(machine / "bin/chromium", "Chromium 141.0.7390.54 snap")
    driver = install(machine / "bin/chromium.chromedriver", "ChromeDriver 141.0.7390.54")
    assert browser.found() == browser.Browser(program, driver)


def test_a_driver_beside_its_browser(machine: Path) -> None:
    program = install(machine / "opt/chromium", "Chromium 141.0.1")
    driver = install(machine / "opt/chromedriver", "ChromeDriver 141.0.1")
    (machine / "bin/chromium").symlink_to(program)
    found = browser.found()
    assert found
    assert (Path(found.program).resolve(), found.driver) == (Path(program), driver)


def test_a_driver_of_another_version_is_no_driver(machine: Path) -> None:
    install(machine / "bin/google-chrome", "Google Chrome 141.0.7390.54")
    driver = install(machine / "bin/chromedriver", "ChromeDriver 140.0.7339.207")
    assert browser.found() is None
    program = install(machine / "bin/chromium", "Chromium 140.0.7339.207")
    assert browser.found() == browser.Browser(program, driver)


def test_on_ubuntu_nothing_is_installed(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "os-release").write_text('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n')
    browser.main()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "snap install chromium" in printed.err


def test_on_debian_its_packages_are_named(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "os-release").write_text("ID=debian\n")
    browser.main()
    assert capsys.readouterr().out == "chromium chromium-driver\n"
