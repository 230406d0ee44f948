"""`opwright`, or `python -m opwright`: build for this machine's GPU, say why that fails or takes long, time the ops."""

import argparse
import signal
import sys
from pathlib import Path

from opwright import __version__, bench
from opwright.build import dev, doctor, explain_build, inside
from opwright.build.project import BuildError
from opwright.build.runtime import copy_runtime

COMMANDS = {
    "bench": (bench, "time each op of the list beside torch's own"),
    "dev": (dev, "build for this machine's GPU behind an editable install"),
    "doctor": (
        doctor,
        "check this machine: compilers, toolkit, cache, jobs, GPU; say what fixes it",
    ),
    "explain-build": (explain_build, "say where the last build's time went"),
    "inside": (inside, "show PTX and SASS, or the symbols, of the library or of a source"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="opwright", description=__doc__)
    parser.add_argument("--version", action="version", version=f"opwright {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_text) in COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=help_text))
    commands.add_parser("include", help="print the folder of the headers, for a compiler's -I")
    copying = commands.add_parser(
        "runtime",
        help="copy the Python part into a package, as a build does: for editors and type checkers",
    )
    copying.add_argument("package", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "include":
        print(Path(__file__).parent / "include")
        return 0
    if arguments.command == "runtime":
        copy_runtime(arguments.package)
        return 0
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a traceback
    try:
        return int(COMMANDS[arguments.command][0].run(arguments))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
