"""Attest: signs PEP 740 publish attestations with this job's GitHub identity; twine uploads them.

The signature ties each file's name and sha256 to the repository and workflow that made it; it is the same for every
index. On a machine without such an identity, such as a person's, nothing is signed.
"""

import os
import shutil

from wheelyard.core import digest, shell
from wheelyard.core.environment import CREDENTIALS, NETWORK, isolated
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem

IDENTITY = "ACTIONS_ID_TOKEN_REQUEST_URL"
SUFFIX = ".publish.attestation"


def jobs(plan: Plan) -> list[Job]:
    inputs = {
        "files": made(*plan.uploaded),
        "tools": digest.tools("pypi-attestations"),
        "code": digest.code(__name__),
    }
    needs = Needs(network=True, secrets=True)
    return [Job("attest", "files", needs, inputs, (f"?attestations/*{SUFFIX}",))]


def run(job: Job, workspace: Workspace) -> str:
    if not os.environ.get(IDENTITY):
        if os.environ.get("GITHUB_ACTIONS"):
            raise Problem("this job has no identity to sign with; it needs `id-token: write`")
        return "no GitHub identity here: nothing signed"
    if not workspace.inputs["tools"]["pypi-attestations"]:
        raise Problem("pypi-attestations is missing; pip install 'wheelyard[attestations]'")
    folder = workspace.out / "attestations"
    folder.mkdir(exist_ok=True)
    files = [shutil.copy(file, workspace.scratch("signed")) for file in workspace.files("files")]
    command = isolated("pypi_attestations", "sign", *files)
    allow = (*NETWORK, *CREDENTIALS)
    shell.run(command, workspace.log, what="signing the attestations", allow=allow)
    for signed in workspace.scratch("signed").glob(f"*{SUFFIX}"):
        shutil.move(signed, folder / signed.name)
    return f"{len(files)} attestations signed"
