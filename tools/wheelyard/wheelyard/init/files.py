"""The files that get a project started: its matrix, its policy, and a workflow that calls the reusable one."""

import platform
from pathlib import PurePath

from wheelyard import __version__
from wheelyard.init.choice import Choice
from wheelyard.init.sources import Found

MATRIX_HEAD = """# What is released, and for whom: `wheelyard plan` shows it.
# Every key there is: `wheelyard schema matrix --markdown`."""
POLICY_HEAD = """# What the wheels must be before they may be released.
# Every key there is: `wheelyard schema policy --markdown`."""
CUDA_BUILD = ["", "[build.environment]", 'TORCH_CUDA_ARCH_LIST = "{targets}"', 'FORCE_CUDA = "1"']


def matrix(found: Found, choice: Choice) -> str:
    lines = [MATRIX_HEAD, ""]
    lines += ["[project]", f'name = "{found.name}"', f'import_name = "{found.import_name}"']
    lines += [f'folder = "{found.folder}"', ""] if found.folder else [""]
    lines += [f"[arch.{platform.machine()}]", ""]
    lines += ["[python]", f"versions = {_list(choice.pythons)}", ""]
    for torch, cuda in choice.torches.items():
        lines += [f'[torch."{torch}"]', f'cuda = ["{cuda}"]', ""]
    lines += ["[strategy]", f'default = "{choice.strategy}"', ""]
    lines += [
        "[build]",
        f"requires = {_list(choice.requires)}",
        *(CUDA_BUILD if found.has_cuda else []),
    ]
    runs = [f'{{ torch = "{t}", python = "{p}" }}' for t, p in _cells(choice)]
    lines += ["", "[verify]", f"run = [{', '.join(runs)}]"]
    tests = [str(PurePath(found.folder, test)) for test in found.tests]
    lines += [f"tests = {_list(tests)}"] if tests else []
    return "\n".join([*lines, ""])


def _cells(choice: Choice) -> list[tuple[str, str]]:
    return [(torch, python) for torch in choice.torches for python in choice.pythons]


def policy(found: Found, choice: Choice) -> str:
    abi = '["abi3", "none"]' if choice.strategy == "abi3" else '["abi3", "version", "none"]'
    lines = [POLICY_HEAD, ""]
    lines += ["[platform]", 'highest = "manylinux_2_35"', "", "[python]", f"abi = {abi}"]
    if found.has_cuda and not found.has_device_code:
        lines += ["", "[levels]", 'cuda-code = "off"  # it calls NVIDIA\'s libraries only']
    return "\n".join([*lines, ""])


def workflow(uses: str) -> str:
    """`uses` is the folder of the reusable workflows, in wheelyard's own repository."""
    release = f"wheelyard-v{__version__}"
    return f"""# Wheels for every push, built, gated and verified; those of a version tag go to its release page.
name: wheels
on: [push, pull_request]
permissions: {{}}
jobs:
  wheels:
    permissions: {{ contents: read }}
    uses: {uses}/wheels.yml@{release}
    with: {{ wheelyard: "{__version__}" }}
  publish:
    if: startsWith(github.ref, 'refs/tags/v')
    needs: wheels
    permissions: {{ contents: write }}
    uses: {uses}/publish.yml@{release}
    with: {{ wheelyard: "{__version__}", digests: "${{{{ needs.wheels.outputs.digests }}}}" }}
"""


def _list(values: list[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
