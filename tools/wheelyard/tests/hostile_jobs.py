"""Lists attacks by compromised jobs of the release workflow: what each does to the artifacts of a run, and how it is
detected.

A job can leave nothing but artifacts, and every job can replace every artifact. It cannot change what another job has
told the workflow in its outputs, nor the tree that others check out. These attacks show only in a whole workflow; what
a single record or file may contain is tested in run/test_join.py, core/test_record.py and tools/test_evidence.py.
"""

import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.tools import evidence

HERE = platform.machine()


@contextmanager
def record(artifact: Path) -> Iterator[dict[str, Any]]:
    """Yields the record of an artifact, to be changed."""
    file = artifact / "release.json"
    content = json.loads(file.read_text())
    yield content
    file.write_text(json.dumps(content))


def job(artifact: Path, name: str, **changes: object) -> None:
    """Changes the entry of a job; if there is none, adds one that says that all is well."""
    with record(artifact) as content:
        fine = {"verdict": "passed", "seconds": 1, "inputs": {}, "outputs": {}, "facts": {}}
        content["jobs"][name] = content["jobs"].get(name, fine) | changes


def forget(artifact: Path, name: str) -> None:
    with record(artifact) as content:
        del content["jobs"][name]


def leave(artifact: Path, name: str, path: str, data: bytes, *, keep: bool = False) -> None:
    """Puts a file into the artifact, with a record that agrees, so that the artifact itself shows nothing wrong."""
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
    """Makes every verdict of a step be about other bytes than those that are released."""
    with record(artifact) as content:
        for name, entry in content["jobs"].items():
            if name.startswith(step):
                for key in ("file", "wheel"):
                    if isinstance(given := entry["inputs"].get(key), dict):
                        entry["inputs"][key] = dict.fromkeys(given, "0" * 64)


def first(artifact: Path, step: str) -> str:
    """Returns the name of a job of a step that an artifact hands on."""
    jobs = json.loads((artifact / "release.json").read_text())["jobs"]
    return next(name for name in jobs if name.startswith(step))


def verifying(artifacts: Path) -> Path:
    """Returns the artifact of a job that has run the package's tests."""
    return next(a for a in sorted(artifacts.glob("verify-*")) if "-python" in first(a, "verify/"))


def see(artifacts: Path, **changes: object) -> None:
    """Changes what the GPU's evidence says, and renews its digest."""
    path = "evidence/gpu-x86_64.json"
    seen = json.loads((artifacts / "gpu" / path).read_text()) | changes
    seen[evidence.SEAL] = evidence.seal(seen)
    leave(artifacts / "gpu", "gpu/x86_64", path, json.dumps(seen).encode())


def easier_spec(artifacts: Path) -> None:
    """Makes the smoke test, which decides what must be checked on a GPU, have checked less."""
    path = f"evidence/{HERE}.json"
    seen = json.loads((artifacts / f"smoke-{HERE}" / path).read_text())
    seen |= {"spec": "0" * 64, "checks": {}}
    seen[evidence.SEAL] = evidence.seal(seen)
    leave(artifacts / f"smoke-{HERE}", f"smoke/{HERE}", path, json.dumps(seen).encode())


def as_another_job(artifacts: Path, taken: str, by: str) -> None:
    """Makes a job hand on another job's wheel, altered, under its own name."""
    source = wheel(artifacts / taken)
    leave(artifacts / by, f"repair/{taken.removeprefix('build-')}", source.name, b"evil")


def relabelled(artifacts: Path) -> None:
    """Makes one build job hand on both wheels as its own, so that no evidence is required."""
    theirs = wheel(artifacts / "build-x86_64")
    own = artifacts / "build-aarch64"
    leave(own, "repair/aarch64", theirs.name, theirs.read_bytes(), keep=True)
    job(artifacts / "build-x86_64", "repair/x86_64", outputs={})


def every_verdict(artifacts: Path) -> None:
    """Makes one job of verify.yml hand on the verdicts of all others."""
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


def head(artifact: Path, **changes: str) -> None:
    with record(artifact) as content:
        content |= changes


def sdist(artifacts: Path) -> Path:
    (found,) = (artifacts / "sdist").glob("*.tar.gz")
    return found


Attack = Callable[[Path], None]  # on the folder of all artifacts


def hands_on_a_wheel(artifact: str) -> tuple[Attack, str]:
    """Returns an attack that hands on another job's wheel, altered, with a record that agrees."""
    taken = "build-aarch64" if artifact == "build-x86_64" else "build-x86_64"
    name = taken.replace("build-", "repair/")
    message = f"{artifact} hands on `{name}`, which is not its own"
    return lambda artifacts: as_another_job(artifacts, taken, artifact), message


# Each attack by the compromised job and what it does, with the expected message: it names the artifact, and so the job,
# or the job of ours whose verdict is missing.
ATTACKS: dict[str, tuple[Attack, str]] = {
    # --- plan, which makes the sdist
    "plan: another sdist": (
        lambda a: alter(a / "sdist", "build/sdist", sdist(a)),
        "sdist hands on .* but wheels has told",
    ),
    "plan: of another version": (
        lambda a: head(a / "sdist", version="1.0.9"),
        "sdist was made for version 1.0.9",
    ),
    # --- build
    "build: another wheel": (
        lambda a: alter(a / "build-x86_64", "repair/x86_64", wheel(a / "build-x86_64")),
        "build-x86_64 hands on .* but wheels has told",
    ),
    "build: another wheel, record left": (
        lambda a: only_altered(a / "build-aarch64"),
        "from build-aarch64 is not what",
    ),
    "build: both wheels under the architecture that needs no evidence": (
        relabelled,
        "repair/aarch64 may not leave a file named .*x86_64.whl; it would be repair/x86_64's",
    ),
    # --- gate
    "gate: a verdict left out": (
        lambda a: forget(a / "gate", "gate/x86_64"),
        "`gate/x86_64` has not passed yet",
    ),
    "gate: a verdict of other bytes": (
        lambda a: on_other_bytes(a / "gate", "gate/"),
        "is not the file that passed `gate/",
    ),
    "gate: what failed": (
        lambda a: job(a / "gate", "gate/x86_64", verdict="failed"),
        "`gate/x86_64` failed",
    ),
    # --- verify
    "verify: a verdict left out": (
        lambda a: forget(verifying(a), first(verifying(a), "verify/")),
        "`verify/.*` has not passed yet",
    ),
    "verify: one job gives every verdict": (
        every_verdict,
        "verify-.* hands on `verify/.*, which is not its own",
    ),
    # --- smoke
    "smoke: easier checks": (
        easier_spec,
        "no GPU evidence .*gpu-x86_64.json was made with other checks",
    ),
    # --- gpu
    "gpu: evidence of another wheel": (
        lambda a: see(a, sha256="0" * 64),
        "no GPU evidence for demo_ext",
    ),
    "gpu: evidence without a GPU": (lambda a: see(a, gpu=None), "was made without a GPU"),
    "gpu: nothing": (
        (lambda a: (a / "gpu/evidence/gpu-x86_64.json").unlink()),
        "gpu-x86_64.json of gpu/x86_64 is missing",
    ),
    # --- sign
    "sign: a file that is no attestation": (
        lambda a: leave(a / "sign", "attest/files", "attestations/evil.whl", b"evil"),
        "attest/files names the file attestations/evil.whl, which is not its own",
    ),
}
ATTACKS |= {
    f"{artifact}: a wheel": hands_on_a_wheel(artifact)
    for artifact in (
        "sdist",
        "build-x86_64",
        "build-aarch64",
        "gate",
        f"smoke-{HERE}",
        "gpu",
        "sign",
    )
}
# Attacks on the second index by the jobs between the two.
LATER_ATTACKS: dict[str, tuple[Attack, str]] = {
    "testpypi: says that PyPI has it all": (
        lambda a: job(a / "testpypi", "publish/pypi"),
        "testpypi hands on `publish/pypi`, which is not its own",
    ),
    "testpypi: evidence": (
        lambda a: leave(a / "testpypi", "gpu/x86_64", "evidence/gpu-x86_64.json", b"{}"),
        "testpypi hands on `gpu/x86_64`, which is not its own",
    ),
    "install: attestations": (
        lambda a: job(a / "install", "attest/files"),
        "install hands on `attest/files`, which is not its own",
    ),
}
LATER_ATTACKS |= {f"{job}: a wheel": hands_on_a_wheel(job) for job in ("testpypi", "install")}
