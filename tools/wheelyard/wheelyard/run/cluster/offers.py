"""Describes what a machine can do as Dask resources: workers offer and jobs request them by the same names.

A version is a resource too: a job is planned with exact versions of wheelyard and of the tools that it calls, and goes
only to a worker that has them.
"""

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement

from wheelyard import __version__
from wheelyard.core import digest
from wheelyard.core import engine as containers
from wheelyard.core.job import Job
from wheelyard.tools import evidence, wheelscope

Resources = dict[str, float]
ENGINE, GPU, NETWORK, MEMORY = "engine", "gpu", "network", "memory-gib"
BETWEEN = " "  # separates a tool and its version; no other resource's name contains it


@dataclass(frozen=True)
class Member:
    """A worker, as the scheduler knows it."""

    address: str
    name: str
    slots: int
    resources: Mapping[str, float]

    def room(self, wanted: Mapping[str, float]) -> int:
        """Returns how many jobs with these needs the worker can run at a time."""
        enough = (self.resources.get(name, 0) // amount for name, amount in wanted.items())
        return int(min(self.slots, *enough)) if wanted else self.slots

    def can(self, wanted: Mapping[str, float]) -> bool:
        return self.room(wanted) > 0


def offered(slots: int, *, network: bool) -> Resources:
    """Returns what this machine offers. Each job takes one of everything that it needs, so there is one for each
    slot."""
    from distributed.system import MEMORY_LIMIT  # the machine's, or less where a cgroup limits it

    found: Resources = dict.fromkeys([platform.machine(), *_versions()], slots)
    if containers.is_available():
        found[ENGINE] = slots
    if network:
        found[NETWORK] = slots
    for capability in evidence.capabilities():  # each runs one job at a time
        for name in (GPU, f"{GPU}-{capability}"):
            found[name] = found.get(name, 0) + 1
    found[MEMORY] = MEMORY_LIMIT >> 30
    return found


def wanted(job: Job) -> Resources:
    """Returns the resources that a job needs."""
    needs = job.needs
    names = [needs.arch] if needs.arch else []
    names += [ENGINE] * needs.engine + [GPU] * needs.gpu + [NETWORK] * needs.network
    tools = job.inputs.get("tools", {})
    names += [_own_version(), *(f"{tool}{BETWEEN}{tools[tool]}" for tool in tools)]
    memory = {MEMORY: needs.memory_gib} if needs.memory_gib else {}
    return {**dict.fromkeys(names, 1), **memory}


def of_machine(wants: Resources) -> Resources:
    """Returns the resources wanted of the machine itself, without versions."""
    return {name: amount for name, amount in wants.items() if BETWEEN not in name}


def lacking(job: Job, members: Iterable[Member], address: str) -> str | None:
    """Returns why no worker can take a job, and what to type; None if one can."""
    wants, members = wanted(job), list(members)
    if any(member.can(wants) for member in members):
        return None
    able = [member for member in members if member.can(of_machine(wants))]
    if not able:
        there = "; ".join(f"{m.name} offers {shown(m.resources)}" for m in members)
        what = said(wants) or "a worker"
        return (
            f"needs {what}, which no worker offers ({there or 'there is none'}); on such a machine run:\n"
            f"  wheelyard worker {address}"
        )
    missing = [name for name in wants if not able[0].can({name: 1})]
    return (
        f"needs {', '.join(missing)}, which {able[0].name} does not have; its release must be the one that runs here: "
        f"`pip install 'wheelyard[cluster]=={__version__}'` on both machines, and start that worker again"
    )


def said(wants: Resources) -> str:
    """Returns what is wanted of a machine, for people."""
    amounts = of_machine(wants).items()
    return " and ".join(f"{n} GiB of memory" if name == MEMORY else name for name, n in amounts)


def shown(resources: Mapping[str, float]) -> str:
    """Returns what a machine offers, for people, without versions."""
    plain = [name for name in resources if BETWEEN not in name and name != MEMORY]
    memory = [f"{resources[MEMORY]:.0f} GiB"] if MEMORY in resources else []
    return ", ".join([*plain, *memory]) or "nothing"


def _own_version() -> str:
    return f"wheelyard{BETWEEN}{__version__}-{digest.package()[:12]}"


def _versions() -> list[str]:
    """Returns this wheelyard and everything that it depends on, with versions."""
    requires = importlib.metadata.requires("wheelyard") or []
    tools = digest.tools(*(Requirement(text).name for text in requires))
    tools["wheelscope"] = wheelscope.digest()
    # Jobs that call a missing tool go elsewhere.
    return [_own_version(), *(f"{name}{BETWEEN}{tools[name]}" for name in tools if tools[name])]
