"""`wheelscope env` agrees with `import` on a package, whichever of its modules are broken."""

import json
import py_compile
import sys
from pathlib import Path

import pytest
from program import compiled, imports, install, site_of, virtual_environment
from test_env import MODULE, env, loads, package

BROKEN = MODULE + " int nobody_has_it(void); int f(void) { return nobody_has_it(); }"

BY_PATH = """
from importlib import util
def load(path):
    spec = util.spec_from_file_location('_C', path)
    spec.loader.exec_module(util.module_from_spec(spec))
load(__file__.replace('__init__.py', '_C' + '.so'))
"""

MANAGED = "class F:\n    __enter__ = lambda s: s\n    __exit__ = lambda *e: True\n"
TRY = "try: import nobody_has_this\nexcept ImportError: "

# Packages with a broken module _C: the files, and whether importing the package works.
PACKAGES: dict[str, tuple[dict[str, str], bool]] = {
    "direct": ({"__init__.py": "from . import _C"}, False),
    "through": ({"__init__.py": "import through.a.b", "a/__init__.py": "", "a/b.py": "from .. import _C"}, False),
    "starred": ({"__init__.py": "from starred._C import *"}, False),
    "unused": ({"__init__.py": ""}, True),
    "lazy": ({"__init__.py": "def f():\n    from . import _C"}, True),
    "guarded": ({"__init__.py": "try:\n    from . import _C\nexcept ImportError:\n    _C = None"}, True),
    "again": ({"__init__.py": "try:\n    from . import _C\nexcept ImportError as e:\n    raise OSError from e"}, False),
    "narrow": ({"__init__.py": "try:\n    from . import _C\nexcept ModuleNotFoundError:\n    pass"}, False),
    "typed": ({"__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import _C"}, True),
    "quoted": ({"__init__.py": '"""Use\nfrom . import _C\n"""\n# import quoted._C'}, True),
    "wrapped": ({"__init__.py": "import contextlib as c\nwith c.suppress(ImportError):\n    from . import _C"}, True),
    "bypath": ({"__init__.py": BY_PATH}, False),
    "opens": ({"__init__.py": "import ctypes\nctypes.CDLL(__file__.replace('__init__.py', '_C.so'))"}, False),
}  # fmt: skip

# The same with a sound module.
SOUND: dict[str, tuple[dict[str, str], bool]] = {
    "neighbour": ({"__init__.py": "import direct"}, False),
    "careful": ({"__init__.py": "try:\n    import direct\nexcept ImportError:\n    pass"}, True),
    "nowhere": ({"__init__.py": "import os.path, nobody_has_this.part"}, False),
    "taken": ({"__init__.py": "from nobody_has_this import part"}, False),
    "prepared": ({"__init__.py": "try:\n    import nobody_has_this\nexcept ImportError:\n    pass"}, True),
    "later": ({"__init__.py": "def f():\n    import nobody_has_this"}, True),
    "standard": ({"__init__.py": "import sys, _sre, _io, json.decoder, zlib, encodings.idna"}, True),
    "paths": ({"__init__.py": "import sys\nsys.path.append(__path__[0])\nimport inner", "inner.py": ""}, True),
    "looped": ({"__init__.py": "for x in (1, 2):\n    if x > 1:\n        break\nelse:\n    raise ImportError"}, True),
    "named": ({"__init__.py": "from typing import NobodyHasThis"}, False),
    "deeper": ({"__init__.py": "from .a import b", "a/__init__.py": "", "a/b.py": "import nobody_has_this"}, False),
    "managed": ({"__init__.py": MANAGED + "with F():\n    import nobody_has_this"}, True),
    "dotted": ({"__init__.py": "from collections import abc, OrderedDict as O\nfrom os import path, getpid"}, True),
    "otherwise": ({"__init__.py": TRY + "pass\nelse: import nor_this"}, True),
    "called": ({"__init__.py": "from . import a", "a.py": "if '.' not in __name__: import nobody_has_this"}, True),
    "absent": ({"__init__.py": "try:\n    import nobody_has_this\nexcept ModuleNotFoundError:\n    pass"}, True),
    "inner": ({"__init__.py": "def g():\n    def f(): raise OSError\n    return f\n" + TRY + "g()"}, True),
    "quiet": ({"__init__.py": "def g(x=1):\n    if x: return\n    raise OSError\n" + TRY + "g()"}, True),
    "far.off.below": ({"__init__.py": "import nobody_has_this"}, False),
    "shared.part": ({"__init__.py": "import shared.absent"}, False),
    "graphlib": ({"__init__.py": "import nobody_has_this  # Python's own comes first"}, True),
    "wide.open": ({"__init__.py": "from wide.open.absent import part"}, False),
    "reaching": ({"__init__.py": "import nowhere"}, False),
    "perhaps": ({"__init__.py": "try:\n    import nowhere\nexcept ImportError:\n    pass"}, True),
    "elsewhere": ({"__init__.py": "import direct.absent"}, False),
    "parted": ({"__init__.py": "from parted.absent import part"}, False),
    "relative": ({"__init__.py": "from .absent import part"}, False),
    "spare": ({"__init__.py": "try:\n    from .absent import part\nexcept ImportError:\n    pass"}, True),
}  # fmt: skip
PACKAGES |= SOUND


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = virtual_environment(tmp_path_factory.mktemp("imports") / "env")
    broken = compiled(prefix / "broken.so", BROKEN, "-Wl,-z,now").read_bytes()
    sound = compiled(prefix / "sound.so", MODULE).read_bytes()
    for name, (files, _) in PACKAGES.items():
        folder = site_of(prefix) / name.replace(".", "/")
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        (folder / "_C.so").write_bytes(sound if name in SOUND else broken)
        install(prefix, name.split(".")[0])
    return prefix


@pytest.fixture(scope="module")
def verdicts(environment: Path) -> dict[str, dict[str, object]]:
    return env(environment, code=1)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_verdict_is_that_of_import(
    name: str, environment: Path, verdicts: dict[str, dict[str, object]]
) -> None:
    works = imports(environment, name)
    assert works == PACKAGES[name][1]
    verdict = verdicts[name.split(".")[0]]
    assert verdict["loads"] == ("yes" if works else "no"), json.dumps(verdict)


def test_the_standard_library_is_there(bare: Path) -> None:
    """All of it is known, for other systems too; modules without a file are known from the
    interpreter's texts."""
    text = "".join(f"import {name}\n" for name in sorted(sys.stdlib_module_names))
    package(bare, "all", text)
    assert env(bare, code=0)["all"]["loads"] == "yes"


def test_a_package_beside_the_main_one_may_need_more(bare: Path) -> None:
    """duckdb brings adbc_driver_duckdb too, which imports what duckdb does not require."""
    site = package(bare, "main").parent
    (site / "beside").mkdir()
    (site / "beside/__init__.py").write_text("import nobody_has_this")
    with next(site.glob("main-*/RECORD")).open("a") as record:
        record.write("beside/__init__.py,,\n")
    found = env(bare, code=0)["main"]
    assert (found["loads"], found["refusal"]["file"]) == ("yes", "beside/__init__.py")
    assert (found["refusal"]["module"], found["refusal"]["need"]) == ("nobody_has_this", "never")


def test_a_library_that_only_python_code_opens(bare: Path) -> None:
    """A library that is neither a module nor built on torch counts if executed code has its name
    and opens a library."""
    path = "from pathlib import Path\ndef find():\n    return str(Path(__file__).parent / 'libplain.so')\n"
    sources = {
        "opened": "import ctypes\nfrom .path import find\nlibrary = ctypes.cdll.LoadLibrary(find())\n",
        "later": "import ctypes\nfrom .path import find\ndef f():\n    ctypes.CDLL(find())\n",
    }
    for name, source in sources.items():
        folder = site_of(bare) / name
        compiled(folder / "libplain.so", BROKEN.replace("PyInit__C", "start"), "-Wl,-z,now")
        (folder / "path.py").write_text(path)
        package(bare, name, source, None)
    found = env(bare, code=1)
    for name in sources:
        assert found[name]["loads"] == ("yes" if imports(bare, name) else "no")
    assert found["opened"]["broken"][0]["need"] == "always"
    assert found["later"]["broken"] == []


def test_machine_code_may_import_what_it_names(bare: Path) -> None:
    """A sound module imports a source file, which imports a broken module: no text tells for sure."""
    calls = (
        "void *PyImport_ImportModule(const char *);"
        'void *PyInit__A(void) { return PyImport_ImportModule("chained.b"); }'
    )
    module = compiled(site_of(bare) / "chained/_A.so", calls)
    module.with_name("b.py").write_text("from . import _C")
    package(bare, "chained", "from . import _A", BROKEN)
    assert not imports(bare, "chained")
    assert env(bare)["chained"]["loads"] == "depends"


def test_modules_that_code_makes(bare: Path) -> None:
    """Without files of their own: in Python, or in machine code that has the name."""
    makes = 'void *PyImport_AddModule(const char *); void *made(void) { return PyImport_AddModule("native.made"); }'
    sources = {
        "pythonic": "import sys\nsys.modules['pythonic.made'] = sys\nfrom .made import path",
        "native": "from . import _C\nfrom .made import path",
        "bytecode": "from .made import path",
    }
    (site_of(bare) / "made.py").write_text("path = 1")
    py_compile.compile(str(site_of(bare) / "made.py"), str(site_of(bare) / "bytecode/made.pyc"))
    for name, source in sources.items():
        package(bare, name, source, MODULE + (makes if name == "native" else ""))
    found = loads(env(bare))
    assert found == {"pythonic": "depends", "native": "depends", "bytecode": "yes"}


def test_an_importer_of_a_library_that_is_elsewhere(bare: Path) -> None:
    """numpy and scipy have a library of one name, and numpy's was deleted."""
    part = site_of(bare) / "other/libpart.so"
    compiled(part, "int part(void) { return 1; }", "-Wl,-soname,libpart.so")
    package(bare, "other", "", None)
    package(bare, "needy", "from . import _C", MODULE, "-Wl,--no-as-needed", part)
    package(bare, "user", "import needy")
    found = env(bare)
    assert loads(found) == {"other": "yes", "needy": "depends", "user": "depends"}
    assert found["user"]["imports"] == "needy"


def test_names_that_machine_code_no_longer_has(bare: Path) -> None:
    """pyOpenSSL takes constants from cryptography's machine code, which cffi made."""
    texts = ("_cffi_backend", "FIRST_CONSTANT", "SECOND_CONSTANT")
    source = "".join(f'const char *text{i} = "{text}";' for i, text in enumerate(texts))
    package(bare, "maker", "from ._C import lib", MODULE + source)
    users = {
        "sound": "A = _lib.FIRST_CONSTANT\nclass B:\n    C = _lib.SECOND_CONSTANT",
        "broken": "A = _lib.FIRST_CONSTANT\nclass B:\n    C = _lib.THIRD_CONSTANT",
        "careful": "try:\n    A = _lib.THIRD_CONSTANT\nexcept AttributeError:\n    A = None",
    }
    for name, text in users.items():
        package(bare, name, "from maker import lib as _lib\n" + text)
    found = env(bare)
    expected = {"sound": "yes", "broken": "depends", "careful": "yes"}
    assert loads(found) | expected == loads(found)
    assert found["broken"]["refusal"]["name"] == "THIRD_CONSTANT"


def test_a_requirement_of_an_imported_package(bare: Path) -> None:
    """pydantic, which has no machine code, refuses a pydantic-core that it does not require."""
    for name, text in {"pure": "", "user": "import pure", "other": ""}.items():
        (site_of(bare) / name).mkdir()
        (site_of(bare) / name / "__init__.py").write_text(text)
        if name != "pure":
            compiled(site_of(bare) / name / "_C.so", MODULE)
        install(bare, name, metadata="Requires-Dist: other==2.0\n" if name == "pure" else "")
    found = env(bare)
    assert loads(found) == {"other": "yes", "user": "depends"}
    assert found["user"]["unmet"] == ["pure requires other==2.0; installed is 1.0"]


def test_parts_and_neighbours_are_named(verdicts: dict[str, dict[str, object]]) -> None:
    assert verdicts["neighbour"]["imports"] == "direct"
    assert verdicts["direct"]["imports"] is None
    for name, need in (("guarded", "never"), ("direct", "always")):
        broken = verdicts[name]["broken"]
        assert isinstance(broken, list)
        assert [one["need"] for one in broken] == [need]


def test_what_only_running_tells(bare: Path) -> None:
    """A module named in a text, as numpy 1.26 does; a library that nothing has; a folder in place of a module."""
    site = site_of(bare)
    texts = {
        "told": "def add(place):\n    __import__(place)\nadd('told._C')",
        "opens": "import ctypes\ndef load():\n    return ctypes.CDLL('libnobody.so.7')\nlib = load()",
        "folder": "",
    }
    for name, text in texts.items():
        package(bare, name, text, BROKEN if name == "told" else MODULE)
    (site / "folder/__init__.py").rename(site / "folder/__init__.pyi")
    (site / "folder-1.0.dist-info/RECORD").write_text(
        "folder/__init__.pyi,,\nfolder.cpython-38-x86_64-linux-gnu.so,,\n"
    )
    (site / "folder/_C.so").rename(site / "folder.cpython-38-x86_64-linux-gnu.so")
    found = env(bare)
    assert loads(found) == dict.fromkeys(texts, "depends")
    assert found["opens"]["refusal"]["library"] == "libnobody.so.7"


def test_what_a_module_says_of_others(bare: Path) -> None:
    """A wheel that is a single module named for an absent package, and one that compares
    versions."""
    texts = {
        "nowhere.part.moved": '"nowhere.part.tokens"',
        "settled.part": '"part.tokens", "settled version mismatch"',
        "compared": '"part.tokens", "part & compared library version mismatch"',
    }
    for name, text in texts.items():
        module = name.rpartition(".")[2]
        source = f'const char *texts[] = {{"first", {text}}}; void *PyInit_{module}(void) {{ return 0; }}'
        compiled(site_of(bare) / f"{module}.so", source)
        (install(bare, name) / "RECORD").write_text(f"{module}.so,,\n")
    found = env(bare)
    expected = {"nowhere-part-moved": "depends", "settled-part": "yes", "compared": "depends"}
    assert loads(found) == expected
    assert found["nowhere-part-moved"]["refusal"]["module"] == "nowhere.part.tokens"
    assert found["compared"]["refusal"]["module"] == "part"
