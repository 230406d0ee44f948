"""Tests the commands of a cluster: what they refuse, and that without them nothing of Dask is imported."""

import subprocess
import sys
import tomllib
from pathlib import Path

import distributed
import pytest
from clusters import machines
from repository import ROOT, TOOL, wheelyard
from wheelyard.problem import Problem
from wheelyard.run.cluster import keys, worker


def test_one_worker_for_a_folder(tmp_path: Path) -> None:
    with (
        worker.only_worker(tmp_path),
        pytest.raises(Problem, match=r"another worker uses .*--folder FOLDER"),
        worker.only_worker(tmp_path),
    ):
        pytest.fail("both run")


@pytest.mark.parametrize(
    "words", [["scheduler", "--host=0.0.0.0"], ["worker", "tcp://127.0.0.1:8786"]]
)
def test_without_keys_nothing_listens(words: list[str], tmp_path: Path) -> None:
    done = wheelyard(ROOT, *words, "--keys", str(tmp_path))
    assert done.returncode == 1
    assert "`wheelyard cluster-keys" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_scheduler_of_this_machine_lets_in_who_has_its_keys(tmp_path: Path) -> None:
    """Every user of the machine can reach its port."""
    keys.make(tmp_path / "others")
    with machines(tmp_path) as there:
        place = f"{there.host}:{there.port}"
        own, others = (
            keys.security(f"tls://{place}", f) for f in (there.keys, tmp_path / "others")
        )
        for address, security in ((f"tcp://{place}", None), (f"tls://{place}", others)):
            with pytest.raises(OSError, match=r"reset|Timed out|TLS certificate does not match"):
                distributed.Client(address, security=security, timeout=4)
        with distributed.Client(f"tls://{place}", security=own, timeout=30) as client:
            assert client.run_on_scheduler(int) == 0


WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
from wheelyard.cli import main
sys.argv = ["wheelyard", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.mark.parametrize(
    "words", [["release", "--cluster=localhost:1"], ["worker", "localhost:1"], ["scheduler"]]
)
def test_without_dask_the_commands_say_what_to_install(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 1
    assert done.stderr == "error: Dask is missing; pip install 'wheelyard[cluster]'\n"


def test_without_a_cluster_nothing_of_dask_is_imported_or_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "plan"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    tables = tomllib.loads((TOOL / "pyproject.toml").read_text())["project"]
    assert not [d for d in tables["dependencies"] if "dask" in d or "distributed" in d]
    locked = (ROOT / "ci/tools.lock").read_text()
    assert "distributed==" not in locked
