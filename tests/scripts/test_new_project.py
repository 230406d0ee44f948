"""The template under another name: whole, formatted, and nothing of this one's names left."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.new_project import STAY

ROOT = Path(__file__).parents[2]
WHERE = ("--repository=https://github.com/ada/fast-norms", "--holder=Ada Lovelace")


def make(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.new_project", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "fast_norms"
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Ada Lovelace")
            patch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
        made = make("fast-norms", folder, *WHERE)
    assert made.returncode == 0, made.stderr
    assert "fast-norms, imported as fast_norms, https://github.com/ada/fast-norms" in made.stdout
    return folder


def test_no_name_of_the_template_is_left(project: Path) -> None:
    old = "cuda[-_. ]?ext(?!en)"  # but not torch's CUDAExtension
    assert git(ROOT, "grep", "-iPl", old) != ""
    assert git(project, "grep", "-iP", old) == ""
    assert not re.search(old, git(project, "ls-files"), re.IGNORECASE)


def test_the_new_names_stand_where_the_old_ones_did(project: Path) -> None:
    ours = git(ROOT, "ls-files").replace("cuda_ext_example", "fast_norms").split()
    theirs = git(project, "ls-files").split()
    assert {name for name in ours if not name.startswith(STAY)} == set(theirs)
    assert "Copyright (c) 2026, Ada Lovelace" in (project / "LICENSE").read_text()
    facts = (project / "pyproject.toml").read_text()
    assert 'name = "fast_norms"' in facts
    assert 'Repository = "https://github.com/ada/fast-norms"' in facts
    assert "namespace fast_norms" in (project / "csrc/ops/add.h").read_text()
    assert "FAST_NORMS_CUDA" in (project / "setup.py").read_text()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("README.md", "taken on PyPI"),
        ("RELEASE.md", "belongs to somebody else"),
        ("docs/making-it-yours.md", "is a template"),
        ("Makefile", "make new"),
    ],
)
def test_what_is_true_of_the_template_alone_stays_behind(
    project: Path, file: str, words: str
) -> None:
    assert words in (ROOT / file).read_text()
    assert words not in (project / file).read_text()
    assert git(project, "grep", "only here") == ""
    assert git(project, "grep", "-E", "new_project|make new|test-new") == ""


def test_it_is_formatted_and_its_pipeline_knows_it(project: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check"], ["format", "--check"]):
        subprocess.run([ruff, *command, "--quiet", "."], cwd=project, check=True)
    wheelyard = [sys.executable, "-m", "wheelyard", "plan"]
    plan = subprocess.run(wheelyard, cwd=project, capture_output=True, text=True)
    assert plan.returncode == 0, plan.stderr


def test_it_builds_and_works_under_its_name(project: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, "--target", tmp_path, "."],
        cwd=project, env={"PATH": "/usr/bin:/bin", "FAST_NORMS_CUDA": "off", "FAST_NORMS_CACHE": "off"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    use = "import torch, fast_norms; x = torch.arange(5); print(fast_norms.my_add(x, x), torch.ops.fast_norms)"
    ran = subprocess.run(
        [sys.executable, "-c", use], env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True
    )  # fmt: skip
    assert ran.stdout.startswith("tensor([0, 2, 4, 6, 8])"), ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("My Ext", "{new}", *WHERE), "is no name for a package"),
        (("torch", "{new}", *WHERE), "`import torch` would mean something else"),
        (("docs", "{new}", *WHERE), "the project has a folder docs/ already"),
        (("my-ext", "{full}", *WHERE), "is there already, and is not empty"),
        (("my-ext", str(ROOT / "inside"), *WHERE), "lies inside this project"),
        (("my-ext", "{new}", WHERE[1]), "say where the project will live: REPOSITORY="),
    ],
    ids=["name", "taken", "folder", "full", "inside", "repository"],
)
def test_a_request_that_cannot_be_met_writes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")  # no github.user
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    made = make(*(text.format(new=tmp_path / "new", full=full) for text in arguments))
    assert made.returncode == 1
    assert made.stderr.startswith("error: ")
    assert message in made.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["full"]


def test_git_must_know_who_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    for number, name in enumerate(("user.name", "user.email")):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", "")
    made = make("my-ext", tmp_path / "new", *WHERE)
    assert made.returncode == 1
    assert "git config --global user.email" in made.stderr
    assert not (tmp_path / "new").exists()
