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
    "report": "write the report",
    "github": "make the tag's release page on GitHub",
    "serve": "serve the embedded index for pip",
}
KEYS = Path.home() / ".config/wheelyard/cluster"
KEYS_HELP = "folder of the cluster's keys (default: %(default)s)"
ABOUT = (
    "Builds, tests and publishes wheels: one command for each step, and `release` for all of them."
)


def parse() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--strategy",
        choices=["universal", "abi3", "each"],
        help="strategy instead of the matrix's default",
    )
    shared.add_argument(
        "--base", choices=["auto", "pypa", "debian"], help="base of the build image"
    )
    shared.add_argument(
        "--wheel",
        action="append",
        metavar="NAME",
        help="only wheels of the plan that match this pattern",
    )
    shared.add_argument(
        "--slow", action="store_true", help="also run the cells that the matrix calls slow"
    )
    shared.add_argument("--place", choices=PLACES, default="here", help="where the jobs run")
    run = argparse.ArgumentParser(add_help=False, parents=[shared])
    run.add_argument("--task", metavar="NAME", help="only jobs of the step that match this pattern")
    run.add_argument("--cache", type=Path, metavar="FOLDER", help="folder of a compiler cache")

    placed = argparse.ArgumentParser(add_help=False, parents=[run])
    placed.add_argument(
        "--index", choices=INDEXES, default="embedded", help="where to publish (default: embedded)"
    )
    placed.add_argument(
        "--cluster", metavar="ADDRESS", help="address of the Dask scheduler that runs the jobs"
    )
    placed.add_argument("--keys", type=Path, default=KEYS, help=KEYS_HELP)

    parser = argparse.ArgumentParser(prog="wheelyard", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"wheelyard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shown = commands.add_parser(
        "plan",
        parents=[shared],
        help="show which wheels are made, for whom, and how they are verified",
    )
    shown.add_argument(
        "--github", action="store_true", help="print the workflow's job matrices as JSON"
    )
    shown.add_argument(
        "--support", action="store_true", help="print a Markdown page on what is supported"
    )
    whole = commands.add_parser(
        "release", parents=[placed], help="run all steps, or continue a release that stopped"
    )
    whole.add_argument(
        "--from", dest="start", choices=STEPS, help="repeat this step and all that follow"
    )
    for name, help_text in HELP.items():
        commands.add_parser(name, parents=[placed], help=help_text)
    for name, help_text in OTHERS.items():
        commands.add_parser(name, parents=[run], help=help_text)
    adding = commands.add_parser(
        "append",
        parents=[run],
        help="add the release to a package index of plain files in a folder",
    )
    adding.set_defaults(command="publish", index="folder")
    adding.add_argument(
        "site",
        type=lambda text: Path(text).resolve(),
        help="folder for a web server; the index is simple/ in it",
    )
    adding.add_argument(
        "--files-at", dest="address", default="", metavar="URL",
        help="address that already has the files, such as the release page (default: copy them into the folder)",
    )  # fmt: skip
    joining = commands.add_parser(
        "join",
        parents=[run],
        help="take over the results of other jobs, from build/release/handed/",
    )
    for option, files in (
        ("--made", "of that job's files"),
        ("--all-made", "of all the release's files"),
    ):
        joining.add_argument(
            option, action="append", default=[], metavar="JOB=DIGESTS",
            help=f"digests {files}, as `digests` prints them; other bytes are refused",
        )  # fmt: skip
    commands.add_parser(
        "digests", parents=[shared], help="print the sha256 and name of each file of the release"
    )
    fresh = commands.add_parser(
        "new", help="create a project of about twenty files from the template"
    )
    fresh.add_argument("name", help="name of the distribution, such as my-ext")
    fresh.add_argument(
        "folder", nargs="?", type=Path, help="folder of the project (default: its name)"
    )
    fresh.add_argument(
        "--tools", default="", metavar="PLACE",
        help="folder of wheels, or index, with opwright, wheelyard and wheelscope (default: PyPI)",
    )  # fmt: skip
    commands.add_parser("update", help="merge the installed wheelyard's template into this project")
    start = commands.add_parser(
        "init", help="write the matrix, policy and workflow of an existing project"
    )
    start.add_argument(
        "folder",
        nargs="?",
        default="",
        help="folder of its setup.py or pyproject.toml (default: this folder)",
    )
    start.add_argument("--name", default="", help="name of the distribution")
    start.add_argument(
        "--import", dest="import_name", default="", metavar="NAME", help="name that users import"
    )
    _add_cluster_commands(commands)
    schema = commands.add_parser("schema", help="print a configuration file's JSON schema")
    schema.add_argument("file", choices=["matrix", "policy"])
    schema.add_argument("--markdown", action="store_true", help="print the reference page instead")
    toolkit = commands.add_parser("toolkit", help="assemble a CUDA toolkit in a folder")
    toolkit.add_argument("--cuda", required=True, metavar="X.Y", help="version, such as 13.0")
    toolkit.add_argument(
        "--target", choices=["x86_64", "aarch64"], default=platform.machine(),
        help="CPU to build for (default: this machine's); the compilers run on this machine",
    )  # fmt: skip
    toolkit.add_argument("folder", type=Path)
    torch = commands.add_parser(
        "torch", help="print the table for the matrix of a torch release, from what pip finds"
    )
    torch.add_argument("version", metavar="X.Y", help="version, such as 2.16")
    nightly = commands.add_parser("nightly", help="build and test with torch's newest build")
    nightly.add_argument(
        "--torch-index", default="", metavar="URL", help="index with that build (default: PyPI)"
    )
    tagging = commands.add_parser("tag", help="make the release commit and its tag")
    what = tagging.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", help="version to release: x.y.z")
    what.add_argument(
        "--check",
        action="store_true",
        help="only check that HEAD's tag, version and changelog agree",
    )
    tagging.add_argument(
        "--on", metavar="BRANCH", help="with --check: also check that HEAD is part of this branch"
    )
    tagging.add_argument(
        "--no-github-check",
        action="store_true",
        help="do not check the repository's settings on GitHub",
    )
    doctor = commands.add_parser("doctor", help="list what a release needs that is not set up")
    doctor.add_argument(
        "--github", action="store_true", required=True,
        help="check the repository's settings on GitHub, with the token in GH_TOKEN",
    )  # fmt: skip
    return parser.parse_args()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port, 0 to 65535")
    return int(text)


def _add_cluster_commands(commands: Any) -> None:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made = commands.add_parser("cluster-keys", help="make the keys of a cluster")
    made.add_argument("keys", type=Path, nargs="?", default=KEYS, help=KEYS_HELP)
    scheduler = commands.add_parser("scheduler", help="start a cluster's Dask scheduler")
    scheduler.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 for all (default: %(default)s)",
    )
    scheduler.add_argument("--port", type=_port, default=8786)
    worker = commands.add_parser("worker", help="offer this machine to a cluster")
    worker.add_argument("address", help="address of the scheduler")
    worker.add_argument(
        "--folder",
        type=Path,
        default=caches / "wheelyard/worker",
        help="folder of its files (default: %(default)s)",
    )
    worker.add_argument("--name", help="name of this worker in tables and messages")
    jobs_help = "jobs to run at a time (default: two more than there are cores)"
    worker.add_argument("--jobs", type=int, help=jobs_help)
    worker.add_argument(
        "--memory-limit", help="memory to offer, such as 64GB (default: the machine's)"
    )
    worker.add_argument(
        "--cache-gb",
        type=float,
        default=20,
        help="size of the cache of files, and of that of downloads (default: %(default)s)",
    )
    worker.add_argument(
        "--no-network", dest="network", action="store_false", help="take no job that downloads"
    )
    for command in (scheduler, worker):
        command.add_argument("--keys", type=Path, default=KEYS, help=KEYS_HELP)
