"""Times a release of the tests' demo project on a cluster of one worker beside the same release without one.

`python -m maintenance.bench_overhead [PAIRS]` runs them in turn, each in a folder of its own, so that both
download the torch that they link to; the images are there before. The ratios go into docs/cluster.json.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maintenance.bench_cluster import TARGET, TOOL, cluster

DEMO = TOOL / "tests/demo"
WHEELYARD = [sys.executable, "-m", "wheelyard"]
GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]


def project(folder: Path) -> Path:
    """A new copy of the demo project, in git."""
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".gitignore").write_text("/build/\n/wheelhouse/\n*.egg-info/\n__pycache__/\n")
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=demo"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


def seconds(folder: Path, *options: str) -> float:
    began = time.monotonic()
    words = [*WHEELYARD, "release", *options]
    subprocess.run(words, cwd=project(folder), check=True, stdout=subprocess.DEVNULL)
    return round(time.monotonic() - began, 1)


@contextmanager
def worker(address: str, folder: Path) -> Iterator[None]:
    """A worker with nothing kept from earlier releases."""
    words = [*WHEELYARD, "worker", address, f"--folder={folder}", "--name=box"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        next(line for line in process.stdout if "joined" in line)
        yield
    finally:
        process.terminate()
        process.communicate()


def measure(pairs: int, folder: Path) -> list[dict[str, float]]:
    rows = []
    seconds(folder / "first")  # it makes the images
    with cluster(folder / "cluster", 0) as (address, _):
        for number in range(pairs):
            load = round(os.getloadavg()[0], 2)
            alone = seconds(folder / f"alone-{number}")
            with worker(address, folder / f"worker-{number}"):
                there = seconds(folder / f"cluster-{number}", "--cluster", address)
            ratio = round(there / alone, 3)
            rows.append({"alone": alone, "one_worker": there, "ratio": ratio, "load_before": load})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3, Path(folder))
    print("the middle ratio:", statistics.median(row["ratio"] for row in rows))
    file = TARGET / "cluster.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"overhead": rows}) + "\n")


if __name__ == "__main__":
    main()
