"""`wheelyard new` and `update`: what they write, refuse and merge."""

import subprocess
from pathlib import Path

import pytest
from wheelyard import new
from wheelyard.problem import Problem


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(
        folder,
        "-c",
        "user.name=me",
        "-c",
        "user.email=me@localhost",
        "commit",
        "--quiet",
        "--message",
        "Mine",
    )


def newer_template(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """A later wheelyard, whose README.md and RELEASE.md have other words."""
    written = new.rendered

    def rendered(name: str, tools: str) -> new.Files:
        files = written(name, tools)
        for path, text in changed.items():
            files[f"{path}.md"] = text.encode()
        files[new.MARKER] = files[new.MARKER].replace(b'wheelyard = "', b'wheelyard = "9')
        digest = new._digest({path: text for path, text in files.items() if path != new.MARKER})
        lines = files[new.MARKER].decode().splitlines()
        files[new.MARKER] = "\n".join([*lines[:-1], f'digest = "{digest}"', ""]).encode()
        return files

    monkeypatch.setattr(new, "rendered", rendered)


def test_a_new_project_is_small_and_has_no_word_of_ours(tmp_path: Path):
    new.new("Fast.Norms", tmp_path / "fast norms")
    listed = git(tmp_path / "fast norms", "ls-files", "-z").split("\0")[:-1]
    texts = {name: (tmp_path / "fast norms" / name).read_text() for name in listed}
    assert len(texts) <= 25
    assert sum(text.count("\n") for text in texts.values()) <= 1500
    assert "fast_norms/__init__.py" in texts
    assert 'name = "fast-norms"' in texts["pyproject.toml"]
    for name, text in texts.items():
        assert "my-ext" not in text
        assert "my_ext" not in text
        assert "cuda_ext_example" not in text or name == "LICENSE"
    assert "--find-links" not in texts["ci/tools.txt"].split("\n", 2)[2]
    assert git(tmp_path / "fast norms", "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("tools", "line"),
    [
        ("../wheels", "--find-links ../wheels"),
        ("http://127.0.0.1:1/simple", "--extra-index-url http://127.0.0.1:1/simple"),
    ],
)
def test_where_the_tools_come_from_is_said_once(tmp_path: Path, tools: str, line: str):
    new.new("my-ext", tmp_path / "my-ext", tools)
    assert line in (tmp_path / "my-ext/ci/tools.txt").read_text().splitlines()
    assert git(tmp_path / "my-ext", "grep", "-lF", tools).split() == [
        "ci/template.toml",
        "ci/tools.txt",
    ]


@pytest.mark.parametrize("name", ["", "1st", "my ext", "-x", "my-", "../x", "naïve"])
def test_a_name_that_is_none(tmp_path: Path, name: str):
    with pytest.raises(Problem, match="is no name for a project"):
        new.new(name, tmp_path / "folder")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(Problem, match="is not empty"):
        new.new("my-ext", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_update_keeps_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    new.new("my-ext", tmp_path)
    (tmp_path / "csrc/scale_add.h").unlink()
    (tmp_path / "csrc/mine.h").write_text("// mine\n")
    (tmp_path / "RELEASE.md").write_text("mine\n")
    commit(tmp_path)
    newer_template(monkeypatch, README="newer\n")
    new.update(tmp_path)
    assert (tmp_path / "README.md").read_text() == "newer\n"
    assert (tmp_path / "RELEASE.md").read_text() == "mine\n"
    assert (tmp_path / "csrc/mine.h").exists()
    assert not (tmp_path / "csrc/scale_add.h").exists()
    assert "has the template" in new.update(tmp_path)
    newer_template(monkeypatch, README="newest\n")
    new.update(tmp_path)  # the second update starts from the first
    assert (tmp_path / "README.md").read_text() == "newest\n"
    assert git(tmp_path, "worktree", "list").count("\n") == 1


def test_a_conflict_is_gits_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    new.new("my-ext", tmp_path)
    (tmp_path / "README.md").write_text("mine\n")
    commit(tmp_path)
    newer_template(monkeypatch, README="newer\n")
    with pytest.raises(Problem, match=r"(?s)CONFLICT.*README.md.*git merge --abort"):
        new.update(tmp_path)
    git(tmp_path, "merge", "--abort")
    assert (tmp_path / "README.md").read_text() == "mine\n"


def test_uncommitted_work_stops_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    new.new("my-ext", tmp_path)
    newer_template(monkeypatch, README="newer\n")
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(Problem, match="not committed"):
        new.update(tmp_path)


def test_a_squashed_history_has_nothing_to_merge_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    new.new("my-ext", tmp_path)
    (tmp_path / "mine").write_text("mine")
    git(tmp_path, "add", "--all")
    git(
        tmp_path,
        "-c",
        "user.name=me",
        "-c",
        "user.email=me@localhost",
        "commit",
        "--quiet",
        "--amend",
        "--message",
        "All",
    )
    newer_template(monkeypatch, README="newer\n")
    with pytest.raises(Problem, match="nothing to merge from"):
        new.update(tmp_path)
