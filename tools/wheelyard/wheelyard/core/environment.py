"""Builds the environment of a job's programs from scratch, so that no shell setting reaches them.

A program gets PATH without relative folders, a home of its own, and FIXED. Anything else of this machine must be
allowed by name, from one of the lists below; the job's own variables come last. There is no other list: a variable that
changes the result belongs in the matrix, where it is an input.
"""

import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

UMASK = 0o022
FIXED = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
# Variables that locate the container engine.
ENGINE = (
    *("DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("CONTAINER_HOST", "XDG_RUNTIME_DIR"),
)
# Variables that say how to reach the network, for programs that download or upload.
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
NETWORK = (
    *PROXIES,
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"),
    *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_PROXY"),
    *("PIP_DEFAULT_TIMEOUT", "PIP_TIMEOUT", "PIP_RETRIES"),
)
PIP_CONFIGURATION = (Path("~/.pip/pip.conf"), Path("~/.config/pip/pip.conf"))  # the last one wins
# Variables that identify whoever uploads and signs: passwords, a keyring or ~/.pypirc, a workflow's identity.
CREDENTIALS = (
    *("HOME", "DBUS_SESSION_BUS_ADDRESS", "TWINE_USERNAME", "TWINE_PASSWORD"),
    *("GITHUB_ACTIONS", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
)
# Variables that a Python with torch needs to find this machine's GPU.
GPU = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
# The user's own docker settings, for making images: its plugins and its registries' passwords.
IMAGES = ("HOME", "DOCKER_CONFIG", *ENGINE, *NETWORK)


def make(
    home: Path | str, allowed: Collection[str] = (), told: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the environment of a program whose home is `home`, unless it is allowed to use the user's own."""
    let_through = {name: os.environ[name] for name in allowed if name in os.environ}
    own = [file for file in map(Path.expanduser, PIP_CONFIGURATION) if file.is_file()]
    if "PIP_CONFIG_FILE" in allowed and own:
        let_through.setdefault("PIP_CONFIG_FILE", str(own[-1]))
    places = {"PATH": path(), "HOME": str(home), "TMPDIR": tempfile.gettempdir()}
    return {**places, **FIXED, **let_through, **(told or {})}


def path() -> str:
    """Returns PATH: this Python's programs, then the user's PATH without relative folders, whose meaning depends on the
    current folder."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        [str(Path(sys.executable).parent), *(p for p in given if Path(p).is_absolute())]
    )


def isolated(module: str, *words: object) -> list[object]:
    """Returns a command that runs a module of this Python, so that no file in the current folder or the user's own
    packages replaces it."""
    return [sys.executable, "-I", "-m", module, *words]
