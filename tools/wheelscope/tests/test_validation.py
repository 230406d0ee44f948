"""What validation/ compares with: the committed tables agree with their sources as of today and with
each other, the cases of the replay are complete, and on real wheels wheelscope agrees with the
reference tools."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from program import ROOT, Scope, valid
from torch_abi_audit.torch_versions import stable_shim_versions

from validation import tables
from validation.corpus import compare
from validation.corpus.download import Wheel, pip_options, read_list
from validation.corpus.outcome import explanations
from validation.replay.cases import Case, load_cases, load_environments, load_mixtures, machine

# --- Tables -----------------------------------------------------------------------------------------
DATA = ROOT / "src/data"


def test_policies_are_those_of_the_installed_auditwheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(tables, "DATA", tmp_path)
    tables.write_manylinux([])
    assert (tmp_path / "manylinux.csv").read_text() == (DATA / "manylinux.csv").read_text()


def test_torch_functions_agree_with_torch_abi_audit() -> None:
    """Ours are read from torch's binaries, theirs from its sources."""
    ours = {name: version for name, version, _ in tables.read_csv("torch_shims.csv")}
    theirs = {name: f"{v[0]}.{v[1]}" for name, v in stable_shim_versions().items()}
    both = ours.keys() & theirs.keys()
    assert len(both) > 500
    assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}


def test_runtimes_are_in_order_and_each_has_markers() -> None:
    minors = json.loads((DATA / "cudart.json").read_text())["minors"]
    versions = [tables.by_version(minor["version"]) for minor in minors]
    assert versions == sorted(versions)
    markers = [marker for minor in minors for marker in minor["markers"]]
    assert all(minor["markers"] for minor in minors)
    assert len(markers) == len(set(markers))


def test_drivers_and_gpus_hold_together() -> None:
    table = tomllib.loads((DATA / "cuda.toml").read_text())
    toolkits = table["toolkits"]
    for fact in ("driver", "ptx"):
        column = [tables.by_version(entry[fact]) for entry in toolkits.values()]
        assert column == sorted(column), f"a newer toolkit has an older {fact}"
    for major, driver in table["drivers"].items():
        first = tables.by_version(toolkits[f"{major}.0"]["driver"])
        assert tables.by_version(driver)[0] == first[0], (
            f"CUDA {major} starts with its first driver"
        )
    capabilities = [tables.by_version(gpu["capability"]) for gpu in table["gpu"]]
    assert capabilities == sorted(capabilities)
    assert {"name", "family", "toolkit"} <= set.intersection(*(set(gpu) for gpu in table["gpu"]))


# --- The replay -------------------------------------------------------------------------------------
CASES = load_cases()
MIXTURES = load_mixtures()
ENVIRONMENTS = load_environments()


def test_a_failure_has_a_report_and_a_success_has_none() -> None:
    for case in CASES:
        works = case.happened == "works"
        assert case.kind.startswith("healthy") == works == (case.report is None), case


def test_what_cannot_be_made_here_is_a_machine_of_a_report() -> None:
    for case in CASES:
        assert (ENVIRONMENTS[case.environment].suite is None) == (case.happened == "reported"), case


def test_no_case_stands_twice() -> None:
    def identity(case: Case) -> tuple[str, str, str | None]:
        return case.wheel, case.environment, case.python

    assert len(set(map(identity, CASES))) == len(CASES)
    assert len({(one.environment, one.what) for one in MIXTURES}) == len(MIXTURES)
    reports = [one.report for one in (*CASES, *MIXTURES) if one.report]
    assert all(report.startswith("https://github.com/") for report in reports)


def test_a_mixture_was_asked() -> None:
    for mixture in MIXTURES:
        assert mixture.verdict in ("works", "depends", "fails"), mixture
        assert mixture.install or mixture.uninstall or mixture.path, mixture


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_machine_is_one_that_wheelscope_reads(name: str) -> None:
    environment = ENVIRONMENTS[name]
    document = valid(machine(environment))
    tags = document["machine"]["python"]["tags"]
    abi = "cp" + "".join(environment.python.split(".")[:2])
    glibc = int(environment.glibc.removeprefix("2."))
    assert tags[0] == f"{abi}-{abi}-linux_x86_64"
    assert f"{abi}-{abi}-manylinux_2_{glibc}_x86_64" in tags
    assert f"{abi}-{abi}-manylinux_2_{glibc + 1}_x86_64" not in tags
    assert "py3-none-any" in tags


# --- Real wheels ------------------------------------------------------------------------------------
FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
WHEELS = read_list()

# Wheels with a static CUDA runtime, and the toolkit that cuobjdump finds recorded in their cubins
# (`cuobjdump -elf`, toolkit=) or, for NVIDIA's own libraries, the CUDA release they belong to.
TOOLKITS = {
    "catboost-1.2.10": "11.8",
    "cupy_cuda12x-14.2.0": "12.9",
    "cupy_cuda13x-14.2.0-cp311": "13.2",
    "nvidia_cufft-12.4.0.43": "13.4",
    "nvidia_curand_cu12-10.3.10.19": "12.9",
    "nvidia_nvshmem_cu12-3.8.0": "12.9",
    "warp_lang-1.19.0": "13.4",
    "xgboost-3.2.0": "12.9",
}


def corpus(pattern: str) -> Path:
    for path in FOLDER.glob(pattern):
        return path
    pytest.skip("the corpus is not downloaded; run `make corpus`")


@pytest.fixture(params=WHEELS, ids=[wheel.file_name for wheel in WHEELS])
def wheel(request: pytest.FixtureRequest) -> Path:
    listed: Wheel = request.param
    return corpus(listed.file_name)


def test_list_is_large_and_says_why() -> None:
    assert len({wheel.sha256 for wheel in WHEELS}) == len(WHEELS) >= 200
    assert all(wheel.purpose and len(wheel.sha256) == 64 for wheel in WHEELS)


def test_pip_is_told_the_whole_tag() -> None:
    name = "x-1.0-22-cp315-abi3.abi3t-manylinux_2_5_i686.manylinux1_i686.whl"
    requirement, options = pip_options(name)
    assert requirement == "x==1.0"
    assert {"--platform=manylinux_2_5_i686", "--platform=manylinux1_i686"} < set(options)
    assert {"--abi=abi3", "--abi=abi3t", "--implementation=cp"} < set(options)
    assert "--python-version=315" in options
    assert "--implementation=graalpy" in pip_options("x-1-graalpy312-graalpy250-any.whl")[1]


def test_says_what_the_tools_say(scope: Scope, wheel: Path) -> None:
    scope("show", wheel, code=None)
    known = explanations()
    found = compare.compared(wheel).differences
    assert not [one for one in found if not any(entry.covers(one) for entry in known)]


@pytest.mark.parametrize(("start", "toolkit"), TOOLKITS.items())
def test_version_of_a_static_runtime(scope: Scope, start: str, toolkit: str) -> None:
    (item,) = scope("show", corpus(f"{start}-*.whl"), code=None)["items"]
    assert item["cuda"]["runtime"] == "static"
    assert item["cuda"]["runtime_version"] == toolkit
    assert any("returns CUDA" in sentence for sentence in item["cuda"]["evidence"])


def test_an_extension_does_not_link_against_another_torch(scope: Scope) -> None:
    tag = "cp311-cp311-manylinux_2_28_aarch64"
    vision = corpus(f"torchvision-0.24.0-{tag}.whl")  # built on torch/extension.h for torch 2.9
    report = scope("link", vision, corpus(f"torch-2.15.0-{tag}.whl"), code=1)["link"]
    missing = {symbol["demangled"]: symbol["expected_in"] for symbol in report["missing"]}
    assert missing["torch::autograd::deleteNode(torch::autograd::Node*)"] == "libtorch_cpu.so"
