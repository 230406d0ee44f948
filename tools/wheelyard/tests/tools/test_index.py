"""The embedded index: jobs share one server, the last one stops it, and it starts again after a kill."""

import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

from wheelyard.core import shell
from wheelyard.tools import index


def test_jobs_share_one_server_and_the_last_one_stops_it(tmp_path: Path) -> None:
    folder, log = tmp_path / "index", tmp_path / "log"
    index.initialised(folder, log)
    meet, seen, answered = threading.Barrier(3), list[str](), list[str]()

    def use(leave: threading.Event) -> None:
        with index.server(folder, log) as url:
            seen.append(url)
            meet.wait(600)
            assert leave.wait(600)
            urllib.request.urlopen(f"{url}/+api").close()
            answered.append(url)

    leaves = [threading.Event() for _ in range(3)]
    jobs = [threading.Thread(target=use, args=[leave]) for leave in leaves]
    before = set(shell.running)
    for job in jobs:
        job.start()
    for job, leave in zip(jobs, leaves, strict=True):  # also when the one that started it is gone
        leave.set()
        job.join()
    assert len(answered) == 3
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert set(shell.running) == before
    with index.server(folder, log) as again:
        urllib.request.urlopen(f"{again}/+api").close()


CUT_OFF = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN IMMEDIATE")
database.execute("CREATE TABLE never_whole AS SELECT zeroblob(1 << 20)")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_starts_after_a_write_that_was_cut_off(tmp_path: Path) -> None:
    folder, log = tmp_path / "index", tmp_path / "log"
    index.initialised(folder, log)
    subprocess.run([sys.executable, "-c", CUT_OFF, folder / ".sqlite"])
    assert (folder / ".sqlite-journal").stat().st_size > 0
    with index.server(folder, log) as url:
        urllib.request.urlopen(f"{url}/+api").close()
