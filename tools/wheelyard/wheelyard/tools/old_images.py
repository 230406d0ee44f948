"""Removes images that wheelyard made and a project does not need, and their layers in docker's build cache.

Images are recognised by their label. The cache has no labels: layers made by commands of our Dockerfile are removed
with everything built on them, unless an image uses them.
"""

import json
import re
from collections.abc import Callable, Iterable

from wheelyard.core import shell
from wheelyard.core.engine import IMAGE, Engine
from wheelyard.tools import images, suite

COMMAND = re.compile(r"^RUN (?:--mount=\S+ +)*(.*)$", re.MULTILINE)
SHELL = "/bin/sh -c "
SECONDS = 3600  # removing an image of torch may take minutes


def remove(
    engine: Engine, needed: Iterable[images.Recipe], say: Callable[[str], None], *, dry_run: bool
) -> None:
    """Removes unneeded images and layers. A dry run only names the images, and the layers that the cache would lose
    with them."""
    kept: set[str] = set()
    for recipe in needed:
        kept |= {recipe["tag"], *map(suite.tag, recipe["bases"].values())}
    verb = "would remove" if dry_run else "removed"
    shown = "--format={{.Repository}}:{{.Tag}} {{.Size}}"
    asked = [engine.command, "images", f"--filter=label={IMAGE}", shown]
    for line in (shell.capture(asked) or "").splitlines():
        name, size = line.removeprefix("localhost/").split(" ", 1)  # podman's own prefix
        # Images that others build on ours have its label too.
        if name in kept or not engine.has_ours(name):
            continue
        words = [engine.command, "image", "rm", name]
        if dry_run or shell.capture(words, SECONDS) is not None:
            say(f"{verb} {name}, {size}")
        else:
            say(f"{name} is kept: a container uses it")
    layers = _unused_layers(engine)
    if layers and not dry_run:
        which = f"--filter=id=^({'|'.join(layers)})$"
        shell.capture([engine.command, "builder", "prune", "--force", which], SECONDS)
    for size in layers.values():
        say(f"{verb} a layer of the build cache, {size}")


def _unused_layers(engine: Engine) -> dict[str, str]:
    """Returns the ids and sizes of the layers in docker's build cache that we caused and no image uses."""
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
