"""Makes the keys of a cluster: its own certificates, created once and copied to each of its machines.

Both sides of every Dask connection check that the other has a certificate of the same authority. The authority's own
key is thrown away, so nobody can add a member later; new keys make a new cluster.
"""

import datetime
import ipaddress
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wheelyard.problem import Problem

AUTHORITY, MEMBER = "authority.pem", "member.pem"  # the second includes its key
VALID_DAYS = 365


def make(folder: Path) -> list[str]:
    """Writes the two files; returns instructions for them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    if (folder / AUTHORITY).exists():
        raise Problem(
            f"{folder} has keys already; name another folder, or delete them: then whoever has the old ones is out"
        )
    now = datetime.datetime.now(datetime.UTC)
    until = now + datetime.timedelta(days=VALID_DAYS)

    def certificate(name: str, key: Any, signer: Any, is_authority: bool) -> Any:
        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        builder = x509.CertificateBuilder(named("wheelyard cluster"), named(name), key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(until)
        limits = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
        return builder.add_extension(limits, critical=True).sign(signer, hashes.SHA256())

    authority, member = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    pem = serialization.Encoding.PEM
    root = certificate("wheelyard cluster", authority, authority, True).public_bytes(pem)
    own = certificate("wheelyard member", member, authority, False).public_bytes(pem)
    secret = member.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file, content in ((AUTHORITY, root), (MEMBER, secret + own)):
        (folder / file).touch(mode=0o600)
        (folder / file).write_bytes(content)
    return [
        f"{folder} has the keys of a cluster, valid until {until:%Y-%m-%d}. Copy it to each of its machines, then:",
        f"  wheelyard scheduler --host 0.0.0.0 --keys {folder}",
        f"  wheelyard worker tls://SCHEDULER:8786 --keys {folder}",
        f"  wheelyard release --cluster tls://SCHEDULER:8786 --keys {folder}",
        "Whoever has this folder can run programs on all of them.",
    ]


def address(given: str) -> str:
    """Returns the scheduler's address, with its protocol."""
    if "://" not in given:
        given = f"tls://{given}"
    parts = urlsplit(given)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not _port(parts):
        raise Problem(f"{given} is no address of a scheduler, which looks like tls://host:8786")
    return given


def security(at: str, folder: Path) -> Any:
    """Returns Dask's settings for a connection to, or a scheduler at, an address. Keys are required even on a single
    machine: without them any of its users could run programs as this one."""
    from distributed import Security

    if not at.startswith("tls://"):
        raise Problem(
            f"{at} is neither encrypted nor checked: whoever reaches it could run programs here; use "
            f"tls://{at.partition('://')[2]}, with keys that `wheelyard cluster-keys` makes"
        )
    for file in (folder / AUTHORITY, folder / MEMBER):
        if not file.is_file():
            raise Problem(
                f"{file} is missing; `wheelyard cluster-keys {folder}` makes the keys of a new cluster, "
                "or copy the folder from a machine that has them"
            )
    facts = (folder / MEMBER).stat()
    if facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
        raise Problem(
            f"{folder / MEMBER} is not this user's alone, so others may have read the key; "
            "delete the folder and make new keys, or if nobody could: chown it to this user, and chmod 600 it"
        )
    files: dict[str, Any] = {"tls_ca_file": str(folder / AUTHORITY)}
    for role in ("client", "worker", "scheduler"):
        files |= dict.fromkeys((f"tls_{role}_cert", f"tls_{role}_key"), str(folder / MEMBER))
    return Security(require_encryption=True, **files)  # type: ignore[no-untyped-call]


def host_and_port(at: str) -> tuple[str, int]:
    parts = urlsplit(at)
    return str(parts.hostname), int(parts.port or 0)


def _port(parts: Any) -> int | None:
    try:
        return parts.port  # type: ignore[no-any-return]
    except ValueError:
        return None


def is_loopback(at: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    host = urlsplit(at).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
