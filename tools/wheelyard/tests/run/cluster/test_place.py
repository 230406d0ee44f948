"""Tests jobs on a real cluster: what they see, what comes back, and every way in which a machine may fail a release."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import distributed
import pytest
from clusters import Machines, facts_of, machines, run
from disks import small_disk
from repository import committed, git, sleeping, started, wait_until
from wheelyard.core.digest import of_source
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.record import Record
from wheelyard.problem import Problem
from wheelyard.run.cluster import keys, link, place
from wheelyard.run.cluster.link import Lost, SchedulerLost, checked

WRITE = "(workspace.out / f'{job.unit}.txt').write_text(workspace.inputs['text'])"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Machines]:
    folder = tmp_path / "machines"
    folder.mkdir()
    with machines(folder) as started:
        yield started


@pytest.fixture
def record(tmp_path: Path) -> Record:
    (tmp_path / "release").mkdir()
    return Record(tmp_path / "release")


def toy(
    name: str, do: str = WRITE, *, outputs: tuple[str, ...] | None = None, **inputs: Any
) -> Job:
    step, _, unit = name.partition("/")
    made_files = (f"{unit}.txt",) if outputs is None else outputs
    return Job(step, unit, Needs(), {"do": do, "text": unit, **inputs}, made_files)


def machine_of(record: Record, name: str) -> str:
    return str(record.jobs[name]["facts"]["ran"]["machine"])


# --- What a job sees, and what comes back -------------------------------------------------------------


def test_files_of_jobs_and_of_the_project_reach_a_worker(
    there: Machines, record: Record, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "deep").mkdir(parents=True)
    (project / "deep/run.sh").write_text("#!/bin/sh\n")
    (project / "deep/run.sh").chmod(0o755)
    (project / "empty").touch()
    (project / "link").symlink_to("deep/run.sh")
    git(committed(project), "tag", "v7")
    files = {path: of_source(project / path) for path in ("deep/run.sh", "empty", "link")}
    look = """
import os, subprocess
folder = workspace.sources("all")
assert os.access(folder / "deep/run.sh", os.X_OK)
assert os.readlink(folder / "link") == "deep/run.sh"
git = ["git", "-C", workspace.project]
facts["git"] = subprocess.check_output([*git, "describe", "--tags", "--dirty"], text=True).strip()
(workspace.out / "both.txt").write_text(workspace.file("first").read_text() + str((folder / "empty").stat().st_size))
"""
    jobs = [
        toy("build/first"),
        toy("repair/both", look, first=made("build/first"), all=Source(files), git="v7-0-g1234"),
    ]
    folder = there.worker("one")
    run(there, record, *jobs, project=project)
    assert (record.folder / "both.txt").read_text() == "first0"
    assert facts_of(record, "repair/both")["git"] == "v7"
    assert machine_of(record, "repair/both") == "one"
    assert [f.name for f in (folder / "work").iterdir()] == ["tmp"], "a worker cleans up"
    assert not list(folder.rglob("run.sh")), "and has files by their digests alone"


def test_a_large_file_goes_both_ways(there: Machines, record: Record) -> None:
    make = "(workspace.out / 'big.txt').write_bytes(bytes(range(256)) * 100_000)"
    check = "facts['size'] = workspace.file('big').stat().st_size"
    there.worker("one")
    run(there, record, toy("build/big", make))
    for file in (there.folder / "one/files").iterdir():  # the worker loses all its files
        if file.is_file():
            file.unlink()
    run(
        there,
        record,
        toy("build/big", make),
        toy("gate/big", check, outputs=(), big=made("build/big")),
    )
    assert facts_of(record, "gate/big")["size"] == 25_600_000


def test_secrets_stay_here(there: Machines, record: Record) -> None:
    where = "import os; facts['pid'] = os.getpid()"
    secret = Job("publish", "x", Needs(secrets=True), {"do": where})
    there.worker("one")
    run(there, record, toy("build/x", where, outputs=()), secret)
    assert facts_of(record, "publish/x")["pid"] == os.getpid()
    assert facts_of(record, "build/x")["pid"] != os.getpid()


HOSTILE: dict[str, tuple[Any, str]] = {
    "above": ({"../../x.txt": ["0" * 64, 1]}, "names the file ../../x.txt, which is not its own"),
    "absolute": ({"/etc/x.txt": ["0" * 64, 1]}, "names the file /etc/x.txt, which is not its own"),
    "negative": ({"negative.txt": ["0" * 64, -1]}, "sent negative.txt with other bytes"),
    "elsewhere": ({"elsewhere.txt": ["../../keys/member.pem", 1]}, "hostile does not answer"),
    "shapeless": ({"shapeless.txt": "0" * 64}, "sent an invalid answer"),
}


def test_a_hostile_worker_gets_no_further_than_a_hostile_job(
    there: Machines,
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever it answers, nothing is recorded as made, and no file appears where no job puts it."""
    monkeypatch.setattr(place, "ALONE_SECONDS", 1)
    claims = {"kind": "passed", "verdict": "", "log": ["", 0]}
    answers = {unit: {**claims, "outputs": outputs} for unit, (outputs, _) in HOSTILE.items()}
    there.worker("hostile", f"service.Service.perform = lambda _, o, __: {answers!r}[o['unit']]")
    with pytest.raises(Problem) as told:
        run(there, record, *(toy(f"build/{unit}") for unit in HOSTILE))
    said = f"{told.value}{capsys.readouterr().out}"
    for unit, (_, why) in HOSTILE.items():
        assert why in said, said
        assert record.jobs[f"build/{unit}"]["verdict"] == "failed"
        assert record.jobs[f"build/{unit}"]["outputs"] == {}
    assert not list(record.folder.parent.rglob("*.txt"))


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {"kind": "passed"},
        {
            "kind": "passed",
            "address": "a",
            "machine": "m",
            "log": ["", 0],
            "verdict": "",
            "outputs": {"a": "b"},
        },
        {"kind": "failed", "address": "a", "machine": "m", "log": ["x", "y"]},
    ],
)
def test_an_answer_of_another_shape_is_no_answer(told: Any) -> None:
    with pytest.raises(Lost, match="sent an invalid answer"):
        checked(told)


# --- Where jobs go ------------------------------------------------------------------------------------


def test_a_worker_of_another_version_gets_nothing(there: Machines, record: Record) -> None:
    there.worker("old", "offers._own_version = lambda: 'wheelyard 0.0.1-old'")
    with pytest.raises(Problem, match=r"needs wheelyard .*, which old does not have"):
        run(there, record, toy("build/x"))
    there.worker("new")
    run(there, record, toy("build/x"), toy("build/y"), toy("build/z"))
    assert {machine_of(record, f"build/{unit}") for unit in "xyz"} == {"new"}


def test_jobs_share_out_the_memory_of_a_machine(
    there: Machines, record: Record, tmp_path: Path
) -> None:
    """The worker has two slots, but memory for one job."""
    alone = f"""
import time
from pathlib import Path
mark = Path({str(tmp_path / "mark")!r})
mark.touch(exist_ok=False)
time.sleep(1)
mark.unlink()
"""
    small = "found = offers.offered(2, network=True); found[offers.MEMORY] = 7\n"
    there.worker("one", f"{small}offers.offered = lambda *_, **__: found")
    run(there, record, *(Job("build", u, Needs(memory_gib=4), {"do": alone}) for u in "abc"))
    assert {entry["verdict"] for entry in record.jobs.values()} == {"passed"}


def test_a_job_that_waits_at_a_busy_worker_goes_to_one_that_is_free(
    there: Machines, record: Record
) -> None:
    """Three of the four slots are busy for long; which worker the short jobs were first sent to is chance."""
    there.worker("one")
    there.worker("two")
    long = [toy(f"build/long-{n}", f"import time; time.sleep(15)\n{WRITE}") for n in "abc"]
    short = [toy(f"build/short-{n}", f"import time; time.sleep(0.2)\n{WRITE}") for n in "abcdefgh"]
    run(there, record, *long, *short)
    began = {name: entry["facts"]["ran"]["began"] for name, entry in record.jobs.items()}
    first = min(began.values())
    assert {name for name in began if began[name] - first > 10} == set()


def test_no_scheduler(tmp_path: Path, record: Record) -> None:
    nobody = Machines(tmp_path)
    keys.make(nobody.keys)
    with pytest.raises(Problem, match=r"no scheduler answers at tls://.*`wheelyard scheduler`"):
        run(nobody, record, toy("build/x"))


# --- What goes wrong ----------------------------------------------------------------------------------


def test_a_job_that_fails_by_its_own_fault_is_not_repeated(
    there: Machines, record: Record, tmp_path: Path
) -> None:
    fail = f"""
from wheelyard.core import shell
open({str(tmp_path / "ran")!r}, "a").write("x")
shell.run(["sh", "-c", "echo no compiler; exit 1"], workspace.log, what="compiling")
"""
    there.worker("one")
    there.worker("two")
    with pytest.raises(Problem, match=r"build/x: on (one|two): compiling failed"):
        run(there, record, toy("build/x", fail))
    assert (tmp_path / "ran").read_text() == "x"
    log = record.folder / "logs/build-x.log"
    assert "no compiler" in log.read_text()
    assert f"The whole log: {log}" in record.jobs["build/x"]["facts"]["error"]


def test_a_worker_killed_in_a_job_and_another_finishes_it(
    there: Machines, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    die_once = f"""
import os, signal, time
from pathlib import Path
if not Path({str(tmp_path / "died")!r}).exists():
    Path({str(tmp_path / "died")!r}).write_text(str(os.getpid()))
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)
{WRITE}
"""
    there.worker("one")
    there.worker("two")
    run(there, record, toy("build/x", die_once))
    victim = {str(there.processes[name].pid): name for name in ("one", "two")}[
        (tmp_path / "died").read_text()
    ]
    assert machine_of(record, "build/x") != victim
    assert f"build/x: {victim} went away" in capsys.readouterr().out


def test_a_job_whose_machine_dies_waits_for_one_that_can_do_it(
    there: Machines, record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent to the worker that has its files. If Dask were merely told to prefer that worker, it would forget the
    job's other needs when the worker dies."""
    monkeypatch.setattr(place, "LOOK_SECONDS", 0.5)
    there.worker("able")
    there.worker(
        "unable",
        "found = offers.offered(2, network=False)\noffers.offered = lambda *_, **__: found",
    )
    died = tmp_path / "died"
    die_once = f"""
import os, signal
from pathlib import Path
if not Path({str(died)!r}).exists():
    Path({str(died)!r}).touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    network = Needs(network=True)
    first = Job("build", "x", network, {"do": WRITE, "text": "x"}, ("x.txt",))
    second = Job("gate", "x", network, {"do": die_once, "text": made("build/x")})

    def another() -> None:
        wait_until(died.exists)
        time.sleep(2)
        there.worker("later")

    helper = threading.Thread(target=another)
    helper.start()
    run(there, record, first, second)
    helper.join()
    assert [machine_of(record, job.name) for job in (first, second)] == ["able", "later"]


def test_all_workers_gone(there: Machines, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "ALONE_SECONDS", 1)
    monkeypatch.setattr(place, "LOOK_SECONDS", 0.5)
    there.worker("one")
    die = "import os, signal, time; time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(
        Problem, match=r"no worker is left beside one that offers(.|\n)*wheelyard worker tls"
    ):
        run(there, record, toy("build/x", die))
    there.worker("two")
    run(there, record, toy("build/x"))
    assert machine_of(record, "build/x") == "two"


def test_a_worker_with_a_full_disk(
    there: Machines, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill = "(workspace.out / 'x.txt').write_bytes(b'x' * (20 << 20))"
    jobs = [toy(f"build/x{n}", fill.replace("x.txt", f"x{n}.txt")) for n in range(4)]
    with small_disk(tmp_path / "small", "8M") as small, closing(there):
        there.worker("full", folder=small)
        there.worker("roomy")
        run(there, record, *jobs)
    assert {machine_of(record, job.name) for job in jobs} == {"roomy"}
    assert "full cannot do it: its disk is full" in capsys.readouterr().out


def test_a_worker_that_sends_other_bytes(
    there: Machines, record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    """It states one digest and sends other bytes; the log is empty, so that it cannot be wrong."""
    liar = "honest = store.Store.read; store.Store.read = lambda *a: honest(*a)[::-1]"
    there.worker("liar", liar)
    jobs = [toy(f"build/x{n}") for n in range(2)]
    helper = threading.Thread(target=there.worker, args=["honest"])
    helper.start()
    run(there, record, *jobs)
    helper.join()
    for n in range(2):
        assert (record.folder / f"x{n}.txt").read_text() == f"x{n}"
    assert {machine_of(record, job.name) for job in jobs} == {"honest"}
    assert "liar sent x0.txt with other bytes than it announced" in capsys.readouterr().out


@pytest.mark.parametrize("error", [None, ValueError("IOStream is not idle")])
def test_the_scheduler_restarts(
    there: Machines,
    record: Record,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
) -> None:
    """Also if the first attempt to connect again ends while TLS begins."""
    errors = [error] if error else []
    connect = distributed.Client._ensure_connected

    async def connected(client: distributed.Client, timeout: float | None = None) -> None:
        if errors and (tmp_path / "begun").exists():
            raise errors.pop()
        await connect(client, timeout=timeout)

    monkeypatch.setattr(distributed.Client, "_ensure_connected", connected)
    slowly = (
        f"open({str(tmp_path / 'begun')!r}, 'a').write('x'); import time; time.sleep(2)\n{WRITE}"
    )

    def restart() -> None:
        wait_until((tmp_path / "begun").exists)
        there.kill("scheduler")
        there.scheduler()

    there.worker("one")
    helper = threading.Thread(target=restart)
    helper.start()
    run(there, record, toy("build/x", slowly))
    helper.join()
    assert "the scheduler went away; waiting for it" in capsys.readouterr().out
    assert record.jobs["build/x"]["verdict"] == "passed"


def test_the_scheduler_stays_away_and_the_same_command_goes_on(
    there: Machines, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "BACK_SECONDS", 2)
    jobs = [
        toy("build/a"),
        toy("repair/b", f"import time; time.sleep(3)\n{WRITE}", a=made("build/a")),
    ]

    def kill() -> None:
        wait_until((record.folder / "a.txt").exists)
        there.kill("scheduler")

    there.worker("one")
    helper = threading.Thread(target=kill)
    helper.start()
    with pytest.raises(Problem, match="went away; start it again, then run the same command"):
        run(there, record, *jobs)
    helper.join()
    first = record.jobs["build/a"]
    there.scheduler()
    there.wait_for("one", "joined", times=2)
    run(there, record, *jobs)
    assert record.jobs["build/a"] == first
    assert record.jobs["repair/b"]["verdict"] == "passed"


def test_a_job_for_a_scheduler_that_stays_away_is_not_sent(
    there: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client is closed by then; whether a job is sent so late is luck."""
    monkeypatch.setattr(link, "BACK_SECONDS", 2)
    with link.joined(there.address, there.keys) as joined:
        there.kill("scheduler")
        wait_until(lambda: joined._client.status == "closed")
        with pytest.raises(SchedulerLost):
            joined.send("build/x", {}, {}, [], 0)
        joined.cancel_all()


class Broken:
    """A client whose attempt to connect again failed; whether a kill does that is luck."""

    status = "running"

    def close(self) -> None:
        raise ValueError("IOStream is not idle; cannot convert to SSL")


def test_a_client_that_cannot_close_hides_no_error() -> None:
    client = Broken()
    link.close(client)
    assert client.status == "closed"


STOPPED = """
import sys
from pathlib import Path
from clusters import Machines, run
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
there = Machines(Path(sys.argv[1]))
there.address = sys.argv[2]
do = f'from wheelyard.core import shell; shell.run(["sleep", "{sys.argv[4]}"], workspace.log, what="it")'
run(there, Record(Path(sys.argv[3])), Job("build", "x", Needs(), {"do": do}))
"""


def test_stopped_by_hand_nothing_runs_on(there: Machines, record: Record) -> None:
    there.worker("one")
    seconds = f"48.{os.getpid()}"
    words = [str(there.folder), there.address, str(record.folder), seconds]
    with started(
        [sys.executable, "-c", STOPPED, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as release:
        wait_until(lambda: sleeping(seconds) == 1)
        release.send_signal(signal.SIGINT)
        assert release.wait(timeout=30) != 0
    wait_until(lambda: sleeping(seconds) == 0, 45)


@pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="nohup keeps workers running, too"
)
def test_a_worker_leaves_when_its_terminal_hangs_up(there: Machines) -> None:
    """`ssh -t` does that to its program when the connection ends."""
    there.worker("one")
    there.processes["one"].send_signal(signal.SIGHUP)
    assert there.processes["one"].wait(timeout=60) == 0
