"""Publish: uploads exactly the bytes that passed the gate, verify and smoke, each file once."""

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wheelyard import tag
from wheelyard.core import digest, shell
from wheelyard.core.environment import CREDENTIALS, NETWORK, isolated
from wheelyard.core.job import Job, Needs, Source, made, passed
from wheelyard.core.patience import Broken, patiently
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import index_of_file
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted
from wheelyard.steps import attest, gate, gpu, smoke, verify
from wheelyard.tools import evidence, index, static_index
from wheelyard.tools.index import Index

# What twine prints for a broken connection, and for a file that the index already has.
BROKEN = ("ConnectionError", "Connection aborted", "ReadTimeout", "502 ", "503 ", "504 ")
ALREADY_THERE = ("409 ", "already exists")
FOLDER = "folder"  # the index that `append` publishes to
SERVED_WITHIN_SECONDS = 600  # a public index sits behind caches
ASK_AGAIN_SECONDS = 3


def check(plan: Plan, record: Record) -> None:
    """Checks that files for a public index come from a clean, tagged tree, were built from that very tree, and are
    named for the job that made them."""
    if plan.options.index in ("testpypi", "pypi") and plan.strategy != "universal":
        raise Problem(
            f"{plan.options.index} refuses local versions such as +cu130torch2.15, which tell the wheels of strategy "
            f"`{plan.strategy}` apart; publish with `--index own` to an index that the matrix names, or "
            "with `wheelyard append FOLDER` to one of plain files, for any web server"
        )
    if plan.options.index == "embedded":
        return
    if plan.options.cache:
        raise Problem(
            f"--cache is for trial builds; what goes to {plan.options.index} is built without one: leave it out"
        )
    if plan.options.index in ("testpypi", "pypi"):
        tag.check_agreement(plan.project)
    sdist = record.jobs.get("build/sdist")
    if sdist and sdist["inputs"].get("sources") != plan.project.files():
        raise Problem(
            "the wheels were built from another state of the sources than this commit; "
            "run `wheelyard release`, which builds again what changed"
        )
    for name in plan.released:
        if name in record.jobs:
            plan.check_owners(name, record.jobs[name]["outputs"])


def jobs(plan: Plan) -> list[Job]:
    target = plan.options.index
    judged = [job.name for step in (gate, verify, smoke) for job in step.jobs(plan)]
    files = plan.released if target == FOLDER else plan.uploaded
    staying = len(plan.released) - len(files)
    inputs = {
        "files": made(*files),
        "sdist": made("build/sdist"),
        "judged": passed(*judged),
        "index": target,
        "own": {"upload": plan.matrix.publish.upload, "simple": plan.matrix.publish.simple},
        "project": plan.project.name,
        **({"variants": staying} if staying else {}),
        **(
            {"site": str(plan.options.site), "address": plan.options.address}
            if target == FOLDER
            else {}
        ),
        **(_leaving(plan) if target != "embedded" else {}),
        "tools": digest.tools("twine"),
        "code": digest.code(__name__),
    }
    return [Job("publish", target, Needs(network=target != "embedded", secrets=True), inputs)]


def _leaving(plan: Plan) -> dict[str, Any]:
    """Returns what a public index requires besides the files: evidence from a GPU, and attestations if they can be
    signed."""
    committed = plan.project.files(evidence.FOLDER)
    signs = plan.options.place == "github" and plan.options.index != FOLDER
    gpus = [job.name for job in gpu.jobs(plan)] if plan.has_step("gpu") else []
    wanted = plan.matrix.publish.gpu_evidence
    return {
        **smoke.spec(plan),
        "gpu_tests": plan.gpu_tests,
        "smoke_tests": made(*(job.name for job in smoke.jobs(plan))),
        "gpu_evidence": [wheel.name for wheel in plan.wheels if wheel.arch in wanted],
        "needing_evidence": made(*(f"repair/{w.name}" for w in plan.wheels if w.arch in wanted)),
        "torches": list(plan.matrix.torch),
        "evidence": Source(committed),
        "evidence_of_jobs": made(*gpus),
        "attestations": made(*(job.name for job in attest.jobs(plan))) if signs else made(),
    }


def run(job: Job, workspace: Workspace) -> str:
    inputs, files = workspace.inputs, workspace.recorded("files")
    if inputs["index"] != "embedded":
        check_evidence(workspace)
    if inputs["index"] == FOLDER:
        site, address = inputs["site"], inputs["address"]
        new = static_index.append(Path(site), inputs["project"], list(files), address)
        return f"{counted(len(new), 'file')} added to the index in {site}"
    if inputs["index"] != "embedded":
        _add_attestations(workspace, files)
    (sdist,) = inputs["sdist"].values()
    place = workspace.lasting / "index"
    with index.ready(inputs["index"], place, sdist, inputs["own"]) as target:
        sent = []
        for part in sorted({index_of_file(file.name) for file in files}):
            group = {file: d for file, d in files.items() if index_of_file(file.name) == part}
            place_of = target.part(part) if part and target.part else target
            sent += upload(place_of, inputs["project"], group, workspace.log)
    verdict = f"{len(sent)} files uploaded, {len(files) - len(sent)} already there"
    if staying := inputs.get("variants"):  # PEP 825: versions of a draft are not for production
        verdict += f"; {counted(staying, 'variant')} left out, because no index takes them yet: "
        verdict += "any web server can serve build/release/ with its simple/"
    return verdict


def check_evidence(workspace: Workspace) -> None:
    """Checks that each wheel that needs it was run on a GPU, these very bytes, by the smoke test of this release."""
    known = [*workspace.sources("evidence").rglob("*.json"), *workspace.files("evidence_of_jobs")]
    spec = evidence.spec_of(workspace.files("smoke_tests"))
    inputs, wheels = workspace.inputs, workspace.recorded("needing_evidence")
    if len(wheels) != len(inputs["gpu_evidence"]):
        raise Problem(
            f"the plan asks for GPU evidence of {', '.join(inputs['gpu_evidence'])}, but the record has "
            f"{len(wheels)} wheels for them; run `wheelyard release`"
        )
    if wheels and spec is None:
        raise Problem(
            "no smoke test here has said what must be checked on a GPU; the matrix needs a cell to run: verify.run"
        )
    for wheel, digest_of_wheel in wheels.items():
        wanted = evidence.wanted(inputs, inputs["torches"], wheel.name, digest_of_wheel, spec)
        found, refused = evidence.judged(wanted, known)
        if not found:
            none = [f"  {line}" for line in refused]
            raise Problem(
                "\n".join([f"no GPU evidence for {wheel.name}", *none])
                + "; on a machine with a GPU run `wheelyard gpu`, or\n"
                f"  python {smoke.PROGRAM.name} {wheel.name} --evidence {evidence.FOLDER}/{wheel.stem}.json\n"
                "and commit that file"
            )


def _add_attestations(workspace: Workspace, files: Iterable[Path]) -> None:
    """Puts each file's attestation beside it, where twine looks for it."""
    signed = {file.name: file for file in workspace.files("attestations")}
    unsigned = [file.name for file in files if file.name + attest.SUFFIX not in signed]
    if unsigned and os.environ.get("GITHUB_ACTIONS"):
        raise Problem(f"no attestation for {', '.join(unsigned)}; run the job that signs again")
    for file in files:
        if attestation := signed.get(file.name + attest.SUFFIX):
            shutil.copy(attestation, file.parent)


def upload(target: Index, name: str, files: Mapping[Path, str], log: Path) -> list[str]:
    """Uploads the files that the index lacks, and waits until it serves them with the recorded digests; returns their
    names."""
    missing = lacking(target, name, files)
    if target.is_public:
        check_provenance(missing, log)
    for file in missing:
        patiently(partial(_send, target, file, log))
    began = time.monotonic()
    while lost := lacking(target, name, files):
        if time.monotonic() - began > SERVED_WITHIN_SECONDS:
            raise Problem(
                f"the index {target.name} took {', '.join(file.name for file in lost)}, but does not serve it "
                f"after {SERVED_WITHIN_SECONDS // 60} minutes; run the same command again when it does"
            )
        time.sleep(ASK_AGAIN_SECONDS)
    return [file.name for file in missing]


def check_provenance(files: Iterable[Path], log: Path) -> None:
    """Checks in a workflow that GitHub has build provenance of each file, signed by this very workflow for this tag and
    commit."""
    workflow = os.environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
    if not workflow:
        return
    wanted = {
        "repo": os.environ["GITHUB_REPOSITORY"],
        "signer-workflow": workflow,
        "source-ref": os.environ["GITHUB_REF"],
        "source-digest": os.environ["GITHUB_SHA"],
    }
    words = [word for name, value in wanted.items() for word in (f"--{name}", value)]
    own = [name for name in os.environ if name.startswith("GH_")]
    for file in files:
        shell.run(
            ["gh", "attestation", "verify", file, *words, "--deny-self-hosted-runners"], log,
            what=f"verifying the provenance of {file.name}", allow=(*NETWORK, *CREDENTIALS, *own),
        )  # fmt: skip


def lacking(target: Index, name: str, files: Mapping[Path, str]) -> list[Path]:
    """Returns the files that an index does not serve; raises if it serves one with other bytes."""
    there = target.files(name)
    wrong = [f.name for f, recorded in files.items() if there.get(f.name, recorded) != recorded]
    if wrong:
        raise Problem(
            f"the index {target.name} has {', '.join(wrong)} with other bytes; "
            "a published file cannot change: raise the version"
        )
    return [file for file in files if file.name not in there]


def _send(target: Index, file: Path, log: Path) -> None:
    """Uploads one file with twine. If the index already has it, an earlier attempt lost its connection, or the file is
    not served yet; whether it is the same is checked once it is served."""
    command = isolated("twine", "upload", "--non-interactive", "--disable-progress-bar")
    command += ["--repository-url", target.upload, file]
    attestation = file.with_name(file.name + attest.SUFFIX)
    if attestation.exists():
        command += [attestation, "--attestations"]
    credentials = {}
    if target.password is not None:
        credentials = {"TWINE_USERNAME": index.USER, "TWINE_PASSWORD": target.password}
    before = log.stat().st_size if log.exists() else 0
    try:
        what = f"uploading {file.name} to {target.name}"
        shell.run(command, log, env=credentials, allow=(*NETWORK, *CREDENTIALS), what=what)
    except Problem as problem:
        said = log.read_bytes()[before:].decode(errors="replace")
        if any(sign in said for sign in ALREADY_THERE):
            return
        kind = Broken if any(sign in said for sign in BROKEN) else Problem
        again = (
            "Run the same command when it is fixed: files that the index has are not sent again."
        )
        raise kind(f"{problem}\n{again}") from None
