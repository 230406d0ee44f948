"""The established tools that wheelscope is compared with, one module each.

A reference is asked about a wheel and answers with facts by place: a member of the wheel, or "" for
the wheel as a whole. `ours` takes the same facts out of what wheelscope says.
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
    ask: Callable[[Path, Path], Facts]  # of the wheel and the folder in which it is unpacked
    ours: Callable[[Any, Path, Facts], Facts]  # of wheelscope's item, the wheel, and what was asked


def elf_files(tree: Path) -> list[Path]:
    """Files that are ELF, in order; not what a link points to."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if starts_with(path, b"\x7fELF")]


def starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic
