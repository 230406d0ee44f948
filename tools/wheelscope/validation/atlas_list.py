"""Finds the projects on PyPI that are built on torch: `python -m validation.atlas_list FOLDER >validation/atlas.txt`.

PyPI has no reverse dependencies, so its whole list of names is the start. The metadata of the
newest release is read for every project with a telling word in its name; then, for those that
require torch, for everything they require, until nothing new turns up. A project is kept if that
release
- has wheels for Linux with glibc, and requires torch under any marker or is named after torch: some
  link to torch without requiring it;
- or has only sources, whose setup.py builds an extension of torch.
Answers are kept in FOLDER, so that an interrupted run continues where it stopped.
"""

import http.client
import io
import json
import re
import ssl
import sys
import tarfile
import textwrap
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

INDEX = "https://pypi.org"
AT_ONCE = 8
WORDS = re.compile(
    "torch|cuda|cu1[1-3]|gpu|nvidia|triton|cutlass|kernel|flash|att(entio)?n|xformers|vllm|sgl|llm|mamba|rwkv|transformer|"
    "conv|rnn|ctc|moe|rope|gemm|fp[48]|quant|gptq|awq|gguf|llama|lora|spars|scatter|splat|nerf|raster|render|mesh|point|voxel|"
    "nms|deform|detectron|mmcv|kaolin|tensor|neural|deep|diffusion|infer|vision|audio|codec|whisper|graph|pyg|apex|megatron"
)
SPEAKS_OF_TORCH = re.compile("torch|flash|att(entio)?n|vllm|sgl")
BUILDS_EXTENSION = re.compile(
    rb"CUDAExtension|CppExtension|BuildExtension|torch\.utils\.cpp_extension"
)
WHEEL_FOR_GLIBC = re.compile(r"[-.](manylinux|linux)[^-]*\.whl$")
LARGEST_SDIST = 20 << 20
connections = threading.local()


def get(url: str, accept: str = "*/*") -> bytes | None:
    """Fetches an address over this thread's connection to its server; returns None if there is no
    such page."""
    parts = urlsplit(url)
    kept = connections.__dict__.setdefault("kept", {})
    for attempt in range(3):
        try:
            if parts.netloc not in kept:
                kept[parts.netloc] = http.client.HTTPSConnection(
                    parts.netloc, timeout=60, context=ssl.create_default_context()
                )
            kept[parts.netloc].request("GET", parts.path, headers={"Accept": accept})
            answer = kept[parts.netloc].getresponse()
            body = answer.read()
            if answer.status == 404:
                return None
            if answer.status == 200:
                return body
            raise http.client.HTTPException(f"{url}: {answer.status}")
        except (OSError, http.client.HTTPException):
            kept.pop(parts.netloc).close()
            if attempt == 2:
                raise
    return None


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def newest_release(name: str) -> dict[str, Any]:
    """Returns the requirements and files of the newest release."""
    address = f"{INDEX}/pypi/{name}/json"
    body = get(address)
    if body is None:
        return {}
    project = json.loads(body)
    files = [file for file in project["urls"] if not file["yanked"]]
    sdists = [
        file for file in files if file["packagetype"] == "sdist" and file["size"] < LARGEST_SDIST
    ]
    found = {
        "requires": sorted({name_of(text) for text in project["info"]["requires_dist"] or []}),
        "files": [file["filename"] for file in files],
    }
    alone = sdists and len(sdists) == len(files)
    if alone and ("torch" in found["requires"] or "torch" in name):
        found["builds_extension"] = builds_extension(urljoin(address, sdists[0]["url"]))
    return found


def builds_extension(url: str) -> bool:
    """True if the setup.py in a source distribution builds an extension of torch."""
    body = get(url)
    if body is None or not url.endswith((".tar.gz", ".tgz")):
        return False
    try:
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            for member in archive:
                if (
                    member.name.count("/") == 1
                    and member.name.endswith("/setup.py")
                    and member.isfile()
                ):
                    stream = archive.extractfile(member)
                    return bool(stream and BUILDS_EXTENSION.search(stream.read()))
    except (tarfile.TarError, EOFError, OSError):
        return False
    return False


def ask(names: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    def answer(name: str) -> tuple[str, dict[str, Any]]:
        file = folder / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(newest_release(name)))
        return name, json.loads(file.read_text())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(pool.map(answer, sorted(names)))


def is_kept(name: str, release: dict[str, Any]) -> bool:
    for_glibc = any(WHEEL_FOR_GLIBC.search(file) for file in release.get("files", []))
    on_torch = "torch" in release.get("requires", []) or SPEAKS_OF_TORCH.search(name)
    return name != "torch" and bool(release.get("builds_extension") or (for_glibc and on_torch))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    page = (get(f"{INDEX}/simple/", "text/html") or b"").decode()
    names = set(re.findall(r'href="(?:/simple/)?([^/"]+)/"', page))
    known: dict[str, dict[str, Any]] = {}
    waiting = {name for name in names if WORDS.search(name)}
    while waiting:
        found = ask(waiting, folder)
        known |= found
        on_torch = [one for one in found.values() if "torch" in one.get("requires", [])]
        waiting = {
            name for one in on_torch for name in one["requires"] if name in names
        } - known.keys()
        print(f"{len(known):,} projects asked, {len(waiting):,} to go", file=sys.stderr)
    kept = sorted(name for name, release in known.items() if is_kept(name, release))
    print(textwrap.fill(" ".join(kept), 120, break_on_hyphens=False, break_long_words=False))
    pure = sum("torch" in known[name].get("requires", []) for name in known.keys() - kept)
    print(
        f"{len(names):,} names; {pure:,} others require torch and have no library", file=sys.stderr
    )


if __name__ == "__main__":
    main()
