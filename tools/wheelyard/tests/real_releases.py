"""Which tests make real releases in containers: when they run.

RELEASE_TESTS is set by the targets of the Makefile that run such tests.
"""

import os

import pytest


def real_release(*, large: bool = False) -> pytest.MarkDecorator:
    """For `pytestmark`; a large one needs tens of gigabytes of images, or more minutes than all others together."""
    wanted = os.environ.get("RELEASE_TESTS", "")
    reason = "minutes of real container builds; `make test-release` runs them"
    if large:
        reason = "tens of gigabytes of images, or many minutes; `make test-release ALL=1` runs them"
    is_off = wanted != "all" if large else not wanted
    return pytest.mark.skipif(is_off, reason=reason)
