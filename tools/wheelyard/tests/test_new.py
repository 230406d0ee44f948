"""Tests `wheelyard new` and `update`: what they write, refuse and merge."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from repository import git
from wheelyard import new
from wheelyard.problem import Problem


def commit(folder: Path, *words: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Mine", *words)


def newer_template(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Pretends that a later wheelyard is installed, whose README.md and RELEASE.md have other words."""
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


# This repository's ops, and words that only its own figures have.
OURS = r"cuda-ext-example|cust_add|my_(fast_)?add|rms_norm|H[12]00|TB/s|GB/s"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Makes a folder with wheels of the three tools, and of an older opwright."""
    folder = tmp_path / "the wheels"
    folder.mkdir()
    any_cpu, one_cpu = "py3-none-any", "py3-none-manylinux_2_17_"
    version = new.__version__
    for name in (
        *(f"opwright-{version}-{any_cpu}", f"opwright-0.0.1-{any_cpu}", f"wheelyard-{version}-{any_cpu}"),
        *(f"wheelscope-{version}-{one_cpu}{cpu}" for cpu in ("x86_64", "aarch64")),
    ):  # fmt: skip
        (folder / f"{name}.whl").write_bytes(name.encode())
    return folder


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
        assert not re.search(OURS, text), name
    assert "--find-links" not in texts["ci/tools.txt"].split("\n", 2)[2]
    assert git(tmp_path / "fast norms", "status", "--porcelain") == ""


def test_an_index_of_the_tools_is_named_once(tmp_path: Path):
    index = "http://127.0.0.1:1/simple"
    new.new("my-ext", tmp_path / "my-ext", index)
    listed = (tmp_path / "my-ext/ci/tools.txt").read_text().splitlines()
    assert f"--extra-index-url {index}" in listed
    assert git(tmp_path / "my-ext", "grep", "-lF", index).split() == [
        "ci/template.toml",
        "ci/tools.txt",
    ]


def test_wheels_from_a_folder_are_in_every_clone(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    new.new("my-ext", tmp_path / "my ext", tools.name)
    git(tmp_path, "clone", "--quiet", "my ext", "clone")
    shutil.rmtree(tools)
    clone = tmp_path / "clone"
    assert "--find-links wheels" in (clone / "ci/tools.txt").read_text().splitlines()
    copied = {wheel.name.split("-")[0]: wheel for wheel in (clone / "ci/wheels").iterdir()}
    assert sorted(copied) == ["opwright", "wheelscope", "wheelyard"]
    assert f"-{new.__version__}-".encode() in copied["opwright"].read_bytes()
    assert len(list((clone / "ci/wheels").iterdir())) == 4  # wheelscope has one for each CPU
    assert len(git(clone, "ls-files").splitlines()) - 4 <= 22
    assert str(tmp_path) not in git(clone, "grep", "-hI", "")


def test_an_update_leaves_the_wheels_alone(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    new.new("my-ext", tmp_path / "project", str(tools))
    newer_template(monkeypatch, README="newer\n")
    new.update(tmp_path / "project")
    assert (tmp_path / "project/README.md").read_text() == "newer\n"
    assert len(list((tmp_path / "project/ci/wheels").iterdir())) == 4
    assert "--find-links wheels" in (tmp_path / "project/ci/tools.txt").read_text()


def test_a_folder_without_the_tools(tmp_path: Path, tools: Path):
    for wheel in tools.glob("opwright-0.1*"):
        wheel.unlink()
    with pytest.raises(Problem, match=f"no wheel of opwright {new.__version__}"):
        new.new("my-ext", tmp_path / "project", str(tools))
    with pytest.raises(Problem, match="neither a folder nor an index's address"):
        new.new("my-ext", tmp_path / "project", str(tmp_path / "nowhere"))
    assert not (tmp_path / "project").exists()


def test_the_template_requires_the_tools_of_this_version():
    files = new.rendered("my-ext", "")
    for tool in ("opwright", "wheelyard", "wheelscope"):
        assert f"{tool}=={new.__version__}" in files["ci/tools.txt"].decode().splitlines()
    assert f'"opwright=={new.__version__}"' in files["pyproject.toml"].decode()


def test_the_environment_is_made_anew_where_the_project_has_moved(tmp_path: Path):
    new.new("my-ext", tmp_path / "here")
    make_venv = [sys.executable, "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(make_venv, cwd=tmp_path / "here", check=True)
    (tmp_path / "here/.venv/building").touch()
    check = ["make", "--dry-run", "check"]
    for place, is_new in (("here", False), ("over there", True)):
        (tmp_path / "here").rename(tmp_path / place)
        said = subprocess.check_output(check, cwd=tmp_path / place, text=True)
        assert ("python3 -m venv --clear .venv" in said) == is_new
        (tmp_path / place).rename(tmp_path / "here")


@pytest.mark.parametrize(
    "name", ["class", "tests", "json", "Torch", "ci", "test", "NumPy", "aten", "cuda-kernels"]
)
def test_a_name_that_means_something_else(tmp_path: Path, name: str):
    with pytest.raises(Problem, match="would be confused with something else"):
        new.new(name, tmp_path / "folder")


@pytest.mark.parametrize("name", ["", "1st", "my ext", "-x", "my-", "../x", "naïve"])
def test_a_name_that_is_none(tmp_path: Path, name: str):
    with pytest.raises(Problem, match="is not a valid name for a project"):
        new.new(name, tmp_path / "folder")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    for place in (tmp_path, tmp_path / "mine"):
        with pytest.raises(Problem, match="is not empty"):
            new.new("my-ext", place)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Problem, match="Not a directory; give another folder"):
        new.new("my-ext", tmp_path / "file/project")
    with pytest.raises(Problem, match="File name too long; give another folder"):
        new.new("my-ext", tmp_path / ("x" * 300))


@pytest.mark.parametrize("existed", [True, False])
def test_a_project_that_could_not_be_committed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existed: bool
):
    folder = tmp_path / "project"
    if existed:
        folder.mkdir()
    monkeypatch.setenv("GIT_COMMITTER_DATE", "no date")
    with pytest.raises(Problem, match=r"git failed: .*no date"):
        new.new("my-ext", folder)
    assert folder.exists() == existed
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    new.new("my-ext", folder)


def test_the_users_settings_of_git_change_nothing(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ignored files, hooks that refuse, signatures without a key, a name without an address, another repository."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "commit-msg").write_text("#!/bin/sh\necho no ticket >&2; exit 1\n")
    (hooks / "commit-msg").chmod(0o755)
    (tmp_path / "ignored").write_text("wheels/\n*.toml\n")
    (tmp_path / "config").write_text(
        f"[core]\nhooksPath = {hooks}\nexcludesFile = {tmp_path / 'ignored'}\n[commit]\ngpgSign = true\n"
        "[user]\nname = Me\nuseConfigOnly = true\n[gpg]\nprogram = /bin/false\n"
    )
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    new.new("my-ext", tmp_path / "project", str(tools))
    monkeypatch.undo()
    assert len(git(tmp_path / "project", "ls-files", "ci/wheels").splitlines()) == 4
    assert git(tmp_path / "project", "ls-files", "--others") == ""
    assert git(tmp_path / "project", "log", "-1", "--format=%an %ae") == "Me wheelyard@localhost"
    assert git(other, "rev-list", "--all") == ""


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
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1


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
    commit(tmp_path, "--amend")
    newer_template(monkeypatch, README="newer\n")
    with pytest.raises(Problem, match="nothing to merge from"):
        new.update(tmp_path)


def test_beside_an_identity_its_workflows_install_nothing_without_a_hash() -> None:
    written = new.rendered("my-ext", "")
    jobs = [
        job
        for path, text in written.items()
        if path.startswith(".github/workflows/")
        for job in yaml.safe_load(text)["jobs"].values()
        if "write" in job["permissions"].values()
    ]
    assert jobs
    for line in (
        line for job in jobs for s in job["steps"] for line in s.get("run", "").split("\n")
    ):
        assert "pip install" not in line or "--require-hashes" in line, line
