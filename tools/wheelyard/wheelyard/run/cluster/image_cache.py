"""A worker's images: those that its jobs used last stay, the others go; a release may have hundreds."""

import json
import threading
from pathlib import Path

from wheelyard.core import shell
from wheelyard.core.engine import Engine

KEPT = 24


class ImageCache:
    def __init__(self, note: Path) -> None:
        self._note, self._lock = note, threading.Lock()

    def used(self, tag: str, engine: Engine) -> None:
        """Notes an image that a job has used; what was used longest ago is removed, unless a container has it."""
        with self._lock:
            try:
                known: list[str] = json.loads(self._note.read_text())
            except (OSError, ValueError):
                known = []
            known = [tag, *(other for other in known if other != tag)]
            for old in known[KEPT:]:
                shell.capture([engine.command, "image", "rm", old])
            self._note.write_text(json.dumps(known[:KEPT]))
