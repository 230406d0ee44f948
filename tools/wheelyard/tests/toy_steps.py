"""A step whose jobs do what their input `do` says, in Python: for tests of where jobs run."""

import sys
from types import ModuleType

from wheelyard.core.job import Job
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace


def module(_: str) -> ModuleType:
    return sys.modules[__name__]


def run(job: Job, workspace: Workspace) -> Facts:
    facts: Facts = {}
    exec(workspace.inputs.get("do", ""), {"job": job, "workspace": workspace, "facts": facts})
    return facts
