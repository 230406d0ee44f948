"""The established tools that wheelscope is compared with, one module each.

A reference answers for a wheel with facts by place: a member of the wheel, or "" for the whole
wheel. `ours` takes the same facts from wheelscope's answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Facts = dict[str, dict[str, Any]]  # place -> fact -> value


@dataclass(frozen=True)
class Reference:
    name: str
    version: Callable[[], str]
    ask: Callable[[Path, Path], Facts]  # takes the wheel and the folder with its unpacked files
    ours: Callable[[Any, Path, Facts], Facts]  # of wheelscope's item, the wheel, theirs


def elf_files(tree: Path) -> list[Path]:
    """Returns the ELF files, sorted, without symbolic links."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if starts_with(path, b"\x7fELF")]


def starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic
