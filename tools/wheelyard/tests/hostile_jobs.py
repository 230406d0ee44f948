"""Compromised jobs of the release workflow: what each does to the artifacts of a run, and how it is found out."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

from tampering import (
    HERE,
    alter,
    as_another_job,
    copy_of,
    drop_float64,
    easier_spec,
    every_verdict,
    first,
    for_both,
    forget,
    head,
    job,
    leave,
    link,
    on_other_bytes,
    only_altered,
    relabelled,
    sdist,
    see,
    verifying,
    wheel,
)

Attack = Callable[[Path], None]  # on the folder of all artifacts


def hands_on_a_wheel(artifact: str) -> tuple[Attack, str]:
    """Another job's, altered; its record agrees."""
    taken = "build-aarch64" if artifact == "build-x86_64" else "build-x86_64"
    name = taken.replace("build-", "repair/")
    message = f"{artifact} hands on `{name}`, which it is not for"
    return lambda artifacts: as_another_job(artifacts, taken, artifact), message


# What evidence from the GPU says, and what is said of it.
EVIDENCE: dict[str, dict[str, object]] = {
    "no GPU evidence for demo_ext": {"sha256": "0" * 64},
    "has no check on a GPU of twice": {"checks": {}},
    "was made by another version": {"program": "0" * 64},
    "was made with other checks": {"spec": "0" * 64},
    "was made with another smoke command": {"command": "true"},
    "was edited after it was made": {"seal": False, "timing": {"cuda": {}}},
    "says that checks failed": {"passed": False},
    "was made without a GPU": {"gpu": None},
    "was made by an older smoke test": {"schema_version": 2},
}

# The job that is compromised, what it does, and what is said of it: the message names the artifact, and so the job, or
# the job of ours whose verdict is wanting.
ATTACKS: dict[str, tuple[Attack, str]] = {
    # --- plan, which makes the sdist
    "plan: another sdist": (
        lambda a: alter(a / "sdist", "build/sdist", sdist(a)),
        "sdist hands on .* but wheels has told",
    ),
    "plan: another sdist, record left": (
        lambda a: sdist(a).write_bytes(b"evil"),
        "from sdist is not what its record says",
    ),
    "plan: the artifact of an older run": (
        lambda a: head(a / "sdist", commit="0" * 40),
        "sdist was made for commit 000",
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
    "build: one wheel more": (
        lambda a: leave(
            a / "build-x86_64", "repair/x86_64", "evil-1.1.0-py3-none-any.whl", b"evil", keep=True
        ),
        "build-x86_64 hands on evil.*, of which wheels knows nothing",
    ),
    "build: both wheels under the architecture that needs no evidence": (
        relabelled,
        "repair/aarch64 is not for a file named .*x86_64.whl; it would be repair/x86_64's",
    ),
    "build: a wheel for both architectures": (
        for_both,
        "which it is not for|repair/aarch64 is not for a file named|of which wheels knows nothing",
    ),
    "build: no wheel at all": (
        lambda a: job(a / "build-x86_64", "repair/x86_64", outputs={}),
        r"repair/x86_64 made no .*_x86_64.whl",
    ),
    "build: the artifact is left out": (
        lambda a: shutil.rmtree(a / "build-x86_64"),
        "wheels has told of .*x86_64.whl, which no artifact hands on",
    ),
    "build: the wheel that was never made": (
        lambda a: wheel(a / "build-x86_64").unlink(),
        "whl of repair/x86_64 is missing",
    ),
    "build: a path out of the release folder": (
        lambda a: job(
            a / "build-x86_64",
            "repair/x86_64",
            outputs={"../ci/policy.toml": "0" * 64},
        ),
        "build-x86_64 hands on policy.toml, of which wheels knows nothing",
    ),
    "build: an absolute path": (
        lambda a: job(a / "build-x86_64", "build/x86_64", outputs={"/usr/bin/git": "0" * 64}),
        "build/x86_64 names the file /usr/bin/git, which it is not for",
    ),
    "build: the pipeline's own files": (
        lambda a: leave(
            a / "build-x86_64", "build/x86_64", "built/x86_64/../../../.venv/bin/twine", b"evil"
        ),
        "build/x86_64 names the file built/x86_64/.*twine, which it is not for",
    ),
    "build: a link for a wheel": (
        lambda a: link(a / "build-x86_64", wheel(a / "build-x86_64").name, "/etc/passwd"),
        "build-x86_64 holds the link",
    ),
    "build: the artifact of an older run": (
        lambda a: head(a / "build-aarch64", commit="0" * 40),
        "build-aarch64 was made for",
    ),
    "build: a record that is no record": (
        lambda a: job(a / "build-x86_64", "repair/x86_64", outputs=["x.whl"]),
        "the record of repair/x86_64 from build-x86_64 is damaged",
    ),
    # --- gate
    "gate: a verdict left out": (
        lambda a: forget(a / "gate", "gate/x86_64"),
        "`gate/x86_64` has not passed yet",
    ),
    "gate: the sdist's verdict left out": (
        lambda a: forget(a / "gate", "gate/sdist"),
        "`gate/sdist` has not passed yet",
    ),
    "gate: a verdict of other bytes": (
        lambda a: on_other_bytes(a / "gate", "gate/"),
        "is not what passed `gate/",
    ),
    "gate: what failed": (
        lambda a: job(a / "gate", "gate/x86_64", verdict="failed"),
        "`gate/x86_64` failed",
    ),
    "gate: an empty record": (
        lambda a: (a / "gate/release.json").write_text(""),
        "gate/release.json is damaged",
    ),
    "gate: a record without end": (
        lambda a: (a / "gate/release.json").write_text("[" * 200_000),
        "gate/release.json is damaged",
    ),
    # --- verify
    "verify: the gate's verdict": (
        lambda a: job(verifying(a), "gate/x86_64"),
        "verify.* hands on `gate/x86_64`, which it is not for",
    ),
    "verify: a verdict left out": (
        lambda a: forget(verifying(a), first(verifying(a), "verify/")),
        "`verify/.*` has not passed yet",
    ),
    "verify: a verdict of other bytes": (
        lambda a: on_other_bytes(verifying(a), "verify/"),
        "is not what passed `verify/",
    ),
    "verify: the same verdict twice": (
        lambda a: copy_of(a, verifying(a), "verify-9-9"),
        "verify-9-9 hands on `verify/.*, which it is not for",
    ),
    "verify: one job gives every verdict": (
        every_verdict,
        "verify-.* hands on `verify/.*, which it is not for",
    ),
    "verify: a job that nobody planned": (
        lambda a: job(verifying(a), "verify/evil"),
        "hands on `verify/evil`, which is no job",
    ),
    # --- smoke
    "smoke: easier checks": (
        easier_spec,
        "no GPU evidence .*gpu-x86_64.json was made with other checks",
    ),
    "smoke: a torn file": (
        lambda a: leave(a / f"smoke-{HERE}", f"smoke/{HERE}", f"evidence/{HERE}.json", b""),
        f"the smoke test's {HERE}.json is empty or cut off",
    ),
    # --- gpu
    "gpu: a wheel among the evidence": (
        lambda a: leave(a / "gpu", "gpu/x86_64", "evil-1.1.0-py3-none-any.whl", b"evil", keep=True),
        "gpu/x86_64 names the file evil.*, which it is not for",
    ),
    "gpu: the pipeline's own files": (
        lambda a: job(a / "gpu", "gpu/x86_64", outputs={"../ci/matrix.toml": "0" * 64}),
        "gpu/x86_64 names the file ../ci/matrix.toml, which it is not for",
    ),
    "gpu: a link for a folder": (
        lambda a: link(a / "gpu", "evidence", "/etc"),
        "gpu holds the link evidence",
    ),
    "gpu: evidence with a dtype left out": (
        drop_float64,
        "gpu-x86_64.json has no check on a GPU of twice float64",
    ),
    "gpu: a torn file": (
        lambda a: leave(a / "gpu", "gpu/x86_64", "evidence/gpu-x86_64.json", b"{"),
        "gpu-x86_64.json is empty or cut off",
    ),
    "gpu: nothing": (
        (lambda a: (a / "gpu/evidence/gpu-x86_64.json").unlink()),
        "gpu-x86_64.json of gpu/x86_64 is missing",
    ),
    # --- sign
    "sign: a file that is no attestation": (
        lambda a: leave(a / "sign", "attest/files", "attestations/evil.whl", b"evil"),
        "attest/files names the file attestations/evil.whl, which it is not for",
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
ATTACKS |= {
    f"gpu: evidence, {said}": (functools.partial(see, **changes), said)
    for said, changes in EVIDENCE.items()
}

# What the jobs between the two indexes may do to the second one.
LATER_ATTACKS: dict[str, tuple[Attack, str]] = {
    "testpypi: says that PyPI has it all": (
        lambda a: job(a / "testpypi", "publish/pypi"),
        "testpypi hands on `publish/pypi`, which it is not for",
    ),
    "testpypi: evidence": (
        lambda a: leave(a / "testpypi", "gpu/x86_64", "evidence/gpu-x86_64.json", b"{}"),
        "testpypi hands on `gpu/x86_64`, which it is not for",
    ),
    "install: attestations": (
        lambda a: job(a / "install", "attest/files"),
        "install hands on `attest/files`, which it is not for",
    ),
}
LATER_ATTACKS |= {f"{job}: a wheel": hands_on_a_wheel(job) for job in ("testpypi", "install")}
