"""Times `wheelscope fit` on the newest wheels of projects beside downloading the same files, from the index
that pip is configured for: `python -m validation.bench_fit vllm onnxruntime-gpu ...` prints a table in Markdown.

The machine is this one with an added driver and GPU, so that wheels for CUDA are examined. Each
time is the median of three rounds, in which `fit`, the bare transfer of the file and `pip download`
are measured in turn; no round finds anything in a cache.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from validation.program import WHEELSCOPE, ask

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
ROUNDS = 3


def machine_with_gpu(folder: Path) -> Path:
    document = ask("machine")
    document["machine"] |= {
        "driver": "595.45.04",
        "gpus": [{"name": "NVIDIA H200", "capability": "9.0"}],
    }
    path = folder / "machine.json"
    path.write_text(json.dumps(document))
    return path


def fit(machine: Path, asked: str, cache: Path) -> tuple[Any, float]:
    """Returns the answer, and the seconds that it took."""
    words = [WHEELSCOPE, "fit", "--json", f"--machine={machine}", f"--index={INDEX}", asked]
    start = time.perf_counter()
    done = subprocess.run(
        words, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)}
    )
    seconds = time.perf_counter() - start
    return json.loads(done.stdout)["fit"][0], seconds


def download(project: str, name: str) -> float:
    """Returns the seconds to download the file itself, without its page."""
    page = f"{INDEX}/{project}/"
    with urllib.request.urlopen(page) as body:
        links = re.findall(r'href="([^"#]+)', body.read().decode())
    url = urllib.parse.urljoin(page, next(link for link in links if link.endswith("/" + name)))
    start = time.perf_counter()
    with urllib.request.urlopen(url) as body:
        while body.read(1 << 20):
            pass
    return time.perf_counter() - start


def pip_download(asked: str, folder: Path) -> float:
    """Returns the seconds that pip takes for it."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    start = time.perf_counter()
    subprocess.run([*words, "--only-binary=:all:", f"--dest={folder}", asked], check=True)
    seconds = time.perf_counter() - start
    shutil.rmtree(folder)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="+")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        machine = machine_with_gpu(folder)
        print("| file | size | read | | fit | its bare transfer | | `pip download` | |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for project in parser.parse_args().projects:
            answer, _ = fit(machine, project, folder / "first")
            newest = next(file["file"] for file in answer["files"] if file["read"])
            asked = f"{project}=={newest.split('-')[1]}"
            fits, downloads, pips = [], [], []
            for number in range(ROUNDS):
                answer, seconds = fit(machine, asked, folder / f"{project}-{number}")
                fits.append(seconds)
                downloads.append(download(project, newest))
                pips.append(pip_download(asked, folder / "pip"))
            [file] = [file for file in answer["files"] if file["file"] == newest]
            seconds, whole, pip = map(statistics.median, (fits, downloads, pips))
            print(
                f"| {newest} | {file['size'] / 1e6:.0f} MB | {file['read'] / 1e6:.1f} MB "
                f"| {100 * file['read'] / file['size']:.2f} % | {seconds:.2f} s | {whole:.1f} s "
                f"| {whole / seconds:.0f} times | {pip:.1f} s | {pip / seconds:.0f} times |",
                flush=True,
            )


if __name__ == "__main__":
    main()
