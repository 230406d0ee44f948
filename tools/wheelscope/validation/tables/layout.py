"""Writes generated tables in few lines: a CSV table has one row for all names that share the other
fields, and JSON has each innermost list or map on one line."""

import csv
import json
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

DATA = Path("src/data")


def write_csv(
    file_name: str, head: list[str], header: str, rows: Iterable[tuple[str, ...]]
) -> None:
    """Writes rows whose first field is a name; rows that share the rest must be adjacent."""
    lines = [*(f"# {line}" for line in head), header]
    for shared, group in groupby(rows, lambda row: row[1:]):
        lines.append(",".join([" ".join(row[0] for row in group), *shared]))
    (DATA / file_name).write_text("\n".join([*lines, ""]))
    print(f"wrote {DATA / file_name}")


def read_csv(file_name: str) -> list[list[str]]:
    """Returns the rows of a table, one for each name."""
    lines = [line for line in (DATA / file_name).read_text().splitlines() if line[:1] != "#"]
    return [[name, *rest] for names, *rest in csv.reader(lines[1:]) for name in names.split()]


def by_version(text: str) -> list[int]:
    return [int(number) for number in text.split(".")]


def write(file_name: str, table: dict[str, Any]) -> None:
    text = json.dumps(table, indent=1, ensure_ascii=False)
    text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda leaf: re.sub(r"\n\s*", " ", leaf[0]), text)
    (DATA / file_name).write_text(text + "\n")
    print(f"wrote {DATA / file_name}")
