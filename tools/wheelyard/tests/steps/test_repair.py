"""Repair: what is done to a wheel after auditwheel gives the same bytes whenever it is done."""

import zipfile
from pathlib import Path
from types import SimpleNamespace

from demo_wheel import make_wheel
from wheelyard.steps import repair


def test_a_wheel_for_one_python_has_the_time_that_the_matrix_names(tmp_path: Path) -> None:
    epoch = 1580601600  # 2020-02-02
    (tmp_path / "log").touch()
    workspace = SimpleNamespace(inputs={"python": "cp313", "epoch": epoch}, log=tmp_path / "log")
    bound = repair._bind_to_python(make_wheel(tmp_path / "repaired"), workspace)  # type: ignore[arg-type]
    assert bound.name == "demo_ext-1.0-cp313-cp313-any.whl"
    with zipfile.ZipFile(bound) as archive:
        assert {member.date_time[:3] for member in archive.infolist()} == {(2020, 2, 2)}
