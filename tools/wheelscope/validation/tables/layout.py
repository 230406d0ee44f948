"""Writes a generated table as JSON for people too: each innermost list or map on one line."""

import json
import re
from pathlib import Path
from typing import Any

DATA = Path("src/data")


def write(file_name: str, table: dict[str, Any]) -> None:
    text = json.dumps(table, indent=1, ensure_ascii=False)
    text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda leaf: re.sub(r"\n\s*", " ", leaf[0]), text)
    (DATA / file_name).write_text(text + "\n")
    print(f"wrote {DATA / file_name}")
