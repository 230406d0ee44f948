"""Removes images that wheelyard made and a project does not need, and what docker's build cache keeps of such images.

Images are told by their label. The cache has none: of it, what the commands of our Dockerfile made and what stands on
that goes, unless an image has it.
"""

import json
import re
from collections.abc import Callable, Iterable

from wheelyard.core import shell
from wheelyard.core.engine import IMAGE, Engine
from wheelyard.tools import images, suite

COMMAND = re.compile(r"^RUN (?:--mount=\S+ +)*(.*)$", re.MULTILINE)
SHELL = "/bin/sh -c "
SECONDS = 3600  # an image of torch may take minutes to go


def remove(
    engine: Engine, needed: Iterable[images.Recipe], say: Callable[[str], None], *, dry_run: bool
) -> None:
    """A dry run names images with the layers that the cache would lose with them."""
    kept: set[str] = set()
    for recipe in needed:
        kept |= {recipe["tag"], *map(suite.tag, recipe["bases"].values())}
    verb = "would remove" if dry_run else "removed"
    shown = "--format={{.Repository}}:{{.Tag}} {{.Size}}"
    asked = [engine.command, "images", f"--filter=label={IMAGE}", shown]
    for line in (shell.capture(asked) or "").splitlines():
        name, size = line.removeprefix("localhost/").split(" ", 1)  # as podman calls its own
        # What others build on ours has its label, too.
        if name in kept or not engine.has_ours(name):
            continue
        words = [engine.command, "image", "rm", name]
        if dry_run or shell.capture(words, SECONDS) is not None:
            say(f"{verb} {name}, {size}")
        else:
            say(f"{name} stays: a container has it")
    layers = _unused_layers(engine)
    if layers and not dry_run:
        which = f"--filter=id=^({'|'.join(layers)})$"
        shell.capture([engine.command, "builder", "prune", "--force", which], SECONDS)
    for size in layers.values():
        say(f"{verb} a layer of the build cache, {size}")


def _unused_layers(engine: Engine) -> dict[str, str]:
    """The ids and sizes of what is in docker's build cache because of us, and in no image."""
    asked = [engine.command, "system", "df", "--verbose", "--format={{json .BuildCache}}"]
    layers = {layer["ID"].rstrip("*"): layer for layer in json.loads(shell.capture(asked) or "[]")}
    commands = COMMAND.findall((images.FOLDER / "Dockerfile").read_text().replace("\\\n", ""))
    ours: set[str] = set()
    found = {n for n, of in layers.items() if of["Description"].partition(SHELL)[2] in commands}
    while not found <= ours:
        ours |= found
        found = {n for n, of in layers.items() if not ours.isdisjoint(of["Parent"].split(", "))}
    unused = [n for n in sorted(ours) if layers[n]["Shared"] == layers[n]["InUse"] == "false"]
    return {name: layers[name]["Size"] for name in unused}
