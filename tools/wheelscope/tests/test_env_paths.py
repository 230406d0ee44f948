"""`wheelscope env` agrees with `import` on modules outside of site-packages: on PYTHONPATH, in
folders that .pth files name, and in the projects of editable installations."""

import os
import subprocess
from pathlib import Path

import pytest
from program import Scope, compiled, run, virtual_environment
from test_env import MODULE, env, install, site_of
from test_env_imports import BROKEN

# What setuptools writes for a project whose package does not lie in a folder of its own.
FINDER = """import sys
from importlib.util import spec_from_file_location
MAPPING: dict[str, str] = {{'package': '{source}/package'}}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return spec_from_file_location(name, MAPPING[name] + '/__init__.py')
def install():
    sys.meta_path.append(Finder)
"""

# scikit-build-core leaves the source in the project and installs what it compiled.
REDIRECTION = """import sys
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == 'package._C':
            return spec_from_file_location(name, '{site}/package/_C.so')
sys.meta_path.insert(0, Finder)
"""

# Files of site-packages.
EDITABLE = {
    "folder": {"__editable__.package-1.0.pth": "{source}\n"},
    "finder": {
        "__editable__.package-1.0.pth": "import __editable___finder; __editable___finder.install()",
        "__editable___finder.py": FINDER,
    },
    "redirection": {
        "_editable_skbc_package.pth": "import _editable_skbc_package\n{source}\n",
        "_editable_skbc_package.py": REDIRECTION,
    },
}

# A module that Python can import: its definition has a name, and -1 for a size.
SOUND = """
void *PyModule_Create2(void *, int);
static struct {
  long head[5];
  const char *name, *text;
  long size;
  void *rest[5];
} definition = {{1}, "_C", 0, -1};
void *PyInit__C(void) { return PyModule_Create2(&definition, 1013); }
"""

PACKAGES = {
    "sound": ("from . import _C", SOUND, True),
    "broken": ("from . import _C", BROKEN, False),
    "optional": ("try:\n    from . import _C\nexcept ImportError:\n    pass", BROKEN, True),
    "incomplete": ("import nobody_has_this", MODULE, False),
}


def imports(prefix: Path, name: str) -> bool:
    return not subprocess.run([prefix / "bin/python", "-c", f"import {name}"]).returncode


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("kind", EDITABLE)
def test_editable_installations(kind: str, package: str, scope: Scope, tmp_path: Path) -> None:
    text, module, works = PACKAGES[package]
    prefix = virtual_environment(tmp_path / "env")
    site, source = site_of(prefix), tmp_path / "a project"
    (source / "package").mkdir(parents=True)
    (source / "setup.py").write_text("import nobody_has_this")
    (source / "package/__init__.py").write_text(text)
    folder = site if kind == "redirection" else source
    compiled(folder / "package/_C.so", module, "-Wl,-z,now")
    install(prefix, "package")
    info = site / "package-1.0.dist-info"
    (info / "direct_url.json").write_text(
        '{"dir_info": {"editable": true}, "url": "file://' + str(source) + '"}'
    )
    with (info / "RECORD").open("a") as record:
        for name, content in EDITABLE[kind].items():
            (site / name).write_text(content.format(source=source, site=site))
            record.write(f"{name},,\n")
    assert imports(prefix, "package") == works
    found = env(scope, prefix)
    assert found["package"]["loads"] == ("yes" if works else "no")
    assert found["package"]["libraries"] == 1
    with (info / "RECORD").open("a") as record:
        record.write("lost.txt,,\n")
    assert f"pip install --no-deps --editable file://{source}" in run("env", prefix, code=1).stdout


@pytest.mark.parametrize("way", ["pth", "PYTHONPATH", "nothing"])
def test_folders_that_python_looks_in(
    way: str, scope: Scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = virtual_environment(tmp_path / "env")
    site, elsewhere = site_of(prefix), tmp_path / "elsewhere"
    compiled(site / "package/_C.so", MODULE)
    (site / "package/__init__.py").write_text("import beside.part")
    install(prefix, "package")
    (elsewhere / "beside").mkdir(parents=True)
    (elsewhere / "beside/part.py").touch()
    if way == "pth":
        (site / "elsewhere.pth").write_text(f"# a comment\n{os.path.relpath(elsewhere, site)}\n")
    if way == "PYTHONPATH":
        monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    works = way != "nothing"
    assert imports(prefix, "package") == works
    assert env(scope, prefix)["package"]["loads"] == ("yes" if works else "no")


def test_a_finder_of_another_kind(scope: Scope, tmp_path: Path) -> None:
    """meson-python's finds modules wherever its build put them."""
    prefix = virtual_environment(tmp_path / "env")
    site = site_of(prefix)
    compiled(site / "package/_C.so", MODULE)
    (site / "package/__init__.py").write_text("import beside")
    install(prefix, "package")
    (site / "_beside_editable_loader.py").write_text("import sys\nsys.modules['beside'] = sys\n")
    (site / "beside-editable.pth").write_text("import _beside_editable_loader\n")
    assert imports(prefix, "package")
    assert env(scope, prefix)["package"]["loads"] == "yes"
