"""Fetches the files that a build would download, before its container starts, which has no network.

The matrix names each by URL and sha256. A file with the right digest is kept, and not fetched again.
"""

import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wheelyard.core import shell
from wheelyard.core.digest import sha256
from wheelyard.core.disk import flush
from wheelyard.core.patience import ANSWER_SECONDS, Broken, patiently
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem, counted

MOUNT = "/downloads"
PIECE = 1 << 20


def mounts(workspace: Workspace) -> list[str]:
    """Mounts the files of the job's input `downloads` in one folder of the container."""
    wanted = workspace.inputs["downloads"]
    if not wanted:
        return []
    folder, kept = workspace.scratch("downloads"), workspace.kept("downloads")
    for name, (url, digest) in wanted.items():
        file, stored = folder / name, kept / digest
        if stored.is_file():
            shutil.copyfile(stored, file)
        if not stored.is_file() or sha256(file) != digest:
            fetch(url, digest, file)
            copy = Path(shutil.copyfile(file, workspace.scratch("kept") / digest))
            flush(copy)
            shutil.move(copy, stored)
        file.chmod(0o644)
    return [f"--volume={folder}:{MOUNT}:ro"]


def fetch(url: str, digest: str, file: Path) -> None:
    """Writes the file at a URL to `file`; raises if its bytes do not have the digest."""
    patiently(lambda: _get(url, file))
    if (got := sha256(file)) != digest:
        raise Problem(
            f"{url} gives {counted(file.stat().st_size, 'byte')} with the sha256 {got}; build.downloads of the matrix "
            f"asks for {digest}. Find out why they differ before you change the matrix"
        )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows all redirects, as the digest decides, and remembers where they led."""

    host = ""

    def redirect_request(self, *details: Any) -> urllib.request.Request | None:
        self.host = urlsplit(details[-1]).netloc
        return super().redirect_request(*details)


def _get(url: str, file: Path) -> None:
    redirects = _Redirects()
    opener = urllib.request.build_opener(redirects)
    try:
        with opener.open(url, timeout=ANSWER_SECONDS) as answer, file.open("wb") as output:
            while piece := answer.read(PIECE):
                if shell.stopping.is_set():
                    raise Problem(f"{url} was not fetched: the run is being stopped")
                output.write(piece)
            if answer.length:  # bytes still to come
                raise http.client.IncompleteRead(b"", answer.length)
    except urllib.error.HTTPError as error:
        kind = Broken if error.code >= 500 else Problem
        raise kind(
            f"{_shown(url, redirects)} answers {error.code} {error.reason}; build.downloads of the matrix names it"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", error)
        raise Broken(
            f"{_shown(url, redirects)} cannot be fetched ({why}); run the same command again when it can"
        ) from None


def _shown(url: str, redirects: _Redirects) -> str:
    """Returns the URL and, if it was redirected, the host that the machine must reach too."""
    is_elsewhere = redirects.host not in ("", urlsplit(url).netloc)
    return f"{url}, which leads to {redirects.host}," if is_elsewhere else url
