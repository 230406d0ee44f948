"""Tests the table of a torch release that pip knows and wheelyard does not."""

import os
import tomllib
from typing import Any

import pytest
from wheelyard import torch_table
from wheelyard.config.matrix import KNOWN
from wheelyard.problem import Problem


@pytest.mark.skipif(
    "ONLINE" not in os.environ,
    reason="pip may download two wheels of torch for their metadata; ONLINE=1 runs it",
)
def test_it_is_what_wheelyard_knows_of_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "2.10"
    monkeypatch.setattr(torch_table, "PYTHONS", ["3.9", "3.10", "3.12t", "3.14t"])
    printed: dict[str, Any] = tomllib.loads(torch_table.table(version))["torch"][version]
    known = tomllib.loads(KNOWN.read_text())["torch"][version]
    assert set(printed.pop("cuda")) <= set(known.pop("cuda"))
    assert printed.pop("pythons") == ["3.10", "3.14t"]
    assert {**printed, "pythons": known["pythons"]} == known


def test_a_version_that_nobody_has_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_table, "PYTHONS", ["3.12"])
    with pytest.raises(Problem, match=r"pip finds no wheel of torch 99\.0"):
        torch_table.table("99.0")


@pytest.mark.parametrize("version", ["2.16.1", "x"])
def test_a_version_of_another_form_is_refused_without_asking_pip(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(torch_table, "PYTHONS", [])
    with pytest.raises(Problem, match="write it like 2"):
        torch_table.table(version)


def test_an_index_that_does_not_answer_is_not_an_empty_one() -> None:
    with pytest.raises(Problem, match="pip cannot list the releases of torch"):
        torch_table.versions("3.12", "x86_64", "--index-url=http://127.0.0.1:9/", "--retries=1")
