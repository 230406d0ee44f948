"""Tests facts about a project: its names, its files as git has them, links that lead out of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import git, program, write
from wheelyard.plan import project
from wheelyard.problem import Problem


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Makes a repository whose Python project is a subfolder, with a link to a library beside it."""
    files = {
        "library/code.cpp": "int f();",
        "python/setup.py": "",
        "python/tests/test_it.py": "",
        "python/ci/matrix.toml": "",
        ".gitignore": "build/\n",
        "python/build/old.o": "",
    }
    write(tmp_path, files)
    (tmp_path / "python/library").symlink_to("../library")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    return tmp_path


def test_files_are_those_that_git_would_take(repository: Path) -> None:
    made = project.load(repository / "python", "theirs")
    (repository / "python/new.py").touch()
    assert set(made.files()) == {
        "ci/matrix.toml", "library/code.cpp", "new.py", "setup.py", "tests/test_it.py",
    }  # fmt: skip
    assert list(made.files("tests")) == ["tests/test_it.py"]


def test_another_content_is_another_digest(repository: Path) -> None:
    made = project.load(repository / "python", "theirs")
    before = made.files()
    (repository / "library/code.cpp").write_text("int g();")
    after = made.files()
    assert {name for name in before if before[name] != after[name]} == {"library/code.cpp"}


def test_the_root_is_found_from_below(repository: Path) -> None:
    assert project.find(repository / "python/tests") == repository / "python"
    with pytest.raises(Problem, match="`wheelyard init` writes one"):
        project.find(repository)


def test_a_project_without_a_name_says_where_to_write_it(repository: Path) -> None:
    with pytest.raises(
        Problem, match=r"(?s)no \[project\] name; say it in ci/matrix\.toml.*name ="
    ):
        project.load(repository / "python")


def test_names_of_the_matrix_win(repository: Path) -> None:
    made = project.load(repository / "python", "their-ext", "theirs.torch")
    assert (made.name, made.import_name, made.normalised, made.version) == (
        "their-ext", "theirs.torch", "their_ext", "",
    )  # fmt: skip


def test_no_git(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is not a git repository; `git init`"):
        project.load(tmp_path, "theirs").files()


def untracked(folder: Path, _: pytest.MonkeyPatch) -> None:
    git(folder, "config", "status.showUntrackedFiles", "no")
    (folder / "python/new.py").touch()


def overlooked(folder: Path, _: pytest.MonkeyPatch) -> None:
    git(folder, "update-index", "--assume-unchanged", "python/setup.py")
    (folder / "python/setup.py").write_text("evil()")


def skipped(folder: Path, _: pytest.MonkeyPatch) -> None:
    git(folder, "update-index", "--skip-worktree", "python/setup.py")
    (folder / "python/setup.py").write_text("evil()")


def mode(folder: Path, _: pytest.MonkeyPatch) -> None:
    git(folder, "config", "core.fileMode", "false")
    (folder / "python/setup.py").chmod(0o755)


def monitor(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Installs a hook that tells git that no file has changed."""
    hook = program(folder / ".git", "never", "printf 'token\\0'")
    git(folder, "config", "core.fsmonitor", str(hook))
    git(folder, "status")
    (folder / "python/setup.py").write_text("evil()")


def another_index(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "python/setup.py").write_text("evil()")
    patch.setenv("GIT_INDEX_FILE", str(folder / ".git/evil"))
    git(folder, "read-tree", "HEAD")
    git(folder, "update-index", "--assume-unchanged", "python/setup.py")


def replaced(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Makes HEAD stand for another commit, although its name stays."""
    good = git(folder, "rev-parse", "HEAD")
    (folder / "python/setup.py").write_text("evil()")
    git(folder, "commit", "-qam", "evil")
    git(folder, "replace", good, "HEAD")
    git(folder, "update-ref", "HEAD", good)


FOOLED = [untracked, overlooked, skipped, mode, monitor, another_index, replaced]


@pytest.mark.parametrize("fool", FOOLED, ids=lambda f: f.__name__)
def test_a_changed_tree_is_not_taken_for_a_clean_one(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    fool: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    git(repository, "commit", "-qm", "all")
    made = project.load(repository / "python", "theirs")
    assert made.commit == git(repository, "rev-parse", "HEAD")
    fool(repository, monkeypatch)
    assert made.commit.endswith("+")


def test_a_link_into_another_repository_is_refused(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    (other / "evil.py").touch()
    (repository / "python/vendored").symlink_to(other)
    made = project.load(repository / "python", "theirs")
    with pytest.raises(Problem, match=r"vendored is a link to .*outside this repository"):
        made.files()


def test_names_that_are_no_text(repository: Path) -> None:
    """The first name begins with a space; one is not UTF-8."""
    names = [b" first.py", b"caf\xe9.py", b"new\nline.py"]
    for name in names:
        Path(os.fsdecode(bytes(repository / "python") + b"/" + name)).touch()
    found = project.load(repository / "python", "theirs").files()
    assert {os.fsdecode(name) for name in names} <= found.keys()
    assert json.loads(json.dumps(found)) == found


def test_an_uncommitted_chmod_is_another_input(repository: Path) -> None:
    made = project.load(repository / "python", "theirs")
    before = made.files()
    (repository / "python/setup.py").chmod(0o755)
    assert made.files() != before


def test_changes_are_named_and_the_wheelhouse_is_none(repository: Path) -> None:
    python = repository / "python"
    git(repository, "commit", "-qm", "first")
    made = project.load(python, "theirs")
    (python / "wheelhouse").mkdir()
    (python / "wheelhouse/a.whl").touch()
    assert made.changes == []
    assert not made.commit.endswith("+")
    (python / "setup.py").write_text("changed")
    (python / "a new.py").touch()
    assert [Path(name).name for name in made.changes] == ["setup.py", "a new.py"]
    assert made.commit.endswith("+")


def test_a_file_that_keeps_the_wheelhouse_in_git_is_no_change(repository: Path) -> None:
    (repository / "python/wheelhouse").mkdir()
    (repository / "python/wheelhouse/.gitkeep").touch()
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "first")
    assert not project.load(repository / "python", "theirs").commit.endswith("+")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_clone_of_another_user_is_told_apart_from_no_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")  # some settings call every folder safe
    os.chown(repository / ".git", 65534, 65534)
    os.chown(repository, 65534, 65534)
    with pytest.raises(Problem, match=r"belongs to another user.*--add safe\.directory"):
        project.load(repository, "theirs").files()


def test_a_requirement_that_pip_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "t"\ndependencies = ["a b"]\n')
    with pytest.raises(Problem, match="has the requirement `a b`, which pip cannot read"):
        project.load(tmp_path)
