"""Passes this machine's apt settings, pip settings and CA bundle to image builds, as secret files."""

import json
import os
from pathlib import Path

from wheelyard.core import shell
from wheelyard.core.environment import isolated

APT = ("Acquire::Check-Valid-Until", "Acquire::Retries", "Acquire::http::", "Acquire::https::")
PIP = (
    *("index-url", "extra-index-url", "trusted-host", "proxy"),
    *("default-timeout", "timeout", "retries"),
)


def files(folder: Path) -> dict[str, Path]:
    apt = shell.capture(["apt-config", "dump"]) or ""
    texts = {"apt": "".join(f"{line}\n" for line in apt.splitlines() if line.startswith(APT))}
    pip = shell.capture(isolated("pip", "config", "list")) or ""
    settings = {}
    # Settings from the environment come last, and so win.
    for line in sorted(pip.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip("'\"")
    bundle = settings.pop("cert", None) or os.environ.get("SSL_CERT_FILE")
    lines = [f"{name} = {value}" for name, value in settings.items() if name in PIP]
    if bundle:
        lines.append("cert = /run/secrets/ca")
    texts["pip"] = "\n".join(["[global]", *lines, ""])
    texts["uv"] = _for_uv(settings)
    texts["ca"] = Path(bundle).read_text() if bundle else ""
    paths = {name: folder / name for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    return paths


def _for_uv(settings: dict[str, str]) -> str:
    """Returns pip's settings of indexes for uv. Unlike pip, uv takes a name from the first index that has it, so nobody
    can put a higher version of a private name on a public index."""
    values: dict[str, str | list[str]] = {
        "index-url": settings.get("index-url", ""),
        "extra-index-url": settings.get("extra-index-url", "").split(),
        "allow-insecure-host": settings.get("trusted-host", "").split(),
    }
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items() if value)
