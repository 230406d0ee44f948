"""Describes the package indexes for releases: the embedded one, one named in the matrix, TestPyPI and PyPI."""

import dataclasses
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.core.disk import flush
from wheelyard.core.patience import ANSWER_SECONDS, Broken, patiently
from wheelyard.problem import Problem
from wheelyard.tools import upload_server

USER = "root"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Index:
    """An index: the address to upload to, and the one that pip reads."""

    name: str
    upload: str
    simple: str
    password: str | None = None  # None: twine finds the credentials by itself
    # Returns the index of one torch and CUDA. Each is separate, as pip takes the highest version that an index has.
    part: Callable[[str], "Index"] | None = None
    is_public: bool = False

    def files(self, project: str) -> dict[str, str]:
        """Returns the sha256 of each file that the index has of a project."""
        accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
        address = f"{self.simple}{canonicalize_name(project)}/"
        request = urllib.request.Request(address, headers=accept)
        listing = patiently(lambda: self._ask(request))
        return {file["filename"]: file["hashes"].get("sha256", "") for file in listing["files"]}

    def address(self, name: str, digest: str) -> str:
        """Returns the address of a file in the embedded index, ending in the digest, which pip checks."""
        return f"{self.upload}{urllib.parse.quote(name)}#sha256={digest}"

    def _ask(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"files": []}
            kind = Broken if error.code >= 500 else Problem
            raise kind(f"the index {self.name} answers {error.code}: {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Broken(
                f"the index {self.name} does not answer ({error}); "
                "run the same command again when it does"
            ) from None


@contextmanager
def ready(
    name: str, folder: Path, sdist: str = "", own: Mapping[str, str] | None = None
) -> Iterator[Index]:
    """Yields the index of that name. The embedded one is in `folder`, and has a stage for the sdist with this
    digest."""
    if name == "own":
        yield named(own or {})
        return
    if name == "embedded":
        with embedded(folder, sdist) as index:
            yield index
        return
    variable = f"INDEX_{name.upper()}"
    if stand_in := os.environ.get(variable):  # set in a rehearsal
        if urllib.parse.urlsplit(stand_in).hostname not in LOOPBACK:
            raise Problem(
                f"{variable} redirects {name} to {stand_in}; only an index on this machine may "
                "stand in for it: unset the variable"
            )
        yield Index(f"{name} (rehearsed)", stand_in, f"{stand_in}+simple/", is_public=True)
        return
    import twine.utils  # imported here, as the jobs that only sign do not have it

    public = twine.utils.TEST_REPOSITORY if name == "testpypi" else twine.utils.DEFAULT_REPOSITORY
    simple = public.replace("/legacy/", "/simple/").replace("upload.", "")
    yield Index(name, public, simple, is_public=True)


def named(own: Mapping[str, str]) -> Index:
    """Returns the index that the matrix names, by addresses in which {index} stands for cu130-torch2.15, or for
    `all`."""
    upload, simple = own.get("upload", ""), own.get("simple", "")
    if "{index}" not in upload or "{index}" not in simple:
        raise Problem(
            "publish.upload and publish.simple of the matrix must say where an index is, with {index} in them:\n"
            '  [publish]\n  upload = "https://host/{index}/"\n  simple = "https://host/{index}/simple/"'
        )

    def part(of: str) -> Index:
        return Index("own", upload.format(index=of), simple.format(index=of))

    return dataclasses.replace(part("all"), part=part)


@contextmanager
def embedded(folder: Path, sdist: str) -> Iterator[Index]:
    """Serves the embedded index of one state of the sources.

    A tree changes while its version stays the same, which no index allows. So each state of the sources has a folder of
    its own, named by its sdist's digest.
    """
    stage = f"state-{sdist[:12]}"
    (folder / stage).mkdir(parents=True, exist_ok=True)
    with upload_server.serving(folder, USER) as (address, password):
        place = f"{address}/{stage}/"
        whole = Index("embedded", place, f"{place}simple/", password)

        def part(of: str) -> Index:
            return dataclasses.replace(whole, simple=f"{whole.simple}{of}/")

        yield dataclasses.replace(whole, part=part)
    flush(folder)
