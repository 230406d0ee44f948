"""Which tests make real releases in containers: when they run, and which of them share a process.

RELEASE_TESTS is set by the targets of the Makefile that run such tests.
"""

import os
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# Files whose tests share what their session's fixtures have made: they follow each other in one process.
TOGETHER = {"test_hostile_release.py": "test_rehearsal.py"}


def real_release(*, large: bool = False) -> pytest.MarkDecorator:
    """For `pytestmark`; a large one needs tens of gigabytes of images, or more minutes than all others together."""
    wanted = os.environ.get("RELEASE_TESTS", "")
    reason = "minutes of real container builds; `make test-release` runs them"
    if large:
        reason = "tens of gigabytes of images, or many minutes; `make test-release ALL=1` runs them"
    is_off = wanted != "all" if large else not wanted
    return pytest.mark.skipif(is_off, reason=reason)


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]
    """xdist's own way, its `loadgroup`, groups nothing beside pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.split("::")[0]).name
        return TOGETHER.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether | None:
    return FilesTogether(config, log) if config.getvalue("dist") == "loadfile" else None
