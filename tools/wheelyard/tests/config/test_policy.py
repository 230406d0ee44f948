"""Tests that ci/policy.toml is read strictly: a rule that no wheel or every wheel keeps is refused before a build."""

from pathlib import Path

import pytest
from repository import ROOT
from wheelyard.config import policy
from wheelyard.problem import Problem


def test_the_committed_file_is_sound() -> None:
    assert policy.load(ROOT / policy.FILE).platform.highest == "manylinux_2_28"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('[platform]\nhighest = "manylinux_2_x"', "2: platform.highest is `manylinux_2_x`; it looks like manyl"),
        ('[python]\nabi = ["none", "abi4"]', "2: python.abi is `abi4`; it is one of: none, abi3, abi3t, version"),
        ('[python]\n\nmin = "three"', "3: python.min is `three`; it looks like 3.10"),
        ('[torch]\nabi = ["c++"]', "2: torch.abi is `c++`; it is one of: none, stable, cxx"),
        ('[torch]\nmin = "2.x"', "2: torch.min is `2.x`; it looks like 2.10"),
        ('[cuda]\nruntime = ["shared"]', "2: cuda.runtime is `shared`; it is one of: none, static, dynamic"),
        ('[cuda]\nsass = ["80", "9.0"]', "2: cuda.sass is `9.0`; it looks like 90"),
        ('[cuda]\ndriver = "new"', "2: cuda.driver is `new`; it looks like 525.60.13"),
        ('[levels]\ntwine = "fatal"', "2: levels.twine is `fatal`; it is one of: error, warning, note, off"),
    ],
)  # fmt: skip
def test_a_bad_rule_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f"{line}\n")
    with pytest.raises(Problem) as caught:
        policy.load(file)
    assert str(caught.value).startswith(f"policy.toml:{message}")
