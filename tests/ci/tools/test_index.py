"""The embedded index: jobs that need it at the same time share one server, and the last one stops it."""

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
