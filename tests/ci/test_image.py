"""Images: the base is chosen and said, tags follow the contents, settings stay apart."""

import dataclasses
from pathlib import Path

import pytest

from ci import image
from ci.errors import Problem
from ci.release import Release


def foreign(release: Release) -> str:
    return next(arch for arch in release.matrix.arch if arch != release.machine)


def test_pypa_images_are_pinned_by_digest(release: Release) -> None:
    for arch in release.matrix.arch:
        assert f"manylinux_2_28_{arch}@sha256:" in image._pypa_reference(release.matrix, arch)


def test_cross_builds_choose_debian_and_say_so(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    assert image.choose_base(release, foreign(release)) == "debian"
    assert f"base image for {foreign(release)}: debian (cross build" in capsys.readouterr().out


def test_without_a_registry_native_builds_choose_debian(
    release: Release, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert image.choose_base(release, release.machine) == "debian"
    assert "does not answer" in capsys.readouterr().out


def test_a_base_can_be_forced(release: Release) -> None:
    release.base = "pypa"
    assert image.choose_base(release, release.machine) == "pypa"
    with pytest.raises(Problem, match="use BASE=debian"):
        image.choose_base(release, foreign(release))


def test_a_tag_follows_what_the_image_is_made_from(release: Release) -> None:
    release.base = "debian"
    made = image.for_build(release, release.builds[0])
    assert made.tag(release) == image.for_build(release, release.builds[1]).tag(release)
    other = dataclasses.replace(made, arguments=(*made.arguments, ("TORCH", "2.15.0")))
    assert other.tag(release) != made.tag(release)


def test_the_hosts_pip_settings_reach_a_build_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("a certificate\n")
    monkeypatch.setenv("PIP_CERT", str(bundle))
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1/simple")
    files = image._host_settings(tmp_path)
    assert "cert = /run/secrets/ca" in files["pip"].read_text()
    assert "index-url = http://user:secret@127.0.0.1/simple" in files["pip"].read_text()
    assert files["ca"].read_text() == "a certificate\n"
