"""The images that this user has made, by their ids: a tag is a name that anyone with access to the engine can move."""

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path

from wheelyard.core import shell
from wheelyard.core.engine import Engine
from wheelyard.core.lock import turn


def file() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "wheelyard/images.json"


def is_ours(engine: Engine, tag: str) -> bool:
    """Whether the engine has the image that was made here under this tag. Where another user has made one too, which
    moves the tag, it is moved back."""
    noted = _read().get(tag)
    if noted is None or engine.image_id(noted) != noted:
        return False
    if engine.image_id(tag) != noted:
        shell.capture([engine.command, "tag", noted, tag])
    return engine.image_id(tag) == noted


def turn_of(name: str) -> AbstractContextManager[None]:
    """Waits until no other run of this user makes what has that name."""
    file().parent.mkdir(parents=True, exist_ok=True)
    return turn(file().with_name(f"{name}.turn"))


def note(engine: Engine, tag: str) -> None:
    """Remembers an image that was just made."""
    with turn_of("images"):
        ids = _read() | {tag: engine.image_id(tag)}
        new = file().with_suffix(".new")
        new.write_text(json.dumps(ids, indent=1, sort_keys=True))
        new.replace(file())


def _read() -> dict[str, str | None]:
    try:
        return dict(json.loads(file().read_text()))
    except (
        OSError,
        ValueError,
    ):  # none yet: then images are made again, mostly from the engine's cache
        return {}
