"""Attest: signs PEP 740 publish attestations with this job's GitHub identity; twine uploads them.

The signature ties each file's name and sha256 to the repository and workflow that made it. Where
there is no such identity, on a person's machine, nothing is signed.
"""

import os
import sys
from pathlib import Path

from ci import shell
from ci.errors import Problem
from ci.release import Release
from ci.state import Result, Task

IDENTITY = "ACTIONS_ID_TOKEN_REQUEST_URL"


def tasks(release: Release) -> list[Task]:
    files = list(release.artifacts().values())

    def attest(log: Path) -> Result:
        if not os.environ.get(IDENTITY):
            if os.environ.get("GITHUB_ACTIONS"):
                raise Problem("this job has no identity to sign with; it needs `id-token: write`")
            return Result(facts={"verdict": "no GitHub identity here: nothing signed"})
        made = [path_for(file) for file in files]
        for old in made:
            old.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pypi_attestations", "sign"]
        shell.run([*command, *files], log, what="signing the attestations")
        return Result(made, {"verdict": f"{len(made)} attestations signed"})

    hashes = {file.name: release.sha256(name) for name, file in release.artifacts().items()}
    return [Task("attest", release.index, {"files": hashes}, attest)]


def path_for(file: Path) -> Path:
    """Where a file's attestation lies; twine looks for it there."""
    return file.with_name(f"{file.name}.publish.attestation")
