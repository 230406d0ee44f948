"""Environments in which something was replaced, removed or put on the loader's path, as `wheelscope env` sees them.

They are too large to be made at each replay: the case keeps what Python and wheelscope said in the
container.
"""

import json
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, replace

from validation import containers
from validation.replay.cases import FOLDER, Environment, load_environments, write_rows
from validation.replay.reproduce import PLACE, last_word, make

MIXTURES = FOLDER / "mixtures.toml"


@dataclass(frozen=True)
class Mixture:
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


def load_mixtures() -> list[Mixture]:
    found = []
    for kind, mixtures in tomllib.loads(MIXTURES.read_text()).items():
        for facts in mixtures:
            lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
            found.append(Mixture(kind=kind, **{**facts, **lists}))
    return found


def mix(mixture: Mixture, environment: Environment) -> Mixture:
    """Makes a mixture, and asks Python and wheelscope."""
    assert environment.suite
    suite, site, path = environment.suite, PLACE / "mixture", PLACE / "path"
    for folder in (site, path):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cp", "-al", make(environment), site], check=True)
    if mixture.uninstall:
        containers.uninstall(site, mixture.uninstall)
    if mixture.install:
        containers.install(suite, site, ["--no-deps", *mixture.install])
    path.mkdir()
    if mixture.path:
        containers.install(suite, path, ["--no-deps", *mixture.path])
    folders = sorted({f"/path/{file.parent.relative_to(path)}" for file in path.rglob("*.so*")})

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        variables = {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
        return containers.run(suite, site, words, mounts={path: "/path"}, variables=variables)

    imported = run(["python", "-c", f"import {mixture.distribution}"])
    document = json.loads(run(["wheelscope", "env", containers.PREFIX, "--json"]).stdout)
    (found,) = [o for o in document["distributions"] if o["name"] == mixture.distribution]
    verdict = {"yes": "works", "depends": "depends", "no": "fails"}[found["loads"]]
    if verdict == "works" and found["unmet"]:
        verdict = "depends"  # the requirements are not fulfilled, but it may work
    return replace(mixture, word=last_word(imported), verdict=verdict)


def reproduce_mixtures(kinds: list[str]) -> None:
    environments = load_environments()
    mixtures = load_mixtures()
    for kind in sorted({one.kind for one in mixtures}):
        if kinds and kind not in kinds:
            continue
        asked = []
        for mixture in mixtures:
            if mixture.kind == kind:
                asked.append(mix(mixture, environments[mixture.environment]))
                said = f"{asked[-1].word or 'works'}; wheelscope: {asked[-1].verdict}"
                print(f"{mixture.what} in {mixture.environment}: {said}", flush=True)
        rows = [vars(mixture) | {"kind": None} for mixture in asked]
        write_rows(MIXTURES, kind, rows)
