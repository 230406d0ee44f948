"""`python -m ci`: one command per step, and `release` for all of them."""

import argparse
import importlib
import signal
import sys
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

from rich.console import Console

from ci import index, join, matrix, plan, release
from ci.errors import Problem
from ci.progress import Display
from ci.state import Task
from ci.steps import ALONE, DEVELOPER, STEPS


def main() -> int:
    arguments = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _dispatch(arguments)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command in DEVELOPER:
        return int(_module(arguments.command).run(arguments))
    if arguments.command == "plan":
        facts = matrix.load()
        made = plan.make(facts, arguments.strategy)
        if arguments.github:
            print(plan.github(facts, made))
        else:
            plan.show(facts, made, Console())
        return 0

    display = Display(verbose=arguments.verbose)
    wanted = arguments.wheel or (["*"] if arguments.task else [])
    work = release.Release(
        display, arguments.strategy, arguments.base, wanted, arguments.index, arguments.toolkit
    )
    if arguments.command == "build":
        work.cache = arguments.cache
    if arguments.command == "join":
        join.run(work)
        return 0
    if arguments.command == "serve":
        return _serve(work)
    names = list(STEPS)
    force = arguments.command != "release"
    if force:
        names = [arguments.command]
    elif arguments.only:
        names, force = [arguments.only], True
    elif arguments.start:
        names, force = names[names.index(arguments.start) :], True
    steps = {name: _step(name, arguments.task) for name in names}
    try:
        release.run(work, steps, force=force)
    finally:
        if len(names) > 1:
            display.show_summary()
    if names[-1] == "report":
        display.say(
            f"In {work.wheelhouse}: {', '.join(path.name for path in work.artifacts().values())}"
        )
    return 0


def _serve(work: release.Release) -> int:
    """Keeps the embedded index of the last release open."""
    requirement = f"{work.project.name}=={work.project.version}"
    with index.embedded(work) as served:
        work.display.say(f"pip install --extra-index-url {served.simple} {requirement}")
        work.display.say("Ctrl-C ends it")
        signal.pause()
    return 0


def _step(name: str, pattern: str | None) -> release.Step:
    """The tasks of a step; only those that match the pattern, if there is one."""
    tasks: release.Step = _module(name).tasks

    def matching(work: release.Release) -> list[Task]:
        found = [task for task in tasks(work) if fnmatch(task.unit, pattern or "*")]
        if pattern and not found:
            units = ", ".join(task.unit for task in tasks(work))
            raise Problem(f"{name} has no task {pattern}; it has: {units}")
        return found

    return matching


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"ci.{command.replace('-', '_')}")


def _parse() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--strategy", choices=["universal", "each"], help="overrides the matrix's default"
    )
    run = argparse.ArgumentParser(add_help=False)
    run.add_argument(
        "--base", choices=["auto", "pypa", "debian"], default="auto", help="the build image's base"
    )
    run.add_argument("--toolkit", help="make universal wheels with this toolkit of the matrix")
    run.add_argument(
        "--wheel", action="append", metavar="NAME", help="only this wheel of the plan; a pattern"
    )
    run.add_argument("--task", metavar="NAME", help="only this task of the step; a pattern")
    run.add_argument("--index", choices=["embedded", "testpypi", "pypi"], default="embedded")
    run.add_argument("--verbose", action="store_true", help="a line for each finished task")

    parser = argparse.ArgumentParser(prog="python -m ci", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser(
        "plan", parents=[shared], help="show what is built, served and verified"
    )
    show.add_argument(
        "--github", action="store_true", help="print the workflow's job matrices as JSON"
    )
    whole = commands.add_parser(
        "release", parents=[shared, run], help="run all steps; go on where a run stopped"
    )
    whole.add_argument(
        "--from", dest="start", choices=STEPS, help="repeat this step and all that follow"
    )
    whole.add_argument("--only", choices=STEPS, help="repeat this step alone")
    commands.add_parser("serve", parents=[shared, run], help="serve the embedded index to pip")
    for name, help_text in (STEPS | ALONE).items():
        commands.add_parser(name, parents=[shared, run], help=help_text)
    commands.choices["build"].add_argument(
        "--cache", type=Path, metavar="FOLDER", help="a trial build: compile from this cache"
    )
    for name, help_text in DEVELOPER.items():
        _module(name).add_arguments(commands.add_parser(name, help=help_text))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
