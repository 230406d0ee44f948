"""`wheelyard`: one command for each step, and `release` for all of them."""

import argparse
import dataclasses
import json
import signal
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from wheelyard import __version__, steps
from wheelyard.core.graph import Graph
from wheelyard.core.job import Job
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.plan import github, show, tag
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import INDEXES, PLACES, Options, Plan
from wheelyard.problem import Problem
from wheelyard.report.advice import advise
from wheelyard.run import join, local
from wheelyard.run.runner import Runner, only_run
from wheelyard.steps import ELSEWHERE, STEPS

OTHERS = {
    "join": "take over what other jobs handed on, from wheelhouse/handed/",
    "report": "write the report page of what there is",
    "github": "make the release page of the tag on GitHub",
    "serve": "serve the embedded index to pip",
}


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
    if arguments.command == "schema":
        return _schema(arguments.file, arguments.markdown)
    if arguments.command == "init":
        from wheelyard import init

        init.run(Path.cwd(), Display(), arguments.folder)
        return 0
    plan = planning.load(_options(arguments))
    match arguments.command:
        case "plan":
            return _plan(plan, arguments.github)
        case "tag":
            if arguments.check:
                tag.check_head(plan.project)
            else:
                tag.make(plan.project, arguments.version)
            return 0
    display = Display(verbose=arguments.verbose)
    with only_run(plan.project.wheelhouse) as record:
        match arguments.command:
            case "join":
                display.say(join.join(_both_indexes(plan), record, _head(plan)))
            case "report":
                _report(plan, record, display)
            case "github":
                _github(plan, record, display)
            case "serve":
                _serve(record, plan, display)
            case _:
                _run(plan, record, display, arguments)
    return 0


def _options(arguments: argparse.Namespace) -> Options:
    given = vars(arguments)
    wanted = tuple(given.get("wheel") or (["*"] if given.get("task") else []))
    fields = {
        field.name: given[field.name]
        for field in dataclasses.fields(Options)
        if field.name in given
    }
    return Options(**fields | {"wanted": wanted})


def _schema(file: str, as_markdown: bool) -> int:
    """The schema of a configuration file: for editors, or as the reference page."""
    from wheelyard.config import json_schema, matrix, policy, reference

    kind, name = (matrix.Matrix, matrix.FILE) if file == "matrix" else (policy.Policy, policy.FILE)
    if as_markdown:
        print(reference.page(kind, name), end="")
    else:
        print(json.dumps(json_schema.of_file(kind, name), indent=1))
    return 0


def _plan(plan: Plan, as_matrices: bool) -> int:
    if as_matrices:
        print(json.dumps(github.matrices(plan)))
    else:
        jobs = Record(plan.project.wheelhouse).jobs
        took = {name: job["seconds"] for name, job in jobs.items() if job["verdict"] == "passed"}
        show.show(plan, Console(), took)
    return 0


def _run(plan: Plan, record: Record, display: Display, arguments: argparse.Namespace) -> None:
    """Runs all steps, or those that were asked for."""
    whole = arguments.command == "release"
    names, force = list(STEPS) if whole else [arguments.command], not whole
    if whole and arguments.only:
        names, force = [arguments.only], True
    elif whole and arguments.start:
        names, force = names[names.index(arguments.start) :], True
    for name in names:
        if hasattr(steps.module(name), "check"):
            steps.module(name).check(plan, record)
    graph = steps.planned(plan, names[-1])
    record.head |= {"project": plan.project.name, **_head(plan), "strategy": plan.strategy}
    here = local.Here(plan.project.wheelhouse, display)
    place = local.Local(plan.project.root, steps.module, here)
    runner = Runner(graph, record, display, place)
    if whole and not plan.options.wanted:
        record.keep_only(graph.jobs)
    try:
        runner.run(_chosen(graph, names, arguments.task), force=force)
    finally:
        if whole:
            display.show_summary()
            _report(plan, record, display)
            for line in advise(plan, record):
                display.say(line)


def _chosen(graph: Graph, names: list[str], pattern: str | None) -> list[Job]:
    """The jobs of the steps; only those that match the pattern, if there is one."""
    found = [job for name in names for job in graph.of_step(name)]
    chosen = [job for job in found if fnmatchcase(job.unit, pattern or "*")]
    if pattern and not chosen:
        units = ", ".join(job.unit for job in found)
        raise Problem(f"{names[0]} has no job {pattern}; it has: {units}")
    return chosen


def _head(plan: Plan) -> dict[str, str]:
    """What all records of one release share."""
    return {"version": plan.project.version, "commit": plan.project.commit.rstrip("+")}


def _both_indexes(plan: Plan) -> Graph:
    """The jobs of a release that goes to both public indexes, one after the other."""
    graphs = []
    for index in INDEXES:
        options = dataclasses.replace(plan.options, index=index)
        graphs.append(steps.planned(dataclasses.replace(plan, options=options)))
    return Graph({name: job for graph in graphs for name, job in graph.jobs.items()})


def _report(plan: Plan, record: Record, display: Display) -> None:
    from wheelyard.report.write import write

    display.say(f"the report: {write(plan, record)}")


def _github(plan: Plan, record: Record, display: Display) -> None:
    from wheelyard.report.github import publish

    folder = plan.project.wheelhouse / "assets"
    folder.mkdir(exist_ok=True)
    display.say(publish(plan, record, folder))


def _serve(record: Record, plan: Plan, display: Display) -> None:
    """Keeps the embedded index of the last release open."""
    from wheelyard.tools import index

    (digest,) = record.outputs("build/sdist").values()
    log = record.wheelhouse / "logs/devpi.log"
    with index.embedded(record.wheelhouse / "index", index.stage_of(digest), log) as served:
        display.say(f"pip install --extra-index-url {served.simple} {plan.project.name}")
        display.say("Ctrl-C ends it")
        signal.pause()


def _parse() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--strategy", choices=["universal", "abi3", "each"], help="overrides the matrix's default"
    )
    shared.add_argument("--base", choices=["auto", "pypa", "debian"], help="the build image's base")
    shared.add_argument("--toolkit", help="make universal wheels with this toolkit of the matrix")
    shared.add_argument(
        "--wheel", action="append", metavar="NAME", help="only this wheel of the plan; a pattern"
    )
    shared.add_argument("--place", choices=PLACES, default="here", help="where the jobs run")
    shared.add_argument("--index", choices=INDEXES, default="embedded")
    run = argparse.ArgumentParser(add_help=False, parents=[shared])
    run.add_argument("--task", metavar="NAME", help="only this job of the step; a pattern")
    run.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="compile from this cache, in all steps of a run",
    )
    run.add_argument("--verbose", action="store_true", help="a line for each finished job")

    parser = argparse.ArgumentParser(prog="wheelyard", description=__doc__)
    parser.add_argument("--version", action="version", version=f"wheelyard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shown = commands.add_parser(
        "plan", parents=[shared], help="show what is built, served and verified"
    )
    shown.add_argument(
        "--github", action="store_true", help="print the workflow's job matrices as JSON"
    )
    whole = commands.add_parser(
        "release", parents=[run], help="run all steps; go on where a run stopped"
    )
    whole.add_argument(
        "--from", dest="start", choices=STEPS, help="repeat this step and all that follow"
    )
    whole.add_argument("--only", choices=STEPS, help="repeat this step alone")
    for name, help_text in (STEPS | ELSEWHERE | OTHERS).items():
        commands.add_parser(name, parents=[run], help=help_text)
    start = commands.add_parser("init", help="write the files that get a project started")
    start.add_argument(
        "folder", nargs="?", default="", help="where its setup is, if not in this folder"
    )
    schema = commands.add_parser("schema", help="print a configuration file's JSON schema")
    schema.add_argument("file", choices=["matrix", "policy"])
    schema.add_argument("--markdown", action="store_true", help="as the reference page")
    tagging = commands.add_parser("tag", help="make the release commit and its tag, or nothing")
    what = tagging.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", help="the version to release: x.y.z")
    what.add_argument("--check", action="store_true", help="does HEAD agree with itself?")
    return parser.parse_args()
