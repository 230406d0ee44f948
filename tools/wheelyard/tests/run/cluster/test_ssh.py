"""Tests two machines connected by SSH, as the manual describes: a real server on loopback is the other one."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import facts_of, machines, run
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.run.cluster import keys

SERVER = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    SERVER is None or os.geteuid() != 0,
    reason="needs Debian's openssh-server, and root to start it",
)
# The command that ssh runs on the other machine is one line for a shell.
THERE = """
import os, shlex, sys
line = shlex.join(["env", "PYTHONUNBUFFERED=1", "PYTHONPATH=" + os.environ["PYTHONPATH"], *sys.argv[2:]])
os.execvp("ssh", ["ssh", "-F", sys.argv[1], "-tt", "other", line])
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Path]:
    """Yields the settings of an ssh client for which `other` is a machine that lets it in."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    for name in ("host", "mine"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/mine.pub\nStrictModes no\nUsePAM no\n"
        "Subsystem sftp internal-sftp\n"
    )
    client = folder / "config"
    client.write_text(
        f"Host other\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/mine\n"
        " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([str(SERVER), "-D", "-e", "-f", folder / "sshd_config"])
    try:
        for _ in range(100):
            if subprocess.run(["ssh", "-F", client, "other", "true"]).returncode == 0:
                break
            time.sleep(0.1)
        yield client
    finally:
        server.terminate()
        server.wait()


def test_a_worker_on_a_machine_reached_by_ssh(settings: Path, tmp_path: Path) -> None:
    folder, far = tmp_path / "machines", tmp_path / "other"
    for made in (folder, far, tmp_path / "release"):
        made.mkdir()
    keys.make(folder / "keys")
    subprocess.run(
        ["scp", "-q", "-r", "-F", settings, folder / "keys", f"other:{far}/"], check=True
    )
    record = Record(tmp_path / "release")
    who = "import os; facts['ssh'] = 'SSH_CONNECTION' in os.environ; facts['pid'] = os.getpid()"
    with machines(folder) as there:
        here, there.keys = there.keys, far / "keys"
        there.worker("far", inside=[sys.executable, "-c", THERE, str(settings)])
        there.keys = here
        run(there, record, Job("build", "x", Needs(), {"do": who}))
        facts = facts_of(record, "build/x")
        assert facts["ssh"] is True
        assert record.jobs["build/x"]["facts"]["ran"]["machine"] == "far"
        there.processes["far"].terminate()  # the connection ends, and with it the worker
        for _ in range(300):
            if not Path(f"/proc/{facts['pid']}").exists():
                break
            time.sleep(0.1)
        assert not Path(f"/proc/{facts['pid']}").exists()
