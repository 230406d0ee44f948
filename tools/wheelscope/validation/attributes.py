"""Finds names in modules that a release of a distribution brought or removed, for
src/data/attributes.csv.

The names are read from the Python files and stubs of wheels on PyPI, of which only parts are
downloaded. Of each minor release the last wheel counts. A name is written down if an unbroken row
of releases has it, and not all of them, unless an installed release contradicts that. Stubs came to
list names of compiled code later than it had them: such a name is left out if the compiled library
of an earlier release contains it as a text, or dated by the library if it can be nothing else.
"""

import ast
import contextlib
import importlib
import io
import re
import urllib.request
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple

from packaging.version import Version

from validation import pypi

Row = tuple[str, ...]  # name, module, distribution, and the releases that brought and removed it


class Package(NamedTuple):
    distribution: str
    oldest: str  # release that is read
    modules: str  # whose public names count
    private: str = ""  # whose names with an underscore count
    without: str = ""  # names that do not count
    library: str = ""  # beginning of the compiled file whose names stubs list


PACKAGES = [
    Package(
        "torch",
        "1.8",
        "torch torch.amp torch.backends torch.backends.cuda torch.cuda torch.cuda.amp torch.distributed "
        "torch.distributed.tensor torch.export torch.library torch.linalg torch.nn torch.nn.attention "
        "torch.nn.attention.flex_attention torch.nn.functional torch.optim torch.optim.lr_scheduler "
        "torch.utils torch.utils._pytree torch.utils.checkpoint torch.utils.cpp_extension torch.utils.data",
        "torch._utils",
        without=r"[a-z]\w*_(copy|backward|forward|batch_rule)|(cudnn|miopen|mkldnn|fbgemm|quantized|sym|nested)_\w*|"
        r"[A-Z]|T_co|K|P|S|unsafe_\w*|special_\w*_polynomial_\w*|[A-Z]\w*Tensor",
        library="torch/lib/libtorch_python.",
    ),
    Package(
        "torchvision",
        "0.9",
        "torchvision torchvision.datasets torchvision.io torchvision.models torchvision.ops "
        "torchvision.transforms torchvision.transforms.functional torchvision.utils",
    ),
    Package("torchaudio", "0.8", "torchaudio torchaudio.functional torchaudio.transforms"),
    Package(
        "triton", "2.0", "triton triton.language triton.compiler.compiler triton.backends.compiler"
    ),
    Package("numpy", "1.19", "numpy numpy.linalg numpy.random"),
    Package("scipy", "1.5", "scipy.integrate scipy.linalg scipy.misc scipy.signal scipy.special"),
    Package("pandas", "1.0", "pandas"),
    Package("scikit-learn", "0.22", "sklearn sklearn.metrics sklearn.preprocessing sklearn.utils"),
    Package("typing-extensions", "3.7", "typing_extensions"),
    Package("markupsafe", "1.1", "markupsafe"),
    Package("jinja2", "2.10", "jinja2 jinja2.utils"),
    Package("werkzeug", "1.0", "werkzeug werkzeug.urls werkzeug.utils"),
    Package("flask", "1.0", "flask"),
    Package("pytorch-lightning", "1.2", "pytorch_lightning pytorch_lightning.utilities"),
    Package(
        "huggingface-hub",
        "0.10",
        "huggingface_hub huggingface_hub.utils",
        without=r"(Automatic|Chat|Audio|Image|Video|Text|Token|Zero|Visual|Table|Summar|Translation|"
        r"Question|Sentence|Fill|Feature|Depth|Document|Object|Base)\w*",
    ),
    Package(
        "transformers",
        "4.36",
        "transformers transformers.cache_utils transformers.generation transformers.modeling_utils "
        "transformers.models transformers.pytorch_utils transformers.utils",
        # transformers 5 removed all of TensorFlow and Flax; of each model its main classes count.
        without=r"(TF|Flax|PT)[A-Z].*|.*(Backbone|Config|Decoder|Encoder|Extractor|Fast|ImageProcessor|Layer|Model|Pil|VideoProcessor"
        r"|For(?!ConditionalGeneration|CausalLM)[A-Z]\w*)|[a-z]\w*(_|\d)\w*_model\w*",
    ),
    Package("accelerate", "0.20", "accelerate accelerate.utils"),
    Package("diffusers", "0.20", "diffusers diffusers.utils"),
    Package("peft", "0.5", "peft peft.utils"),
]

# Names that older or newer releases set in ways that their sources do not show.
DYNAMIC = {
    "torch": "ExcludeDispatchKeyGuard has_cuda has_cudnn has_mkldnn has_mps lib os torch",
    "numpy": "bool int float object str complex long unicode",
    "torchaudio": "info load save load_wav",
}
# Names that stand in a library for nothing else than this name of a module: types of numbers.
TYPES = re.compile(r"(float|u?int|bits|complex)\d\w*")
# Variables with the names that a package imports when they are asked for.
LISTS = re.compile(r"__all__|_import_structure|_SUBMOD_ATTRS|_extra_objects|_dynamic_imports")


class Ranges(io.RawIOBase):
    """A file on a server, of which blocks are read."""

    BLOCK = 1 << 21

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.at = url, size, 0
        self.blocks: dict[int, bytes] = {}

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def block(self, number: int) -> bytes:
        if number not in self.blocks:
            start = number * self.BLOCK
            last = min(start + self.BLOCK, self.size) - 1
            request = urllib.request.Request(self.url, headers={"Range": f"bytes={start}-{last}"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                self.blocks[number] = answer.read()
        return self.blocks[number]

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self.at >= self.size:
            return 0
        number, skip = divmod(self.at, self.BLOCK)
        data = self.block(number)[skip : skip + len(buffer)]
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def wheels(distribution: str, oldest: str) -> Iterator[tuple[str, Ranges]]:
    """Yields each minor release from the oldest on, with the smallest wheel of its last patch."""
    newest: dict[str, tuple[Version, int, dict[str, Any]]] = {}
    for file in pypi.files_of(distribution):
        found = re.fullmatch(r"[\w.]+?-(\d+(?:\.\d+)*)-.*\.whl", file["filename"])
        if not found or file["yanked"] or Version(found[1]) < Version(oldest):
            continue
        minor = ".".join(found[1].split(".")[:2])
        candidate = (Version(found[1]), -file["size"], file)
        if minor not in newest or candidate[:2] > newest[minor][:2]:
            newest[minor] = candidate
    for minor in sorted(newest, key=Version):
        file = newest[minor][2]
        yield minor, Ranges(file["url"], file["size"])


class Names:
    """The names of a wheel's modules, read from their sources."""

    def __init__(self, wheel: zipfile.ZipFile) -> None:
        self.wheel = wheel
        self.files = set(wheel.namelist())
        self.of = cache(self.read)
        self.listed: dict[str, set[str]] = {}  # the names in __all__
        self.stubbed: dict[str, set[str]] = {}  # the names that only stubs show

    def read(self, module: str) -> frozenset[str]:
        names = self.submodules(module)
        plain = set(names)
        path = module.replace(".", "/")
        for end in ("/__init__.py", "/__init__.pyi", ".py", ".pyi"):
            if path + end not in self.files:
                continue
            package = module if "__init__" in end else module.rpartition(".")[0]
            with contextlib.suppress(SyntaxError):  # of a newer Python than this one
                for node in statements(ast.parse(self.wheel.read(path + end)).body):
                    given = names_of(node, module.split(".")[0], stub=end.endswith("i"))
                    names |= given
                    plain |= given if end.endswith(".py") else set()
                    if "__all__" in ast.unparse(node)[:40]:
                        self.listed.setdefault(module, set()).update(strings(node))
                    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                        origin = absolute(node, package)
                        names |= self.starred(origin)
                        plain |= self.starred(origin) - self.stubbed[origin]
        if module == "torch":
            names |= self.of("torch._C._VariableFunctions")
        if module == "transformers":
            names |= self.listed_in_models()
            plain |= names
        self.stubbed[module] = names - plain
        return frozenset(names)

    def compiled(self, library: str) -> set[str]:
        """Returns the words among the texts of a compiled file."""
        if not library:
            return set()
        texts = [self.wheel.read(file) for file in self.files if file.startswith(library)]
        return {word.decode() for text in texts for word in re.findall(rb"(?<=\0)\w+(?=\0)", text)}

    def starred(self, module: str) -> set[str]:
        """Returns the names that `from module import *` takes."""
        names = self.of(module)
        return self.listed.get(module) or {name for name in names if name[0] != "_"}

    def submodules(self, module: str) -> set[str]:
        path = module.replace(".", "/") + "/"
        return {
            file[len(path) :].split("/")[0].split(".")[0]
            for file in self.files
            if file.startswith(path) and file.endswith((".py", ".so"))
        }

    def listed_in_models(self) -> set[str]:
        """transformers 4.48 and newer take what each module of a model lists in __all__."""
        found: set[str] = set()
        for file in self.files:
            if re.fullmatch(r"transformers/models/\w+/\w+\.py", file):
                text = self.wheel.read(file).decode()
                listed = re.search(r"^__all__ = (\[[^\]]*\])", text, re.MULTILINE)
                found |= set(ast.literal_eval(listed[1])) if listed else set()
        return found


def absolute(node: ast.ImportFrom, package: str) -> str:
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, with those in its conditions and attempts."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from statements(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body)


def strings(node: ast.AST) -> set[str]:
    return {
        one.value
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier()
    }


def names_of(node: ast.stmt, top: str, stub: bool) -> set[str]:
    """Returns the names that a statement gives to a module of the package `top`."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.ImportFrom():
            own = bool(node.level) or (node.module or "").split(".")[0] == top
            shown = [one for one in node.names if not stub or one.asname == one.name]
            return {one.asname or one.name for one in shown} - {"*"} if own else set()
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {
                one.id
                for target in targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name)
            }
            if node.value and any(LISTS.fullmatch(name) for name in names):
                names |= strings(node.value)
            return names
        case ast.Expr() if "_import_structure" in ast.unparse(node)[:40]:
            return strings(node)
    return set()


def changes(package: Package) -> Iterator[Row]:
    """Yields names with the release that brought and the one that removed them."""
    releases: list[str] = []
    seen: dict[tuple[str, str], list[bool]] = {}
    compiled: dict[str, str] = {}  # the words of the library, and the first release that has each
    older: set[tuple[str, str]] = set()  # names that stubs list later than the library has them
    dynamic = DYNAMIC.get(package.distribution, "").split()
    for release, file in wheels(package.distribution, package.oldest):
        with zipfile.ZipFile(io.BufferedReader(file)) as wheel:
            names = Names(wheel)
            for modules, pattern in ((package.modules, r"[A-Za-z]\w*"), (package.private, r"_\w+")):
                for module in modules.split():
                    for name in names.of(module) & names.stubbed[module] & compiled.keys():
                        if (module, name) not in seen:
                            older.add((module, name))
                    for name in names.of(module) - set(dynamic):
                        if re.fullmatch(pattern, name) and not re.fullmatch(package.without, name):
                            seen.setdefault((module, name), [False] * len(releases))
            for (module, name), there in seen.items():
                there.append(name in names.of(module))
            compiled = dict.fromkeys(names.compiled(package.library), release) | compiled
        releases.append(release)
        print(package.distribution, release, flush=True)
    for (module, name), there in seen.items():
        first, last = there.index(True), len(there) - 1 - there[::-1].index(True)
        if all(there[first : last + 1]) and not all(there):
            brought = releases[first] if first else ""
            removed = releases[last + 1] if last + 1 < len(there) else ""
            if (module, name) in older and not TYPES.fullmatch(name):
                continue
            if (module, name) in older:
                brought = compiled[name] if compiled[name] != releases[0] else ""
            yield name, module, package.distribution, brought, removed


def is_there(module: str, name: str) -> bool | None:
    """Asks Python. None: the module itself cannot be imported here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = importlib.import_module(module)
        except Exception:
            return None
        try:
            return hasattr(found, name) or bool(find_spec(f"{module}.{name}"))
        except ModuleNotFoundError:  # the module is no package
            return False
        except Exception:  # a name that is there, and that asks for another package
            return True


def contradicted(found: Iterable[Row]) -> list[Row]:
    """Returns the rows that the releases which are installed here contradict, as a source does not show all names that
    an import gives, and stubs show more."""
    wrong = []
    for row in found:
        name, module, distribution, brought, removed = row
        try:
            here = Version(version(distribution))
        except PackageNotFoundError:
            continue
        # A minor release has what its last patch has.
        minor = Version(f"{here.major}.{here.minor}")
        claim = (not brought or Version(brought) <= minor) and (
            not removed or minor < Version(removed)
        )
        if is_there(module, name) == (not claim):
            wrong.append(row)
    return wrong


def rows() -> list[Row]:
    """Returns the rows of the table. Packages that are installed, in their newest release, make it more exact."""
    found = [row for package in PACKAGES for row in changes(package)]
    wrong = set(contradicted(found))
    return sorted(set(found) - wrong, key=lambda row: (row[1:], row))
