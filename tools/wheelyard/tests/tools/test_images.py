"""Tests images: the base is chosen with a reason, tags follow the contents, settings stay out of the image, and the
packages in it are listed by what they are."""

import dataclasses
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import image
from wheelyard.tools import host_settings, images


def foreign(plan: Plan) -> str:
    return next(arch for arch in plan.matrix.arch if arch != plan.machine)


def test_pypa_images_are_pinned_by_digest(plan: Plan) -> None:
    for arch in plan.matrix.arch:
        reference = images.pypa_reference("manylinux_2_28", arch)
        assert f"manylinux_2_28_{arch}@sha256:" in reference


def test_cross_builds_choose_debian_and_say_why(plan: Plan) -> None:
    base, why = images.choose_base(plan.asked(base="auto"), foreign(plan))
    assert (base, why) == ("debian", f"cross build on {plan.machine}")


def test_without_a_registry_native_builds_choose_debian(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    images._registry_answers.cache_clear()
    base, why = images.choose_base(plan.asked(base="auto"), plan.machine)
    assert base == "debian"
    assert "does not answer" in why


def test_a_base_can_be_forced(plan: Plan) -> None:
    forced = plan.asked(base="pypa")
    assert images.choose_base(forced, plan.machine) == ("pypa", "as asked")
    with pytest.raises(Problem, match="use --base debian"):
        images.choose_base(forced, foreign(plan))


def test_a_tag_follows_what_the_image_is_made_from(plan: Plan) -> None:
    ours = plan.asked(base="debian")
    made = images.for_build(ours, plan.wheels[0])
    assert made["tag"] == images.for_build(ours, plan.wheels[1])["tag"]
    newer = dataclasses.replace(plan.matrix.torch["2.10"], release="2.10.9")
    other = ours.edited(torch={**plan.matrix.torch, "2.10": newer})
    with pytest.raises(Problem, match=r"ci/torch\.lock has no torch 2\.10\.9"):
        images.for_build(other, plan.wheels[0])
    unpinned = dataclasses.replace(other, torch_pins={})
    assert images.for_build(unpinned, plan.wheels[0])["tag"] != made["tag"]


def test_torch_and_all_that_it_needs_are_installed_by_their_hashes(plan: Plan) -> None:
    verified = images.for_verify(plan, plan.matrix.verify.run[0], plan.machine)
    lines = verified["arguments"]["TORCH_REQUIREMENTS"].splitlines()
    assert lines[0].startswith("torch==2.10.0 --hash=sha256:")
    assert any(line.startswith("sympy==") for line in lines)
    assert all("--hash=sha256:" in line for line in lines)
    built = images.for_build(plan, plan.wheels[0])
    assert built["arguments"]["TORCH_REQUIREMENTS"] == lines[0], "its headers are all that is used"


@pytest.mark.parametrize("strategy", ["universal", "each"])
def test_torch_comes_without_its_dependencies_where_the_build_does_not_import_it(
    plan: Plan, strategy: str
) -> None:
    ours = plan.asked(base="debian", strategy=strategy)
    for wanted, options in ((True, None), (False, "--no-deps")):
        said = ours.edited(build={"torch_dependencies": wanted})
        assert images.for_build(said, said.wheels[0])["arguments"].get("TORCH_OPTIONS") == options


def test_a_python_that_the_base_lacks_is_named(plan: Plan) -> None:
    without = plan.asked(base="debian").edited(python={"debian": {}}, build={"python": "3.12"})
    with pytest.raises(Problem, match=r"base debian has no Python 3\.12: name its suite"):
        images.for_build(without, plan.wheels[0])


def test_the_hosts_pip_settings_reach_a_build_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("a certificate\n")
    monkeypatch.setenv("PIP_CERT", str(bundle))
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1/simple")
    files = host_settings.files(tmp_path)
    assert "cert = /run/secrets/ca" in files["pip"].read_text()
    assert "index-url = http://user:secret@127.0.0.1/simple" in files["pip"].read_text()
    assert files["ca"].read_text() == "a certificate\n"
    assert 'index-url = "http://user:secret@127.0.0.1/simple"' in files["uv"].read_text()


def test_uv_takes_a_name_from_the_first_index_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1/one http://127.0.0.1/two")
    settings = tomllib.loads(host_settings.files(tmp_path)["uv"].read_text())
    assert settings["extra-index-url"] == ["http://127.0.0.1/one", "http://127.0.0.1/two"]
    assert "index-strategy" not in settings


def test_lines_that_move_between_scripts_make_another_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(images.FOLDER, tmp_path / "docker")
    monkeypatch.setattr(images, "FOLDER", tmp_path / "docker")
    images._files_digest.cache_clear()
    before = images._files_digest("build")
    first, second = (tmp_path / "docker" / name for name in ("python.sh", "install.sh"))
    whole = first.read_text() + second.read_text()
    first.write_text(whole[:-20])
    second.write_text(whole[-20:])
    images._files_digest.cache_clear()
    after = images._files_digest("build")
    images._files_digest.cache_clear()
    assert before != after


def test_a_python_package_with_other_files_is_another(tmp_path: Path) -> None:
    """The version is the same. Files that an installer adds make no difference."""
    info = tmp_path / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (tmp_path / "demo.py").touch()  # later Pythons list only files that exist

    def listed(record: str) -> str:
        (info / "RECORD").write_text(record)
        program = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n{image.LIST}"
        shown = subprocess.run(
            [sys.executable, "-I", "-c", f"import sys; sys.path.append({str(tmp_path)!r})\n{program}"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        (word,) = [word for word in shown.split() if word.startswith("demo==1.0@")]
        return word

    plain = listed("demo.py,sha256=abc,1\n")
    assert listed("demo.py,sha256=abd,1\n") != plain
    by_another = (
        "demo.py,sha256=abc,1\ndemo-1.0.dist-info/INSTALLER,sha256=x,3\n../../bin/demo,sha256=y,3\n"
    )
    assert listed(by_another) == plain
