"""Defines the command line of `wheelyard`: commands, options and help."""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

from wheelyard import __version__
from wheelyard.plan.plan import INDEXES, PLACES
from wheelyard.steps import HELP, STEPS

OTHERS = {
    "report": "write the report page of what there is",
    "github": "make the release page of the tag on GitHub",
    "serve": "serve the embedded index to pip",
}
CLUSTER = ("cluster-keys", "scheduler", "worker")
KEYS = Path.home() / ".config/wheelyard/cluster"
KEYS_HELP = "the folder of the cluster's keys"
ABOUT = "One command for each step, and `release` for all of them."


def parse() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--strategy", choices=["universal", "abi3", "each"], help="overrides the matrix's default"
    )
    shared.add_argument("--base", choices=["auto", "pypa", "debian"], help="the build image's base")
    shared.add_argument("--toolkit", help="make universal wheels with this toolkit of the matrix")
    shared.add_argument(
        "--wheel", action="append", metavar="NAME", help="only this wheel of the plan; a pattern"
    )
    shared.add_argument(
        "--slow", action="store_true", help="also run the cells that the matrix calls slow"
    )
    shared.add_argument("--place", choices=PLACES, default="here", help="where the jobs run")
    run = argparse.ArgumentParser(add_help=False, parents=[shared])
    run.add_argument("--task", metavar="NAME", help="only this job of the step; a pattern")
    run.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="compile from this cache, in all steps of a run",
    )
    run.add_argument("--verbose", action="store_true", help="a line for each finished job")

    placed = argparse.ArgumentParser(add_help=False, parents=[run])
    placed.add_argument("--index", choices=INDEXES, default="embedded")
    placed.add_argument("--cluster", metavar="ADDRESS", help="run the jobs there: a Dask scheduler")
    placed.add_argument("--keys", type=Path, default=KEYS, help=KEYS_HELP)

    parser = argparse.ArgumentParser(prog="wheelyard", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"wheelyard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shown = commands.add_parser(
        "plan", parents=[shared], help="show what is built, served and verified"
    )
    shown.add_argument(
        "--github", action="store_true", help="print the workflow's job matrices as JSON"
    )
    shown.add_argument(
        "--support", action="store_true", help="print a page in Markdown on what is supported"
    )
    whole = commands.add_parser(
        "release", parents=[placed], help="run all steps; go on where a run stopped"
    )
    whole.add_argument(
        "--from", dest="start", choices=STEPS, help="repeat this step and all that follow"
    )
    of_steps = {
        name: commands.add_parser(name, parents=[placed], help=help_text)
        for name, help_text in HELP.items()
    }
    of_steps["image"].add_argument(
        "--prune", action="store_true", help="instead, remove those that this project does not need"
    )
    of_steps["image"].add_argument(
        "--dry-run", action="store_true", help="with --prune: only say which"
    )
    for name, help_text in OTHERS.items():
        commands.add_parser(name, parents=[run], help=help_text)
    adding = commands.add_parser(
        "append",
        parents=[run],
        help="add the release to the package index of plain files in a folder",
    )
    adding.add_argument(
        "site", type=Path, help="that a web server serves; simple/ in it is the index"
    )
    adding.add_argument(
        "--files-at", dest="address", default="", metavar="URL",
        help="where the files lie already, such as the release page; else they are copied into the folder",
    )  # fmt: skip
    joining = commands.add_parser(
        "join",
        parents=[run],
        help="take over what other jobs handed on, from build/release/handed/",
    )
    for option, files in (("--made", "that job made"), ("--all-made", "the whole release has")):
        joining.add_argument(
            option, action="append", default=[], metavar="JOB=DIGESTS",
            help=f"refuse other bytes than these, as `digests` printed them: what {files}",
        )  # fmt: skip
    commands.add_parser(
        "digests", parents=[shared], help="print the sha256 and name of each file of the release"
    )
    fresh = commands.add_parser(
        "new", help="start a project of about twenty files from the template"
    )
    fresh.add_argument("name", help="of the distribution, such as my-ext")
    fresh.add_argument(
        "folder", nargs="?", type=Path, help="where it goes; else a folder of that name"
    )
    fresh.add_argument(
        "--tools", default="", metavar="PLACE",
        help="a folder of wheels, or an index, with opwright, wheelyard and wheelscope; else PyPI",
    )  # fmt: skip
    commands.add_parser("update", help="merge the installed wheelyard's template into this project")
    start = commands.add_parser("init", help="write the files that get an existing project started")
    start.add_argument(
        "folder", nargs="?", default="", help="where its setup is, if not in this folder"
    )
    start.add_argument(
        "--import", dest="import_name", default="", metavar="NAME", help="what users import"
    )
    _add_cluster_commands(commands)
    schema = commands.add_parser("schema", help="print a configuration file's JSON schema")
    schema.add_argument("file", choices=["matrix", "policy"])
    schema.add_argument("--markdown", action="store_true", help="as the reference page")
    toolkit = commands.add_parser("toolkit", help="assemble a CUDA toolkit in a folder")
    toolkit.add_argument("--cuda", required=True, metavar="X.Y", help="its version, such as 13.0")
    toolkit.add_argument(
        "--target", choices=["x86_64", "aarch64"], default=platform.machine(),
        help="the CPU to build for; the compilers are for this machine's",
    )  # fmt: skip
    toolkit.add_argument("folder", type=Path)
    torch = commands.add_parser(
        "torch", help="print the matrix's table of a torch release, from what pip finds of it"
    )
    torch.add_argument("version", metavar="X.Y", help="such as 2.16")
    nightly = commands.add_parser("nightly", help="build and test on torch's newest build")
    nightly.add_argument(
        "--torch-index",
        default="",
        metavar="URL",
        help="where pip finds that build, if not on PyPI",
    )
    tagging = commands.add_parser("tag", help="make the release commit and its tag, or nothing")
    what = tagging.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", help="the version to release: x.y.z")
    what.add_argument("--check", action="store_true", help="does HEAD agree with itself?")
    tagging.add_argument("--on", metavar="BRANCH", help="with --check: is HEAD part of it?")
    tagging.add_argument(
        "--no-github-check", action="store_true", help="do not look at the repository's settings"
    )
    doctor = commands.add_parser("doctor", help="say what a release needs and is not set up")
    doctor.add_argument(
        "--github", action="store_true", required=True,
        help="in the repository's settings on GitHub; takes a token in GH_TOKEN",
    )  # fmt: skip
    return parser.parse_args()


def _add_cluster_commands(commands: Any) -> None:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made = commands.add_parser("cluster-keys", help="make the keys of a cluster of machines")
    made.add_argument("keys", type=Path, nargs="?", default=KEYS, help=KEYS_HELP)
    scheduler = commands.add_parser("scheduler", help="start a cluster's Dask scheduler")
    scheduler.add_argument(
        "--host", default="127.0.0.1", help="where it listens; 0.0.0.0: everywhere"
    )
    scheduler.add_argument("--port", type=int, default=8786)
    worker = commands.add_parser("worker", help="offer this machine to a cluster")
    worker.add_argument("address", help="the scheduler's address")
    worker.add_argument("--folder", type=Path, default=caches / "wheelyard/worker")
    worker.add_argument("--name", help="of this worker, in tables and messages")
    jobs_help = "at a time; else two more than there are cores"
    worker.add_argument("--jobs", type=int, help=jobs_help)
    worker.add_argument("--memory-limit", help="that it offers, such as 64GB; else the machine's")
    worker.add_argument("--cache-gb", type=float, default=20, help="for files, and for downloads")
    worker.add_argument(
        "--no-network", dest="network", action="store_false", help="take no job that downloads"
    )
    for command in (scheduler, worker):
        command.add_argument("--keys", type=Path, default=KEYS, help=KEYS_HELP)
