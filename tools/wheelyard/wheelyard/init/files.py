"""Writes a project's first files: its matrix, its policy, and a workflow that calls the reusable one."""

import json
import platform
from pathlib import PurePath

from wheelyard import __version__
from wheelyard.init.choice import Choice
from wheelyard.init.sources import Found
from wheelyard.plan.project import metadata, requirement

MATRIX_HEAD = """# The versions to support, and the builds: `wheelyard plan` shows what follows.
# All keys: `wheelyard schema matrix --markdown`."""
POLICY_HEAD = """# The rules that wheels must keep to before they may be released.
# All keys: `wheelyard schema policy --markdown`."""
IN_IMAGE = {"torch", "setuptools", "wheel", "cmake", "ninja"}
RELEASE = f"wheelyard-v{__version__}"
UNIVERSAL_BUILD = [
    *("", "[build.environment]  # the image has a toolkit for each architecture"),
    *('CUDA_HOME = "/opt/cuda-{toolkit}-{arch}"', 'TORCH_CUDA_ARCH_LIST = "{targets}"'),
]


def matrix(found: Found, choice: Choice) -> str:
    why = found.reasons | choice.reasons
    lines = [MATRIX_HEAD, "", "[project]", *_line("name", found.name, why["name"])]
    lines += _line("import_name", found.import_name, why.get("import", ""))
    lines += [f"folder = {_toml(found.folder)}", ""] if found.folder else [""]
    lines += [f"[arch.{platform.machine()}]  # this machine's", ""]
    lines += ["[python]", *_line("versions", choice.pythons, why["python"]), ""]
    lines += [f"# {why['torch']}"]
    for torch, cuda in choice.torches.items():
        lines += [f'[torch."{torch}"]', *([f'cuda = ["{cuda}"]'] if cuda else []), ""]
    lines += ["[strategy]", *_line("default", choice.strategy, why["strategy"])]
    if choice.abi3_python:
        lines += [f'abi3 = {{ python = "{choice.abi3_python}" }}  # {why["abi3"]}']
    needs = [
        text for text in found.setup_requires if requirement(text, found.root).name not in IN_IMAGE
    ]
    if needs:
        lines += ["", "[build]", *_line("requires", needs, "the build asks for it when it runs")]
    lines += UNIVERSAL_BUILD if choice.strategy == "universal" and found.has_cuda else []
    lines += ["", "[verify]"]
    if choice.strategy != "universal":
        runs = [f'{{ torch = "{t}", python = "{p}" }}' for t, p in choice.runs]
        lines += [f"run = [{', '.join(runs)}]"] if runs else []
    tests = [str(PurePath(found.folder, test)) for test in found.tests]
    lines += _line("tests", tests, why["tests"]) if tests else []
    if found.has_own_tests:
        own = _toml(f"python -m pytest --pyargs {found.import_name}")
        lines += [f"# command = {own}  # runs the tests inside the package, if the wheel has them"]
    required = {"what the project itself needs beside torch": choice.dependencies}
    if "dependencies" in metadata(found.root):  # a release reads them there
        required = {}
    required[why.get("test_requires", "")] = choice.test_dependencies
    required = {reason: texts for reason, texts in required.items() if texts}
    if required:
        lines += _line(
            "requires", [t for texts in required.values() for t in texts], "; ".join(required)
        )
    return "\n".join([*lines, ""])


def _line(key: str, value: object, why: str) -> list[str]:
    """Returns a key's line, with the reason for its value as a comment."""
    return [f"{key} = {_toml(value)}" + (f"  # {why}" if why else "")]


def policy(found: Found, choice: Choice) -> str:
    abi = '["abi3", "none"]' if choice.strategy == "abi3" else '["abi3", "version", "none"]'
    lines = [POLICY_HEAD, "", "[platform]", 'highest = "manylinux_2_35"', "", "[python]"]
    lines += [f"abi = {abi}  # strategy {choice.strategy}"]
    if found.has_cuda and not found.has_device_code:
        lines += ["", "[levels]", 'cuda-code = "off"  # it calls NVIDIA\'s libraries only']
    return "\n".join([*lines, ""])


def workflow(uses: str, commit: str = "") -> str:
    """Returns a workflow that calls the reusable ones. `uses` is their folder in wheelyard's own repository, and
    `commit` that of this version's tag. Without a commit they are taken at the tag, which can be moved."""
    version = f"{commit} # {RELEASE}" if commit else RELEASE
    return f"""# Wheels for every push, built, gated and verified; those of a version tag go to its release page.
name: wheels
on: [push, pull_request]
permissions: {{}}
jobs:
  wheels:
    permissions: {{ contents: read }} # the checkouts
    uses: {uses}/wheels.yml@{version}
  publish:
    if: startsWith(github.ref, 'refs/tags/v')
    needs: wheels
    permissions: {{ contents: write }} # the release page
    uses: {uses}/publish.yml@{version}
    with: {{ digests: "${{{{ needs.wheels.outputs.digests }}}}" }}
"""


def _toml(value: object) -> str:
    """Returns a string or a list of strings in TOML, which spells them as JSON does."""
    return json.dumps(value, ensure_ascii=False)
