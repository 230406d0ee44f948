"""Large releases on four workers give the bytes that the same release gives without a cluster."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import Machines
from demo_project import copy_of_demo
from rehearsed import git
from repository import ROOT, wheelyard
from two_networks import BOXES, marks, release, there
from wheelyard.core.digest import sha256

__all__ = ["there"]  # a fixture
pytestmark = marks
TORCHES = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
PYTHONS = ("3.11", "3.13")


def demo_for_each(folder: Path) -> Path:
    """The demo project, with a wheel for each of six torches and two Pythons."""
    project = copy_of_demo(folder)
    matrix = project / "ci/matrix.toml"
    text = matrix.read_text()
    tables = "".join(
        f'[torch."{torch}"]\ncuda = ["cpu"]\npypi = {{ x86_64 = "cpu", aarch64 = "cpu" }}\n'
        for torch in TORCHES
    )
    text = re.sub(r'\[torch\."2\.10"\]\n.*\n.*\n', lambda _: tables, text)
    text = text.replace('["3.11", "3.12"]', str(list(PYTHONS)))
    matrix.write_text(text.replace('default = "universal"', 'default = "each"'))
    git(project, "commit", "--all", "--quiet", "--message=each")
    return project


def clone_of_this_repository(folder: Path) -> Path:
    git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
    return folder


@pytest.mark.parametrize(
    ("project", "wheels"), [(demo_for_each, 12), (clone_of_this_repository, 2)]
)
def test_four_workers_give_the_bytes_of_one_machine(
    there: Machines, tmp_path: Path, project: Callable[[Path], Path], wheels: int
) -> None:
    alone = project(tmp_path / "alone")
    for step in ("build", "repair"):
        done = wheelyard(alone, step)
        assert done.returncode == 0, done.stdout + done.stderr
    for name, inside in BOXES.items():
        there.real_worker(name, inside)
    together = project(tmp_path / "together")
    lines = "".join(release(there, together))
    print(lines)
    assert all(f" starts on {name}" in lines for name in BOXES)
    made = {file.name: sha256(file) for file in (together / "wheelhouse").glob("*.whl")}
    assert len(made) == wheels
    assert made == {file.name: sha256(file) for file in (alone / "wheelhouse").glob("*.whl")}
