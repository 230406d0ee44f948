"""Rehearses the workflow of a project with a wheel for every cell, as `wheelyard init` writes it."""

import pytest
from demo_project import copy_of_demo
from rehearsal import Rehearsal, run_whole, with_our_tools, workflows_of_init
from repository import git, real_release
from wheelyard.core.digest import sha256

pytestmark = real_release(large=True)
# Two torches and two Pythons, each pair with a cell, as pip installs a wheel only beside the torch that it requires.
EACH = {
    'default = "universal"': 'default = "each"',
    'versions = ["3.11", "3.12"]': 'versions = ["3.11", "3.13"]',
    '[torch."2.10"]\ncuda = ["cpu"]\npypi = { x86_64 = "cpu", aarch64 = "cpu" }': """[torch."2.12"]
cuda = ["cpu"]

[torch."2.15"]
cuda = ["cpu"]""",
    'run = [{ torch = "2.10", python = "3.11" }]': """run = [
  { torch = "2.12", python = "3.11" },
  { torch = "2.12", python = "3.13" },
  { torch = "2.15", python = "3.11" },
  { torch = "2.15", python = "3.13" },
]""",
}


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """Runs the workflow that `wheelyard init` writes, on the demo project with four cells, each with a wheel of its
    own."""
    folder = tmp_path_factory.mktemp("each")
    workflows = workflows_of_init(folder)
    origin = copy_of_demo(folder / "origin")
    matrix = origin / "ci/matrix.toml"
    text = matrix.read_text()
    for old, new in EACH.items():
        assert old in text
        text = text.replace(old, new)
    matrix.write_text(text)
    with (origin / ".gitignore").open("a") as ignored:
        ignored.write("/.venv\n")
    git(origin, "commit", "--all", "--message", "Make a wheel for each cell")
    git(origin, "tag", "v1.0")
    github = {"GH_FOLDER": str(folder / "github")}
    return run_whole(with_our_tools(Rehearsal(origin, "v1.0", folder, github, workflows)))


def test_each_cell_has_its_own_wheel_and_job(each: Rehearsal) -> None:
    names = sorted(path.name for path in each.artifacts.glob("build-*/*.whl"))
    starts = [name.partition("-manylinux")[0] for name in names]
    assert starts == [
        f"demo_ext-1.0+cputorch{torch}-{tag}-{tag}"
        for torch in ("2.12", "2.15")
        for tag in ("cp311", "cp313")
    ]
    builds = [
        artifact for artifact in each.artifacts.iterdir() if artifact.name.startswith("build-")
    ]
    assert len(builds) == 4


def test_the_index_is_a_folder_for_any_web_server(each: Rehearsal) -> None:
    folder = each.artifacts / "index"
    pages = [file.read_text() for file in (folder / "simple").rglob("index.html")]
    for wheel in folder.glob("*.whl"):
        assert any(
            f"{wheel.name.replace('+', '%2B')}#sha256={sha256(wheel)}" in page for page in pages
        )
    assert "Not published yet" in (folder / "report.html").read_text()


def test_a_version_tag_puts_the_wheels_on_its_release_page(each: Rehearsal) -> None:
    there = {file.name: sha256(file) for file in (each.folder / "github").iterdir()}
    wheels = list(each.artifacts.glob("build-*/*.whl"))
    assert {wheel.name: sha256(wheel) for wheel in wheels}.items() <= there.items()
    assert {"SHA256SUMS", "report.html", "release.json", "demo_ext-1.0.tar.gz"} <= there.keys()
    assert list(each.printed)[-1] == "page"
