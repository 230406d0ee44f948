"""Publish: uploads what was gated and smoke-tested, byte for byte, and nothing twice."""

import sys
from pathlib import Path

from ci import attest, build, evidence, index, shell
from ci.errors import Problem
from ci.index import Index
from ci.project import sha256
from ci.release import Release
from ci.state import Result, Task
from ci.steps import STEPS
from ci.tag import check_agreement

MEANINGS = {
    "401 ": "The index refuses the user name or password.",
    "403 ": "The index refuses the password, or this account may not upload the project.",
    "409 ": "The index has a file of that name with other bytes.",
    "ConnectionError": "The index does not answer.",
    "Connection aborted": "The connection was cut off.",
    "Connection refused": "The index does not answer.",
}
# The steps that come before publishing.
BEFORE = list(STEPS)[: list(STEPS).index("publish")]


def tasks(release: Release) -> list[Task]:
    files = release.artifacts()
    check_judged(release, files)
    if release.index != "embedded":
        check_may_leave(release)

    def publish(log: Path) -> Result:
        with index.ready(release) as target:
            sent = upload(target, release.project.name, list(files.values()), log)
        verdict = f"{len(sent)} files uploaded, {len(files) - len(sent)} already there"
        return Result(facts={"uploaded": sent, "verdict": verdict})

    hashes = {file.name: release.sha256(name) for name, file in files.items()}
    return [Task("publish", release.index, {"files": hashes}, publish)]


def check_judged(release: Release, files: dict[str, Path]) -> None:
    """Every file is what passed the gate and the smoke test."""
    for name, file in files.items():
        judged = [("gate", "file")] + ([("smoke", "wheel")] if file.suffix == ".whl" else [])
        for step, key in judged:
            record = release.state.tasks.get(f"{step}/{name}")
            if not record or record["verdict"] != "passed" or record["inputs"][key] != sha256(file):
                raise Problem(
                    f"{file.name} is not what passed `{step}`; run `python -m ci release`, "
                    "which does again what is needed"
                )


def check_may_leave(release: Release) -> None:
    """What goes to a public index comes from this clean, tagged tree and was run on a GPU."""
    check_agreement()
    check_nothing_failed(release)
    check_verified(release)
    if sha256(build.make_sdist(release)) != release.sha256("sdist"):
        raise Problem(
            "the wheels were built from another state of the sources than this commit; "
            "run `python -m ci release`, which builds again what changed"
        )
    for name, wheel in release.wheels().items():
        arch = name.split("-")[0]
        if arch in release.matrix.publish.gpu_evidence and not evidence.on_gpu(
            release.sha256(name)
        ):
            raise Problem(
                f"no GPU evidence for {wheel.name}; on a machine with a GPU run\n"
                f"  python ci/smoke.py {wheel.name} --evidence docs/evidence/{name}.json\n"
                "and commit that file"
            )


def check_nothing_failed(release: Release) -> None:
    """No check that ran before has failed."""
    for name, record in release.state.tasks.items():
        step = name.split("/")[0]
        if step in BEFORE and record["verdict"] == "failed":
            raise Problem(f"`{name}` failed; mend it, then run `python -m ci {step}` again")


def check_verified(release: Release) -> None:
    """Something has verified each wheel: it was run, or linked against a torch."""
    for name in (wheel.name for wheel in release.builds):
        if not any(task.startswith(f"verify/{name}-") for task in release.state.tasks):
            raise Problem(
                f"nothing has verified the wheel {name}; run `python -m ci verify`, or have "
                "the jobs that did hand their records on"
            )


def upload(target: Index, name: str, files: list[Path], log: Path) -> list[str]:
    """Uploads the files that the index lacks; returns their names."""
    there = target.files(name)
    wrong = [f.name for f in files if f.name in there and there[f.name] != sha256(f)]
    if wrong:
        raise Problem(
            f"the index {target.name} has {', '.join(wrong)} with other bytes; "
            "a published file cannot change: raise the version"
        )
    missing = [file for file in files if file.name not in there]
    if missing:
        _twine(target, missing, log)
    there = target.files(name)
    lost = [file.name for file in files if there.get(file.name) != sha256(file)]
    if lost:
        raise Problem(f"the index {target.name} took {', '.join(lost)}, but does not serve it")
    return [file.name for file in missing]


def _twine(target: Index, files: list[Path], log: Path) -> None:
    command = [sys.executable, "-m", "twine", "upload", "--non-interactive"]
    command.append("--disable-progress-bar")
    signed = [attest.path_for(file) for file in files if attest.path_for(file).exists()]
    if signed:
        command.append("--attestations")
    credentials = {}
    if target.password is not None:
        credentials = {"TWINE_USERNAME": index.USER, "TWINE_PASSWORD": target.password}
    try:
        shell.run(
            [*command, "--repository-url", target.upload, *files, *signed], log, env=credentials,
            what=f"uploading to {target.name}",
        )  # fmt: skip
    except Problem as problem:
        text = log.read_text(errors="replace")
        meanings = [meaning for sign, meaning in MEANINGS.items() if sign in text]
        again = "Run the same command when it is mended: what is there is not sent again."
        raise Problem("\n".join([str(problem), *meanings[:1], again])) from None
