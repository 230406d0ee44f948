"""Tests `wheelyard new` and `update`: what they write, refuse and merge."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import git, program, wheelyard
from wheelyard import new
from wheelyard.problem import Problem


def commit(folder: Path, *words: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Mine", *words)


def newer_template(monkeypatch: pytest.MonkeyPatch, folder: Path, **changed: str) -> None:
    """Installs, so to speak, a later wheelyard, in whose template README.md, say, has other words."""
    shutil.copytree(new.TEMPLATE, folder)
    for stem, text in changed.items():
        (folder / f"{stem}.md").write_text(text)
    monkeypatch.setattr(new, "TEMPLATE", folder)
    monkeypatch.setattr(new, "__version__", f"9{new.__version__}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Makes a project from this wheelyard's template."""
    folder = tmp_path / "project"
    new.new("my-ext", folder)
    return folder


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


@pytest.mark.parametrize("index", ["http://127.0.0.1:1/simple", "https://me:${TOKEN}@x.org/s"])
def test_an_index_of_the_tools_is_named(tmp_path: Path, index: str):
    new.new("my-ext", tmp_path / "my-ext", index)
    listed = (tmp_path / "my-ext/ci/tools.txt").read_text().splitlines()
    assert f"--extra-index-url {index}" in listed
    assert git(tmp_path / "my-ext", "grep", "-lF", index).split() == [
        "README.md",
        "ci/template.toml",
        "ci/tools.txt",
    ]


@pytest.mark.parametrize(
    "index", ["https://example.org/a b", "https://x?y&z", 'https://x"', "https://$(id)/"]
)
def test_an_address_that_is_none(tmp_path: Path, index: str):
    with pytest.raises(Problem, match="is not an index's address"):
        new.new("my-ext", tmp_path / "my-ext", index)
    assert not (tmp_path / "my-ext").exists()


def test_the_files_are_as_private_as_the_user_wants(tmp_path: Path):
    old = os.umask(0o077)
    try:
        done = wheelyard(tmp_path, "new", "my-ext")
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "my-ext").stat().st_mode & 0o077 == 0


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
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
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
    ("name", "meaning"),
    [
        ("class", "a keyword of Python"),
        ("json", "a module of Python's own library"),
        ("telnetlib", "a module of Python's own library"),  # of 3.12 and before
        ("tests", "a folder of the project"),
        ("NumPy", "a package that the project needs"),
        ("Jinja2", "a package that the project needs"),
        ("higher-order", "part of torch.ops"),
        ("cuda-kernels", "a target of its build"),
        ("requirements.txt", "a name that PyPI refuses"),
    ],
)
def test_a_name_that_means_something_else(tmp_path: Path, name: str, meaning: str):
    with pytest.raises(Problem, match=rf"would be confused .* is {meaning}; choose another name"):
        new.new(name, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "name", ["", "1st", "my ext", "-x", "my-", "../x", "naïve", "_x", "x" * 65]
)
def test_a_name_that_is_none(tmp_path: Path, name: str):
    with pytest.raises(Problem, match="is not a valid name for a project"):
        new.new(name, tmp_path / "folder")


@pytest.mark.parametrize("character", new.UNUSABLE)
def test_a_path_that_the_build_cannot_carry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, character: str
):
    above = tmp_path / f"a{character}b"
    above.mkdir()
    monkeypatch.chdir(above)
    with pytest.raises(Problem, match="give another folder"):
        new.new("my-ext", Path("project"))
    assert list(above.iterdir()) == []


def test_a_path_that_the_terminal_cannot_print(tmp_path: Path):
    done = wheelyard(tmp_path, "new", "my-ext", "Übung", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("\\xdcbung: 22 files, committed")


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


def test_update_keeps_both_sides(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "csrc/scale_add.h").unlink()
    (project / "csrc/mine.h").write_text("// mine\n")
    (project / "RELEASE.md").write_text("mine\n")
    commit(project)
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    new.update(project)
    assert (project / "README.md").read_text() == "newer\n"
    assert (project / "RELEASE.md").read_text() == "mine\n"
    assert (project / "csrc/mine.h").exists()
    assert not (project / "csrc/scale_add.h").exists()
    assert "has the template" in new.update(project)
    newer_template(monkeypatch, tmp_path / "newest", README="newest\n")
    new.update(project)  # the second update starts from the first
    assert (project / "README.md").read_text() == "newest\n"
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_a_conflict_is_gits_own(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "README.md").write_text("mine\n")
    commit(project)
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    with pytest.raises(Problem, match=r"(?s)CONFLICT.*README.md.*git merge --abort"):
        new.update(project)
    with pytest.raises(Problem, match="not committed"):
        new.update(project)
    git(project, "merge", "--abort")
    assert (project / "README.md").read_text() == "mine\n"


def test_an_update_from_a_folder_of_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    new.update(project / "csrc")
    assert (project / "README.md").read_text() == "newer\n"
    with pytest.raises(Problem, match="did not write this project"):
        new.update(tmp_path)


def test_a_file_that_git_does_not_show_is_in_the_way(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git(project, "config", "status.showUntrackedFiles", "no")
    (project / "NEWS.md").write_text("mine\n")
    newer_template(monkeypatch, tmp_path / "newer", NEWS="newer\n")
    head = git(project, "rev-parse", "HEAD")
    with pytest.raises(
        Problem, match=r"(?s)git refuses.*untracked.*overwritten by merge:\s*NEWS.md"
    ):
        new.update(project)
    assert (project / "NEWS.md").read_text() == "mine\n"
    assert git(project, "rev-parse", "HEAD") == head
    assert not (project / ".git/MERGE_HEAD").exists()


def test_a_merge_that_a_hook_refuses_is_taken_back(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program(project / ".git/hooks", "commit-msg", "echo no ticket >&2; exit 1")
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    with pytest.raises(Problem, match=r"(?s)the project is as it was; git says:.*no ticket"):
        new.update(project)
    assert git(project, "status", "--porcelain") == ""
    assert not (project / ".git/MERGE_HEAD").exists()


def test_a_merge_that_has_begun_is_left_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git(project, "branch", "other")
    git(project, "commit", "--allow-empty", "--message", "Mine")
    git(project, "checkout", "--quiet", "other")
    git(project, "commit", "--allow-empty", "--message", "Another")
    git(project, "merge", "--no-commit", "main")
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    with pytest.raises(Problem, match="another merge has begun"):
        new.update(project)
    assert (project / ".git/MERGE_HEAD").exists()


@pytest.mark.parametrize(
    ("old", "edited"),
    [
        ('name = "my-ext"', 'name = "other"'),
        ('tools = ""', 'tools = "wheels"'),
        (f'wheelyard = "{new.__version__}"', 'wheelyard = "0.0.9"'),
        ('digest = "', 'digest = "0'),
        ('name = "', "name = 1 # "),
        ("name", "= name"),
    ],
)
def test_a_marker_that_was_edited(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, edited: str
):
    marker = project / new.MARKER
    written = marker.read_text()
    assert old in written
    marker.write_text(written.replace(old, edited, 1))
    commit(project)
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    with pytest.raises(
        Problem, match=r"was edited.*`git checkout \w+ ci/template.toml` brings it"
    ) as told:
        new.update(project)
    git(project, *str(told.value).split("`git ")[1].split("`")[0].split())
    assert marker.read_text() == written


def test_a_wheelyard_older_than_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as later:
        newer_template(later, tmp_path / "newer", README="newer\n")
        new.update(project)
    with pytest.raises(Problem, match=f"this wheelyard is older: {new.__version__}; install"):
        new.update(project)
    assert (project / "README.md").read_text() == "newer\n"


@pytest.mark.parametrize(
    ("tools", "command"),
    [
        ("", "`pip install .`"),
        ("wheels", "`PIP_FIND_LINKS=ci/wheels pip install .`"),
        ("https://example.org/s", "`PIP_EXTRA_INDEX_URL=https://example.org/s pip install .`"),
    ],
)
def test_the_readme_says_how_pip_finds_what_the_build_needs(tools: str, command: str):
    assert command in new.rendered("my-ext", tools)["README.md"].decode()


def test_a_package_that_was_not_built_says_so(project: Path):
    for words in (["-c", "import my_ext"], ["-m", "my_ext"]):
        done = subprocess.run([sys.executable, *words], cwd=project, capture_output=True, text=True)
        assert done.returncode != 0
        assert done.stderr.splitlines()[-1] == (
            f"ImportError: the package in {project / 'my_ext'} has not been built: run `make check` in {project}, or "
            "leave that folder to import a package that is installed elsewhere"
        )
        assert "During handling" not in done.stderr


def test_a_squashed_history_has_nothing_to_merge_from(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "mine").write_text("mine")
    commit(project, "--amend")
    newer_template(monkeypatch, tmp_path / "newer", README="newer\n")
    with pytest.raises(Problem, match="nothing to merge from"):
        new.update(project)
