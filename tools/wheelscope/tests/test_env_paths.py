"""`wheelscope env` agrees with `import` on modules outside of site-packages: on PYTHONPATH, in
folders that .pth files name, and in the projects of editable installations."""

import json
import os
from pathlib import Path

import pytest
from program import compiled, imports, install, run, site_of
from test_env import MODULE, env, package
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

# meson-python leaves the source in the project, and what it compiled in Meson's build folder.
MESON = """import json, sys
from importlib.util import spec_from_file_location
class MesonpyMetaFinder:
    def __init__(self, build):
        with open(build + '/meson-info/intro-install_plan.json') as file:
            kinds = json.load(file).values()
        self.files = {{to['destination']: file for kind in kinds for file, to in kind.items()}}
    def find_spec(self, name, path=None, target=None):
        for end in ('/__init__.py', '.so'):
            if file := self.files.get('{{py_platlib}}/' + name.replace('.', '/') + end):
                return spec_from_file_location(name, file)
def install(package, names, build, command, verbose):
    sys.meta_path.insert(0, MesonpyMetaFinder(build))

install(
    'package',
    {{'package'}},
    '{source}/build',
    ['ninja'],
    False,
)
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
    "meson": {
        "package-editable.pth": "import _package_editable_loader",
        "_package_editable_loader.py": MESON,
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


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("kind", EDITABLE)
def test_editable_installations(kind: str, package: str, bare: Path, tmp_path: Path) -> None:
    text, module, works = PACKAGES[package]
    site, source = site_of(bare), tmp_path / "a project"
    (source / "package").mkdir(parents=True)
    (source / "setup.py").write_text("import nobody_has_this")
    (source / "package/__init__.py").write_text(text)
    folder = {"redirection": site, "meson": source / "build"}.get(kind, source)
    library = compiled(folder / "package/_C.so", module, "-Wl,-z,now")
    if kind == "meson":
        (folder / "meson-info").mkdir()
        plan = {
            kind: {str(file): {"destination": f"{{py_platlib}}/package/{file.name}"}}
            for kind, file in (("python", source / "package/__init__.py"), ("targets", library))
        }
        (folder / "meson-info/intro-install_plan.json").write_text(json.dumps(plan))
    info = install(bare, "package")
    (info / "direct_url.json").write_text(
        '{"dir_info": {"editable": true}, "url": "file://' + str(source) + '"}'
    )
    with (info / "RECORD").open("a") as record:
        for name, content in EDITABLE[kind].items():
            (site / name).write_text(content.format(source=source, site=site))
            record.write(f"{name},,\n")
    assert imports(bare, "package") == works
    found = env(bare)
    assert found["package"]["loads"] == ("yes" if works else "no")
    assert found["package"]["libraries"] == 1
    with (info / "RECORD").open("a") as record:
        record.write("lost.txt,,\n")
    assert f"pip install --no-deps --editable file://{source}" in run("env", bare, code=1).stdout


@pytest.mark.parametrize("way", ["pth", "PYTHONPATH", "nothing"])
def test_folders_that_python_looks_in(
    way: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    site = package(bare, "package", "import beside.part").parent
    (elsewhere / "beside").mkdir(parents=True)
    (elsewhere / "beside/part.py").touch()
    if way == "pth":
        (site / "elsewhere.pth").write_text(f"# a comment\n{os.path.relpath(elsewhere, site)}\n")
    if way == "PYTHONPATH":
        monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    works = way != "nothing"
    assert imports(bare, "package") == works
    assert env(bare)["package"]["loads"] == ("yes" if works else "no")


def test_a_finder_of_another_kind(bare: Path) -> None:
    site = package(bare, "package", "import beside").parent
    (site / "_beside_editable_finder.py").write_text("import sys\nsys.modules['beside'] = sys\n")
    (site / "beside-editable.pth").write_text("import _beside_editable_finder\n")
    assert imports(bare, "package")
    assert env(bare)["package"]["loads"] == "yes"
