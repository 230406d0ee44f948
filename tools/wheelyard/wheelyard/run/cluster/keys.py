"""Makes the keys of a cluster: one key with its certificate, made once and copied to each of its machines.

Both sides of every Dask connection check that the other has this very certificate. Nobody can add a member without the
file; a new one makes a new cluster.
"""

import ipaddress
import itertools
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from distributed import Security

from wheelyard.problem import Problem

MEMBER = "member.pem"


def make(folder: Path) -> list[str]:
    """Writes the file; returns instructions for it."""
    file = folder / MEMBER
    if file.exists():
        raise Problem(
            f"{folder} has keys already; name another folder, or delete them: then nobody can join with the old ones"
        )
    made: Any = Security.temporary()  # type: ignore[no-untyped-call]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.touch(mode=0o600)
    file.write_text(made.tls_client_key + made.tls_client_cert)
    return [
        f"{folder} has the keys of a cluster, valid for a year. Copy it to each of its machines, then:",
        f"  wheelyard scheduler --host 0.0.0.0 --keys {folder}",
        f"  wheelyard worker tls://SCHEDULER:8786 --keys {folder}",
        f"  wheelyard release --cluster tls://SCHEDULER:8786 --keys {folder}",
        "Whoever has this folder can run programs on all of them.",
    ]


def address(given: str) -> str:
    """Returns the scheduler's address, with its protocol."""
    at = given if "://" in given else f"tls://{given}"
    try:
        is_one = at.startswith(("tcp://", "tls://")) and all(host_and_port(at))
    except ValueError:  # the port is no number
        is_one = False
    if not is_one:
        raise Problem(f"{at} is not the address of a scheduler, which looks like tls://host:8786")
    return at


def security(at: str, folder: Path) -> Any:
    """Returns Dask's settings for a connection to, or a scheduler at, an address. Keys are required even on a single
    machine: without them any of its users could run programs as this one."""
    if not at.startswith("tls://"):
        raise Problem(
            f"{at} is neither encrypted nor checked: whoever reaches it could run programs here; use "
            f"tls://{at.partition('://')[2]}, with keys that `wheelyard cluster-keys` makes"
        )
    file = folder / MEMBER
    if not file.is_file():
        raise Problem(
            f"{file} is missing; `wheelyard cluster-keys {folder}` makes the keys of a new cluster, "
            "or copy the folder from a machine that has them"
        )
    facts = file.stat()
    if facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
        raise Problem(
            f"{file} is not this user's alone, so others may have read the key; "
            "delete the folder and make new keys, or if nobody could: chown it to this user, and chmod 600 it"
        )
    pairs = itertools.product(("client", "worker", "scheduler"), ("cert", "key"))
    names = ["tls_ca_file", *(f"tls_{role}_{part}" for role, part in pairs)]
    files = dict.fromkeys(names, str(file))
    return Security(require_encryption=True, **files)  # type: ignore[no-untyped-call]


def host_and_port(at: str) -> tuple[str, int]:
    parts = urlsplit(at)
    return parts.hostname or "", parts.port or 0


def is_loopback(at: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    host, _ = host_and_port(at)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
