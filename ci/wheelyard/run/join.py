"""Takes over what other jobs handed on below wheelhouse/handed/, files and records alike.

Runners share no disk. Each uploads its release.json with the files that later jobs need; here they become one record
again. A record may name only jobs of this plan, and each only files that it is for. Two that disagree, or a file that
is not what its record says, stop everything.
"""

import json
from pathlib import Path

from wheelyard.core.graph import Graph
from wheelyard.core.record import Facts, Record
from wheelyard.problem import Problem

FOLDER = "handed"


def join(graph: Graph, record: Record, here: dict[str, str]) -> str:
    """Returns what was done. `here` are the facts of this checkout that a record must share."""
    found = sorted((record.wheelhouse / FOLDER).glob("**/release.json"))
    if not found:
        raise Problem(
            f"there is no release.json below {record.wheelhouse / FOLDER}; put there what the "
            "earlier jobs uploaded, a folder for each"
        )
    for file in found:
        _take(graph, record, file.parent, here)
    record.write()
    return f"joined {len(found)} records: {len(record.jobs)} jobs"


def _take(graph: Graph, record: Record, folder: Path, here: dict[str, str]) -> None:
    other = Record(folder)
    for key, value in here.items():
        if other.head.get(key) != value:
            raise Problem(
                f"{folder.name} was made for {key} {other.head.get(key)}, but this tree has {value}; "
                "check out what it was made from, or run that job again"
            )
    record.head |= {key: other.head[key] for key in here}
    for name, entry in other.jobs.items():
        _check_shape(name, entry, folder)
        if name not in graph.jobs:
            raise Problem(f"{folder.name} hands on `{name}`, which is no job of this plan")
        ours = record.jobs.get(name, entry)
        if ours["outputs"] != entry["outputs"]:
            raise Problem(
                f"{folder.name} and another job made different files in {name}: {_differing(ours, entry)}; "
                "builds must be reproducible: run both jobs again, and compare if it stays so"
            )
        record.take(name, ours, folder, graph.jobs[name])


def _check_shape(name: str, entry: Facts, folder: Path) -> None:
    """A record is JSON that somebody else wrote."""
    kinds = {"verdict": str, "seconds": int | float, "inputs": dict, "outputs": dict, "facts": dict}
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(k), t) for k, t in kinds.items()
    ):
        raise Problem(
            f"the record of {name} from {folder.name} is damaged: {json.dumps(entry)[:200]}"
        )


def _differing(ours: Facts, theirs: Facts) -> str:
    return ", ".join(
        sorted(name for name, _ in ours["outputs"].items() ^ theirs["outputs"].items())
    )
