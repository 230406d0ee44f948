"""Asks wheelscope and three established tools about the same wheels and compares the answers.

auditwheel says which platform tag the symbol versions allow, cuobjdump which device code is inside,
torch-abi-audit which torch is needed. Their answers take minutes; they are kept beside the wheels.
"""

import argparse
import json
import platform
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scripts.corpus.download import ROOT, read_list

WHEELSCOPE = ROOT / "build/bin/wheelscope"
DIFFERENCES = ROOT / "tests/wheelscope/differences.toml"
TOOLS = ("auditwheel", "nvidia-cuda-cuobjdump", "torch-abi-audit")
NOWHERE = "/nowhere"
CUOBJDUMP = Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin/cuobjdump"

Answers = dict[str, Any]  # fact -> value


def run(*command: str | Path, accept: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in accept:
        sys.exit(f"error: {command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def ask_wheelscope(wheel: Path) -> Answers:
    (item,) = json.loads(run(WHEELSCOPE, "show", "--json", wheel, accept=(0, 1)))["items"]
    torch = item["torch_abi"]
    return {
        "platform_tag": item["platform_tag"],
        "sass": item["cuda"]["sass"],
        "ptx": item["cuda"]["ptx"],
        "torch_abi": torch["kind"],
        "torch_min": torch["min"],
    }


def ask_auditwheel(wheel: Path) -> str:
    """The tag for the symbol versions; `any` for wheels without ELF files.

    With no path to search: else it adds the needs of whatever library this machine happens to have
    under a name that the wheel needs.
    """
    show = (sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths", NOWHERE)
    answer = json.loads(run(*show, wheel, accept=(0, 1)))
    return str(answer.get("sym_tag", "any"))


def by_target(target: str) -> tuple[int, str]:
    return int(target.rstrip("af")), target


def older_cuobjdump(folder: Path) -> Path:
    """CUDA 12.8's, which a wheel of the corpus brings along; CUDA 13's gives up on old cubins."""
    tool = folder / "cuobjdump-12.8"
    if not tool.exists():
        wheel = next(folder.glob(f"triton-3.5.0-*{platform.machine()}.whl"))
        with zipfile.ZipFile(wheel) as members:
            tool.write_bytes(members.read("triton/backends/nvidia/bin/cuobjdump"))
        tool.chmod(0o755)
    return tool


def ask_cuobjdump(tree: Path) -> dict[str, list[str]]:
    targets: dict[str, set[str]] = {"elf": set(), "ptx": set()}
    for file in sorted(path for path in tree.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                continue
        # It ends with 255 where there is no device code, with 1 where it gives up.
        done = subprocess.run([CUOBJDUMP, "-all", file], capture_output=True, text=True)
        if done.returncode in (0, 255):
            output = done.stdout
        else:
            output = run(older_cuobjdump(tree.parent), "-all", file, accept=(0, 255))
        kind = ""
        for line in output.splitlines():
            if line.startswith("Fatbin "):
                kind = line.split()[1]
            elif line.startswith("arch = sm_"):
                targets[kind].add(line.removeprefix("arch = sm_"))
    return {kind: sorted(found, key=by_target) for kind, found in targets.items()}


def by_version(text: str) -> list[int]:
    return [int(number) for number in text.split(".")]


def ask_torch_abi_audit(tree: Path) -> tuple[str, str | None]:
    audit = Path(sysconfig.get_path("scripts")) / "torch-abi-audit"
    report = json.loads(run(audit, "--site-packages", tree, "--json", "--all"))
    found = [
        library["torch"]
        for package in report["packages"]
        for kind in ("extensions", "bundled_libs")
        for library in package[kind]
        if library["torch"]["uses_torch"]
    ]
    if not found:
        return "none", None
    if any(library["unstable_symbols"] for library in found):
        return "cxx", None
    newest = max((library["min_torch_version"] for library in found), key=by_version)
    return "stable", newest.removesuffix(".0")


def ask_tools(wheel: Path) -> Answers:
    with tempfile.TemporaryDirectory(dir=wheel.parent) as name:
        tree = Path(name)
        with zipfile.ZipFile(wheel) as members:
            members.extractall(tree)
        device_code = ask_cuobjdump(tree)
        torch_abi, torch_min = ask_torch_abi_audit(tree)
    return {
        "platform_tag": ask_auditwheel(wheel),
        "sass": device_code["elf"],
        "ptx": device_code["ptx"],
        "torch_abi": torch_abi,
        "torch_min": torch_min,
    }


def reference(wheel: Path) -> Answers:
    """The tools' answers, asked once for each version of the tools."""
    versions = {tool: version(tool) for tool in TOOLS}
    kept = wheel.with_suffix(".reference.json")
    if kept.exists():
        record = json.loads(kept.read_text())
        if record["versions"] == versions:
            answers: Answers = record["answers"]
            return answers
    answers = ask_tools(wheel)
    kept.write_text(json.dumps({"versions": versions, "answers": answers}, indent=1) + "\n")
    return answers


def differences(wheel: Path) -> list[dict[str, Any]]:
    ours, theirs = ask_wheelscope(wheel), reference(wheel)
    return [
        {"wheel": wheel.name, "fact": fact, "wheelscope": ours[fact], "tools": theirs[fact]}
        for fact in ours
        if ours[fact] != theirs[fact]
    ]


def explained() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(DIFFERENCES.read_text()).get("difference", [])
    return found


def is_explained(difference: dict[str, Any]) -> bool:
    return any(difference.items() <= entry.items() for entry in explained())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    folder = parser.parse_args().folder
    unexplained = 0
    for wheel in read_list():
        found = differences(folder / wheel.file_name)
        print(f"{'differs' if found else 'same   '}  {wheel.file_name}", flush=True)
        for difference in found:
            known = is_explained(difference)
            unexplained += not known
            print(f"   {'explained' if known else 'UNEXPLAINED'}: {difference}")
    sys.exit(f"{unexplained} differences are not explained in {DIFFERENCES}" if unexplained else 0)


if __name__ == "__main__":
    main()
