"""Random environments for a release: everything that a machine and its user may have set, drawn from a seed."""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

# Variables that the programs of a release document, with values that would change what they do.
VARIABLES: dict[str, list[str]] = {
    "TZ": ["Asia/Kathmandu", "America/St_Johns", "UTC+13"],
    "LANG": ["tr_TR.UTF-8", "C", "ja_JP.eucJP"],
    "LC_ALL": ["C", "C.UTF-8", "POSIX"],
    "SOURCE_DATE_EPOCH": ["1", "1700000000"],
    "CIBW_ENVIRONMENT_LINUX": ["DEMO_TARGET=riscv64", "CFLAGS=-DEVIL"],
    "CIBW_BEFORE_BUILD_LINUX": ["printf 'EVIL = 1\\n' >>{project}/demo_ext/__init__.py"],
    "CIBW_BEFORE_ALL": ["touch /evil"],
    "CIBW_CONFIG_SETTINGS": ["--global-option=--quiet"],
    "CIBW_TEST_COMMAND": ["false"],
    "CIBW_SKIP": ["*"],
    "CIBW_BUILD_VERBOSITY": ["3"],
    "CIBW_DEPENDENCY_VERSIONS": ["latest"],
    "CIBW_CACHE_PATH": ["/nonexistent"],
    "AUDITWHEEL_PLAT": ["linux_aarch64", "manylinux_2_99_aarch64"],
    "AUDITWHEEL_ZIP_COMPRESSION_LEVEL": ["0", "9"],
    "AUDITWHEEL_EXCLUDE": ["*"],
    "PIP_NO_BINARY": [":all:"],
    "PIP_INDEX_URL": ["http://127.0.0.1:9/simple"],
    "PIP_TARGET": ["/nonexistent"],
    "PIP_REQUIRE_VIRTUALENV": ["1"],
    "PYTHONHASHSEED": ["1", "77"],
    "PYTHONWARNINGS": ["default"],
    "PYTHONDONTWRITEBYTECODE": ["1"],
    "TWINE_REPOSITORY": ["elsewhere"],
    "TWINE_REPOSITORY_URL": ["http://127.0.0.1:9/"],
    "TWINE_CERT": ["/nonexistent"],
    "DIST_EXTRA_CONFIG": ["/nonexistent.cfg"],
    "SETUPTOOLS_USE_DISTUTILS": ["stdlib"],
    "SETUPTOOLS_SCM_PRETEND_VERSION": ["9.9"],
    "CC": ["false"],
    "CFLAGS": ["-DEVIL -g3"],
    "CPPFLAGS": ["-DEVIL"],
    "LDFLAGS": ["-Wl,--build-id=0x1234"],
    "NVCC_APPEND_FLAGS": ["-DEVIL"],
    "NVCC_PREPEND_FLAGS": ["-DEVIL"],
    "TORCH_CUDA_ARCH_LIST": ["5.0"],
    "CUDAARCHS": ["50"],
    "CUDA_HOME": ["/nonexistent"],
    "FORCE_CUDA": ["0"],
    "MAX_JOBS": ["1", "99"],
    "MAKEFLAGS": ["-j99 -i"],
    "CMAKE_ARGS": ["-DEVIL=1"],
    "CMAKE_BUILD_TYPE": ["Debug"],
    "CCACHE_DIR": ["/nonexistent"],
    "CCACHE_PREFIX": ["false"],
    "SCCACHE_DIR": ["/nonexistent"],
    "TAR_OPTIONS": ["--mode=a+rwx", "--sort=none"],
    "GZIP": ["-1"],
    "ZIPOPT": ["-0"],
    "GIT_AUTHOR_DATE": ["2001-01-01T00:00:00"],
    "GIT_CONFIG_PARAMETERS": ["'core.fileMode=false'"],
    "GIT_INDEX_FILE": ["/nonexistent"],
    "DOCKER_DEFAULT_PLATFORM": ["linux/riscv64"],
    "DOCKER_CONTENT_TRUST": ["1"],
    "BUILDKIT_PROGRESS": ["rawjson"],
    "DEMO_TARGET": ["riscv64"],
    "NO_COLOR": ["1"],
    "FORCE_COLOR": ["1"],
    "COLUMNS": ["7"],
    "EDITOR": ["false"],
    "LD_BIND_NOW": ["1"],
    "MALLOC_PERTURB_": ["165"],
}
# Files below the user's home, which the same programs read.
AT_HOME = {
    ".config/pip/pip.conf": "[global]\nindex-url = http://127.0.0.1:9/simple\nno-binary = :all:\n",
    ".pypirc": "[distutils]\nindex-servers = elsewhere\n[elsewhere]\nrepository = http://127.0.0.1:9\n",
    ".pydistutils.cfg": "[bdist_wheel]\nplat_name = linux_riscv64\n[build]\ndebug = 1\n",
    ".gitconfig": "[core]\n autocrlf = input\n fileMode = false\n[status]\n showUntrackedFiles = no\n",
    ".config/ccache/ccache.conf": "sloppiness = include_file_mtime\n",
    ".docker/config.json": '{"proxies": {"default": {"httpProxy": "http://127.0.0.1:9"}}}',
    ".config/check-wheel-contents.toml": "[tool.check-wheel-contents]\nselect = []\n",
}
# Modules that `python -m`, or a program that looks in its current folder first, would take for the real ones.
PLANTED = (
    "twine",
    "auditwheel",
    "check_wheel_contents",
    "cibuildwheel",
    "wheel",
    "build",
    "elftools",
)
EVIL = "raise SystemExit('a planted module was run')\n"
NAMES = ("project", "a project", "projet é", "プロジェクト", "it's", "x;y", "100%", "a&b", "[x]")


@dataclass
class Environment:
    """What one run finds around it. `describe` is for people."""

    what: str
    name: str = "project"
    umask: int = 0o022
    cores: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    at_home: list[str] = field(default_factory=list)
    planted: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return (
            f"{self.what}: {self.name!r}, umask {self.umask:03o}, {self.cores} cores, "
            f"{self.variables}, {self.at_home}, planted {self.planted}"
        )


# What once changed a wheel and not its inputs.
KNOWN = [
    *(Environment("umask", umask=umask) for umask in (0o002, 0o027, 0o077)),
    Environment(
        "cibuildwheel's settings",
        variables={name: VARIABLES[name][0] for name in VARIABLES if name.startswith("CIBW_B")},
    ),
]


def draw(seed: int) -> Environment:
    """Each thing is there or not."""
    chance = random.Random(seed)
    names = [name for name in VARIABLES if chance.random() < 0.4]
    return Environment(
        f"seed {seed}",
        chance.choice(NAMES),
        chance.choice([0o022, 0o002, 0o027, 0o077, 0o000]),
        chance.randint(1, os.cpu_count() or 1),
        {name: chance.choice(VARIABLES[name]) for name in names},
        [file for file in AT_HOME if chance.random() < 0.5],
        [name for name in PLANTED if chance.random() < 0.5],
    )


def set_up(around: Environment, home: Path, project: Path) -> dict[str, str]:
    """Writes the files; returns the environment."""
    for file in around.at_home:
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(AT_HOME[file])
    for module in around.planted:
        for folder in (project, home / ".local/lib/python3.11/site-packages"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{module}.py").write_text(EVIL)
    with (project / ".git/info/exclude").open("a") as ignored:
        ignored.writelines(f"/{module}.py\n" for module in around.planted)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), **around.variables}
