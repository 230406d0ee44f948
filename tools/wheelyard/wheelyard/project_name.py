"""Says which names a new project cannot have: they would be no package, or mean something else somewhere."""

import keyword
import re
import sys

from packaging.utils import canonicalize_name

from wheelyard.problem import Problem

LONGEST = 64
NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*")
TAKEN = {
    "a folder of the project": {
        *("build", "ci", "csrc", "dist", "docs", "setup", "tests", "wheelhouse", "wheels"),
    },
    "a package that the project needs": {
        *("cmake", "cuda", "expecttest", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath"),
        *("networkx", "ninja", "numpy", "nvidia", "opwright", "packaging", "pip", "pkg_resources"),
        *("pluggy", "pytest", "setuptools", "sympy", "torch", "torchgen", "triton"),
        *("typing_extensions", "wheel", "wheelscope", "wheelyard"),
    },
    "part of torch.ops": {
        *("aten", "c10d", "debug_mode_ops", "debugprims", "export", "higher_order"),
        *("import_module", "inductor", "load_library", "loaded_libraries", "mkl", "mkldnn"),
        *("mkldnn_prepacked", "onednn", "prepacked", "prim", "prims", "profiler", "quantization"),
        *("quantized", "rngprims", "sparse", "static_runtime", "symm_mem", "torchaudio"),
        *("torchvision",),
    },
    "a target of its build": {
        *("all", "clean", "codegen", "cuda_host", "cuda_kernels", "cuda_runtime", "edit_cache"),
        *("help", "install", "kernels", "libtorch", "package", "package_source", "preinstall"),
        *("rebuild_cache", "standalone", "test"),
    },
    "a name that PyPI refuses": {"requirements_txt", "rrequirements_txt"},
}
# Modules of other Pythons that a project supports than the one that runs this.
OTHER_PYTHONS = {
    *("aifc", "annotationlib", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk"),
    *("compression", "crypt", "distutils", "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis"),
    *("nntplib", "ossaudiodev", "pipes", "profiling", "smtpd", "sndhdr", "spwd", "sunau"),
    *("telnetlib", "uu", "xdrlib"),
}


def check(name: str) -> None:
    """Raises if a project cannot have this name."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise Problem(
            f"'{name}' is not a valid name for a project; use at most {LONGEST} letters, digits and dashes, with a "
            "letter first and no dash last, as in my-ext"
        )
    module = canonicalize_name(name).replace("-", "_")
    meanings = [meaning for meaning, names in TAKEN.items() if module in names]
    if keyword.iskeyword(module):
        meanings = ["a keyword of Python"]
    elif module in sys.stdlib_module_names | OTHER_PYTHONS:
        meanings = ["a module of Python's own library"]
    if meanings:
        raise Problem(
            f"a package named {module} would be confused with something else: {module} is {meanings[0]}; choose "
            "another name"
        )
