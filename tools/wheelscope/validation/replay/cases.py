"""The cases: recorded/*.toml, and the public reports that `wheelscope explain` is tested with."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging import tags

from validation.containers import SUITES, Suite
from validation.program import ROOT

FOLDER = Path(__file__).with_name("recorded")
CASES = FOLDER / "cases.toml"
MIXTURES = FOLDER / "mixtures.toml"
REPORTS = ROOT / "tests/reports.toml"
ARCHITECTURE = "x86_64"
OLDEST_GLIBC = 5  # of manylinux1


@dataclass(frozen=True)
class Environment:
    """The environment of a case: a suite's Python with the packages installed first, or the machine
    of a report."""

    name: str
    python: str
    glibc: str
    suite: Suite | None  # None: known only from a report
    requirements: tuple[str, ...]
    torch: dict[str, str]  # version, and cuda if it is built for one; empty: no torch
    driver: str | None
    gpu: dict[str, str] | None  # name, capability


@dataclass(frozen=True)
class Case:
    """A wheel that is unpacked into an environment, and then imported."""

    kind: str  # the list that it belongs to
    wheel: str  # NAME==VERSION, or a file's name
    environment: str
    module: str
    report: str | None  # a public report of the same failure; None if it works
    python: str | None  # of the wheel's tag, if it differs
    word: str | None  # Python's message, if the import failed here
    message: str | None  # the report's, if not reproducible here; neither: it works

    @property
    def project(self) -> str:
        """NAME==VERSION"""
        if not self.wheel.endswith(".whl"):
            return self.wheel
        name, version, *_ = self.wheel.split("-")
        return f"{name}=={version}"

    @property
    def happened(self) -> str:
        return "fails" if self.word else "reported" if self.message else "works"


@dataclass(frozen=True)
class Mixture:
    """An environment in which something was replaced, removed or put on the loader's path, as `wheelscope env` sees it.

    It is too large to be made at each replay: the case keeps what Python and wheelscope said in the
    container.
    """

    kind: str  # the list that it belongs to
    environment: str
    distribution: str  # the one to judge, and to import by its name
    report: str
    install: tuple[str, ...] = ()  # unpacked over the others, without requirements
    uninstall: tuple[str, ...] = ()
    path: tuple[str, ...] = ()  # packages whose libraries are on LD_LIBRARY_PATH
    word: str | None = None  # Python's message; None: it works
    verdict: str | None = None  # of `wheelscope env`; None: not asked yet

    @property
    def happened(self) -> str:
        return "fails" if self.word else "works"

    @property
    def what(self) -> str:
        changes = (*self.install, *(f"without {name}" for name in self.uninstall))
        return ", ".join((*changes, *(f"{name} on LD_LIBRARY_PATH" for name in self.path)))


def load_environments() -> dict[str, Environment]:
    document = tomllib.loads((FOLDER / "environments.toml").read_text())
    return {name: _environment(name, facts) for name, facts in document.items()}


def _environment(name: str, facts: dict[str, Any]) -> Environment:
    suite = SUITES[facts["suite"]] if "suite" in facts else None
    return Environment(
        name=name,
        python=suite.python if suite else facts["python"],
        glibc=suite.glibc if suite else facts["glibc"],
        suite=suite,
        requirements=tuple(facts.get("requirements", ())),
        torch=facts.get("torch", {}),
        driver=facts.get("driver"),
        gpu=facts.get("gpu"),
    )


def load_cases() -> list[Case]:
    optional = dict.fromkeys(("report", "python", "word", "message"))
    return [
        Case(kind=kind, **{**optional, **one})
        for kind, cases in tomllib.loads(CASES.read_text()).items()
        for one in cases
    ]


def load_mixtures() -> list[Mixture]:
    found = []
    for kind, mixtures in tomllib.loads(MIXTURES.read_text()).items():
        for facts in mixtures:
            lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
            found.append(Mixture(kind=kind, **{**facts, **lists}))
    return found


def write_rows(path: Path, key: str, rows: list[dict[str, Any]]) -> None:
    """Replaces one list of a file with new rows, one line each, without keys that have no value."""
    head, _, rest = path.read_text().partition(f"\n{key} = [\n")
    lines = (
        ", ".join(f"{name} = {json.dumps(value)}" for name, value in row.items() if value)
        for row in rows
    )
    written = "".join(f"  {{ {line} }},\n" for line in lines)
    path.write_text(f"{head}\n{key} = [\n{written}]\n{rest.partition(chr(10) + ']' + chr(10))[2]}")


def load_reports() -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = tomllib.loads(REPORTS.read_text())["report"]
    return reports


def platforms(glibc: str) -> list[str]:
    """Returns the platform tags of a machine, newest first."""
    old_names = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    found = [f"linux_{ARCHITECTURE}"]
    for minor in range(int(glibc.partition(".")[2]), OLDEST_GLIBC - 1, -1):
        found.append(f"manylinux_2_{minor}_{ARCHITECTURE}")
        if minor in old_names:
            found.append(f"{old_names[minor]}_{ARCHITECTURE}")
    return found


def machine(environment: Environment) -> dict[str, Any]:
    """Returns an environment as `wheelscope machine --json` would save it."""
    version = tuple(int(part) for part in environment.python.split(".")[:2])
    abi = "cp" + "".join(str(part) for part in version)
    known = platforms(environment.glibc)
    supported = [
        *tags.cpython_tags(version, [abi], known),
        *tags.compatible_tags(version, abi, known),
    ]
    prefix = "/opt/env"
    site = f"{prefix}/lib/python{version[0]}.{version[1]}/site-packages"
    torch = environment.torch
    return {
        "schema_version": 2,
        "machine": {
            "architecture": ARCHITECTURE,
            "libc": "glibc",
            "libc_version": environment.glibc,
            "driver": environment.driver,
            "gpus": [environment.gpu] if environment.gpu else [],
            "python": {
                "executable": f"{prefix}/bin/python",
                "version": environment.python,
                "abi": abi,
                "prefix": prefix,
                "base_prefix": "/usr",
                "architecture": ARCHITECTURE,
                "site_packages": [site],
                "tags": [str(tag) for tag in supported],
            },
            "torch": {
                "path": f"{site}/torch",
                "version": torch["version"],
                "cuda": torch.get("cuda"),
                "rocm": None,
                "cxx11_abi": True,
            }
            if torch
            else None,
            "cuda_libraries": [],
            "notes": [],
        },
    }
