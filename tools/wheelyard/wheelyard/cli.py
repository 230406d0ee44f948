"""Runs the command `wheelyard`: one subcommand for each step, and `release` for all of them."""

import argparse
import dataclasses
import importlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

from rich.console import Console

from wheelyard import doctor, new, steps, tag
from wheelyard.arguments import parse
from wheelyard.core.environment import UMASK
from wheelyard.core.job import Graph, Job
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.plan import github, show
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import INDEXES, Options, Plan
from wheelyard.problem import Problem, some
from wheelyard.report.advice import advise
from wheelyard.run import join, local, wheelhouse
from wheelyard.run.runner import Place, Runner, only_run
from wheelyard.steps import ORDER
from wheelyard.tools import evidence, suite
from wheelyard.tools.images import FOLDER

WHY_NONE = {
    "gpu": ": it runs the wheels of the architectures that [publish] gpu_evidence names in ci/matrix.toml"
}

NewPlace = Callable[[Path, local.StepModule, local.Here], Place]


def main() -> int:
    arguments = parse()
    if arguments.command not in ("new", "update"):  # whose files are the user's own
        os.umask(UMASK)
    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # a path may have letters that the terminal's encoding lacks
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _dispatch(arguments)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command continues from here", file=sys.stderr)
        return 130


def _dispatch(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "schema":
            _schema(arguments.file, arguments.markdown)
        case "new":
            folder = (arguments.folder or Path(arguments.name)).expanduser()
            print("\n".join(new.new(arguments.name, folder, arguments.tools)))
        case "update":
            print(new.update(Path.cwd()))
        case "init":
            from wheelyard import init

            init.run(Path.cwd(), Display(), arguments.folder, arguments.name, arguments.import_name)
        case "toolkit":  # runs the program with which the images assemble their toolkits
            words = [f"--cuda={arguments.cuda}", f"--target={arguments.target}", arguments.folder]
            command = [sys.executable, FOLDER / "toolkit.py", *words]
            return subprocess.run([*command, f"--debian={suite.mirror_here()}"]).returncode
        case "torch":
            from wheelyard import torch_table

            print(torch_table.table(arguments.version))
        case "nightly":
            from wheelyard import nightly

            nightly.main(arguments.torch_index)
        case "cluster-keys" | "scheduler" | "worker":
            _cluster_command(arguments)
        case _ if vars(arguments).get("cluster"):
            return _on_cluster(arguments)
        case _:
            return _planned(arguments, planning.load(_options(arguments)), local.Local)
    return 0


def _planned(arguments: argparse.Namespace, plan: Plan, place: NewPlace) -> int:
    match arguments.command:
        case "plan":
            _plan(plan, arguments)
        case "tag" if arguments.check:
            tag.check_head(plan.project, arguments.on)
        case "tag":
            if not arguments.no_github_check and (unseen := doctor.check(plan)):
                print(unseen)
            tag.make(plan.project, arguments.version)
        case "doctor":
            found = doctor.look(plan)
            print("\n".join(map(str, found)))
            return int(any(finding.level == doctor.MISSING for finding in found))
        case "digests":
            _only_print()
            print(join.digests(Record(plan.project.release_folder), plan.released))
        case _:
            _recorded(arguments, plan, place)
    return 0


def _recorded(arguments: argparse.Namespace, plan: Plan, place: NewPlace) -> None:
    """Runs a command that works with the record of a release, while no other one does."""
    display = Display()
    wheelhouse.hide_from_git(plan.project.release_folder)
    with only_run(plan.project.release_folder) as record:
        match arguments.command:
            case "join":
                words = [join.told(text) for text in arguments.made]
                words += [join.told(text, is_all=True) for text in arguments.all_made]
                released, graph = plan.released, _all_indexes(plan)
                done = join.join(
                    graph, record, _head(plan), github.may_hand_on(plan), released, words,
                    plan.check_owners,
                )  # fmt: skip
                display.say(done)
            case "report":
                _report(plan, record, display)
            case "github":
                from wheelyard.report import github as release_page

                display.say(release_page.publish(plan, record))
            case "serve":
                _serve(record, plan, display)
            case _:
                here = local.Here(plan.project.release_folder, display)
                run_at = place(plan.project.root, steps.module, here)
                _run(plan, record, display, arguments, run_at)


def _on_cluster(arguments: argparse.Namespace) -> int:
    """Runs a command with a Dask cluster as the place. What its machines offer decides the plan."""
    link, cluster = (_of_cluster(name) for name in ("link", "place"))
    if arguments.cache:
        raise Problem(
            "--cache is a folder of this machine, for trial builds here; leave out --cluster"
        )
    with link.joined(arguments.cluster, arguments.keys) as joined:
        offered = {name for member in joined.members() for name in member.resources}
        options = dataclasses.replace(
            _options(arguments), place="cluster", offered=tuple(sorted(offered))
        )

        def place(root: Path, module: local.StepModule, here: local.Here) -> Place:
            whole = cluster.Cluster(joined, local.Local(root, module, here))
            here.say(f"the cluster's dashboard, on the scheduler's machine: {joined.dashboard}")
            return whole  # type: ignore[no-any-return]

        return _planned(arguments, planning.load(options), place)


def _cluster_command(arguments: argparse.Namespace) -> None:
    """Runs one of the commands that set up a cluster: keys, a scheduler, workers."""
    keys = _of_cluster("keys")
    if arguments.command == "cluster-keys":
        print("\n".join(keys.make(arguments.keys)))
        return
    worker = _of_cluster("worker")
    if arguments.command == "scheduler":
        worker.schedule(arguments.host, arguments.port, arguments.keys, print)
        return
    settings = worker.Settings(
        keys.address(arguments.address), arguments.keys, arguments.folder,
        arguments.name or f"{platform.node()}-{os.getpid()}", arguments.jobs or local.slots(),
        int(arguments.cache_gb * 1e9), arguments.network, arguments.memory_limit,
    )  # fmt: skip
    worker.work(settings, steps.module, Display())


def _of_cluster(module: str) -> ModuleType:
    """Imports a module of the part that needs Dask."""
    try:
        return importlib.import_module(f"wheelyard.run.cluster.{module}")
    except ModuleNotFoundError as error:
        if str(error.name).split(".")[0] not in ("dask", "distributed"):
            raise
        raise Problem("Dask is missing; pip install 'wheelyard[cluster]'") from None


def _options(arguments: argparse.Namespace) -> Options:
    given = vars(arguments)
    wanted = tuple(given.get("wheel") or (["*"] if given.get("task") else []))
    fields = {
        field.name: given[field.name]
        for field in dataclasses.fields(Options)
        if field.name in given
    }
    if given.get("place") == "here" and "TORCH_PYTHON" in os.environ and evidence.capabilities():
        fields["offered"] = ("gpu",)  # torch is there too, so a release makes evidence on it
    return Options(**fields | {"wanted": wanted})


def _only_print() -> None:
    """Lets a closed pipe (`| head`) end the program without a traceback, from here on."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _schema(file: str, as_markdown: bool) -> None:
    """Prints the schema of a configuration file, as JSON for editors or as the reference page."""
    from wheelyard.config import matrix, policy, reference

    kind, name = (matrix.Matrix, matrix.FILE) if file == "matrix" else (policy.Policy, policy.FILE)
    _only_print()
    if as_markdown:
        print(reference.page(kind, name), end="")
    else:
        print(json.dumps(reference.json_schema(kind, name), indent=1))


def _plan(plan: Plan, arguments: argparse.Namespace) -> None:
    _only_print()
    if arguments.github:
        print(json.dumps(github.matrices(plan)))
    elif arguments.support:
        print(show.page(plan), end="")
    else:
        jobs = Record(plan.project.release_folder).jobs
        files = {
            n: plan.project.release_folder / f for n, job in jobs.items() for f in job["outputs"]
        }
        sizes = {name: file.stat().st_size for name, file in files.items() if file.exists()}
        show.show(plan, Console(), sizes)


def _run(
    plan: Plan, record: Record, display: Display, arguments: argparse.Namespace, place: Place
) -> None:
    """Runs all steps of a release, or only the requested one."""
    whole = arguments.command == "release"
    names, force = steps.whole_release(plan) if whole else [arguments.command], not whole
    if whole and arguments.start:
        first = ORDER.index(arguments.start)
        names, force = [name for name in names if ORDER.index(name) >= first], True
    for name in names:
        if hasattr(steps.module(name), "check"):
            steps.module(name).check(plan, record)
    graph = steps.planned(plan, names[-1])
    if not any(graph.of_step(name) for name in names):
        raise Problem(f"this plan has no job of `{names[0]}`{WHY_NONE.get(names[0], '')}")
    if changes := plan.project.changes:
        on_top = (
            f"this release contains uncommitted changes on top of commit {plan.project.commit[:12]}"
        )
        display.say(f"{on_top}: {some(changes)}")
    head = _head(plan) | {"commit": plan.project.commit}
    record.head |= {"project": plan.project.name, **head, "strategy": plan.strategy}
    runner = Runner(graph, record, display, place)
    if whole and not plan.options.wanted:
        record.keep_only(graph.jobs)
    try:
        runner.run(_chosen(graph, names, arguments.task), force=force)
    finally:
        problem = wheelhouse.fill(plan, record)
        if whole:
            _report(plan, record, display)
            for line in advise(plan, record):
                display.say(line)
    if problem:
        raise Problem(problem)


def _chosen(graph: Graph, names: list[str], pattern: str | None) -> list[Job]:
    """Returns the jobs of the steps, or only those that match the pattern if there is one."""
    found = [job for name in names for job in graph.of_step(name)]
    chosen = [job for job in found if fnmatchcase(job.unit, pattern or "*")]
    if pattern and not chosen:
        units = ", ".join(job.unit for job in found)
        raise Problem(f"{names[0]} has no job {pattern}; it has: {units}")
    return chosen


def _head(plan: Plan) -> dict[str, str]:
    """Returns the facts that all records of one release share."""
    return {"version": plan.project.version, "commit": plan.project.commit.rstrip("+")}


def _all_indexes(plan: Plan) -> Graph:
    """Returns the jobs of a release to every index."""
    graphs = [steps.planned(plan.asked(index=index)) for index in INDEXES]
    return Graph({name: job for graph in graphs for name, job in graph.jobs.items()})


def _report(plan: Plan, record: Record, display: Display) -> None:
    from wheelyard.report.page import write

    display.say(f"the report: {write(plan, record)}")


def _serve(record: Record, plan: Plan, display: Display) -> None:
    """Serves the embedded index of the last release until it is interrupted."""
    from wheelyard.tools import index

    (digest,) = record.outputs("build/sdist").values()
    with index.embedded(record.folder / "index", digest) as served:
        for wheel in (wheel for wheel in plan.wheels if wheel.arch == plan.machine):
            ((file, recorded),) = record.outputs(f"repair/{wheel.name}").items()
            place = served.part(wheel.index_name) if wheel.index_name and served.part else served
            # By address and digest: on other indexes the name may belong to somebody else.
            display.say(f"pip install '{plan.project.name} @ {place.address(file, recorded)}'")
        display.say("Ctrl-C ends it")
        signal.pause()
