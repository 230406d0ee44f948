"""Tests what setup.py makes of an OpExtension, without compiling anything."""

import tarfile
from pathlib import Path

from clone import make_clone, python


def test_an_sdist_has_every_source_and_nothing_that_was_built(tmp_path: Path):
    clone = make_clone(tmp_path / "my clone")
    (clone / "csrc/deep er").mkdir()
    (clone / "csrc/deep er/table.inc").write_text("1, 2, 3\n")
    (clone / "csrc/left.o").write_bytes(b"")
    (clone / "csrc/.ipynb_checkpoints").mkdir()
    (clone / "csrc/.ipynb_checkpoints/scale_add-checkpoint.h").write_text("// a copy of Jupyter's")
    done = python(clone, "setup.py", "--quiet", "sdist")
    assert done.returncode == 0, done.stderr
    with tarfile.open(next((clone / "dist").glob("*.tar.gz"))) as sdist:
        packed = {name.split("/", 1)[1] for name in sdist.getnames() if "/csrc/" in name}
    here = {str(f.relative_to(clone)) for f in (clone / "csrc").rglob("*") if f.suffix != ".o"}
    here = {name for name in here if "/." not in name}
    assert packed - {"csrc/deep er"} == here - {"csrc/deep er"}
