"""What a compromised job of the release workflow can do to the artifacts of a run; hostile_jobs.py says who does what.

An artifact is all that a job can leave, and every job can replace every artifact. What another job has told the
workflow in its outputs, and the tree that others check out, it cannot change.
"""

import json
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.tools import evidence

HERE = platform.machine()


@contextmanager
def record(artifact: Path) -> Iterator[dict[str, Any]]:
    """The record of an artifact, to be changed."""
    file = artifact / "release.json"
    content = json.loads(file.read_text())
    yield content
    file.write_text(json.dumps(content))


def job(artifact: Path, name: str, **changes: object) -> None:
    """Changes the entry of a job; where there is none, makes one that says that all is well."""
    with record(artifact) as content:
        fine = {"verdict": "passed", "seconds": 1, "inputs": {}, "outputs": {}, "facts": {}}
        content["jobs"][name] = content["jobs"].get(name, fine) | changes


def forget(artifact: Path, name: str) -> None:
    with record(artifact) as content:
        del content["jobs"][name]


def leave(artifact: Path, name: str, path: str, data: bytes, *, keep: bool = False) -> None:
    """Puts a file into the artifact, with a record that agrees: nothing shows inside the artifact."""
    target = artifact / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    with record(artifact) as content:
        kept = content["jobs"].get(name, {}).get("outputs", {}) if keep else {}
    job(artifact, name, outputs={**kept, path: sha256(target)})


def wheel(artifact: Path) -> Path:
    (found,) = artifact.glob("*.whl")
    return found


def on_other_bytes(artifact: Path, step: str) -> None:
    """Every verdict of a step is about other bytes than those that are released."""
    with record(artifact) as content:
        for name, entry in content["jobs"].items():
            if name.startswith(step):
                for key in ("file", "wheel"):
                    if isinstance(given := entry["inputs"].get(key), dict):
                        entry["inputs"][key] = dict.fromkeys(given, "0" * 64)


def first(artifact: Path, step: str) -> str:
    """The name of a job of a step that an artifact hands on."""
    jobs = json.loads((artifact / "release.json").read_text())["jobs"]
    return next(name for name in jobs if name.startswith(step))


def verifying(artifacts: Path) -> Path:
    """The artifact of a job that has run the package's tests."""
    return next(a for a in sorted(artifacts.glob("verify-*")) if "-python" in first(a, "verify/"))


def see(artifacts: Path, *, seal: bool = True, **changes: object) -> None:
    """Evidence from the GPU with other contents; the digest of all it says is made anew, or left."""
    path = "evidence/gpu-x86_64.json"
    seen = json.loads((artifacts / "gpu" / path).read_text()) | changes
    if seal:
        seen[evidence.SEAL] = evidence.seal(seen)
    leave(artifacts / "gpu", "gpu/x86_64", path, json.dumps(seen).encode())


def drop_float64(artifacts: Path) -> None:
    seen = json.loads((artifacts / "gpu/evidence/gpu-x86_64.json").read_text())
    see(artifacts, checks={k: v for k, v in seen["checks"].items() if "float64 cuda" not in k})


def easier_spec(artifacts: Path) -> None:
    """The smoke test that says what must be checked on a GPU has checked less."""
    path = f"evidence/{HERE}.json"
    seen = json.loads((artifacts / f"smoke-{HERE}" / path).read_text())
    seen |= {"spec": "0" * 64, "checks": {}}
    seen[evidence.SEAL] = evidence.seal(seen)
    leave(artifacts / f"smoke-{HERE}", f"smoke/{HERE}", path, json.dumps(seen).encode())


def as_another_job(artifacts: Path, taken: str, by: str) -> None:
    """A job hands on another job's wheel, altered, under its own name."""
    source = wheel(artifacts / taken)
    leave(artifacts / by, f"repair/{taken.removeprefix('build-')}", source.name, b"evil")


def relabelled(artifacts: Path) -> None:
    """One build job hands on both wheels as its own, so that no evidence is asked for."""
    theirs = wheel(artifacts / "build-x86_64")
    own = artifacts / "build-aarch64"
    leave(own, "repair/aarch64", theirs.name, theirs.read_bytes(), keep=True)
    job(artifacts / "build-x86_64", "repair/x86_64", outputs={})


def for_both(artifacts: Path) -> None:
    """The wheel of one architecture has a name that pip installs on the other too."""
    own = wheel(artifacts / "build-aarch64")
    name = own.name.replace("_aarch64.whl", "_aarch64.manylinux_2_17_x86_64.whl")
    leave(artifacts / "build-aarch64", "repair/aarch64", name, own.read_bytes())


def every_verdict(artifacts: Path) -> None:
    """One job of verify.yml hands on the verdicts of all others."""
    one, *others = sorted(artifacts.glob("verify-*"))
    for other in others:
        with record(other) as content:
            entries, content["jobs"] = content["jobs"], {}
        for name, entry in entries.items():
            job(one, name, **entry)


def alter(artifact: Path, name: str, file: Path) -> None:
    leave(artifact, name, file.name, file.read_bytes() + b"\0")


def only_altered(artifact: Path) -> None:
    wheel(artifact).write_bytes(wheel(artifact).read_bytes() + b"\0")


def link(artifact: Path, path: str, target: str) -> None:
    place = artifact / path
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def head(artifact: Path, **changes: str) -> None:
    with record(artifact) as content:
        content |= changes


def sdist(artifacts: Path) -> Path:
    (found,) = (artifacts / "sdist").glob("*.tar.gz")
    return found


def copy_of(artifacts: Path, artifact: Path, name: str) -> None:
    """A verdict is handed on once more, under another artifact's name."""
    shutil.copytree(artifact, artifacts / name)
