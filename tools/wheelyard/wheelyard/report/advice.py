"""Advises whether fewer wheels would be enough, from the first wheel and from what in the sources prevents it."""

import re

from wheelyard.config.matrix import STRATEGIES
from wheelyard.core.record import Facts, Record
from wheelyard.init import sources
from wheelyard.plan.cells import wheels
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted, some
from wheelyard.tools import wheelscope

SHOWN = 3  # how many symbols and files are named


def advise(plan: Plan, record: Record) -> list[str]:
    """Returns sentences for people; empty if the strategy is already the one with the fewest wheels."""
    if plan.strategy == STRATEGIES[0]:
        return []
    try:
        (file,) = record.files(f"repair/{plan.wheels[0].name}")
        seen = wheelscope.show(file)
    except Problem:
        return []
    best = smallest(seen)
    if STRATEGIES.index(best) < STRATEGIES.index(plan.strategy):
        now, then = len(plan.all_wheels), len(wheels(plan.matrix, best))
        fewer = (
            f"{counted(then, 'wheel')} in the place of {now}"
            if then < now
            else "as many, for all Pythons"
        )
        return [f"{file.name} would serve more: strategy `{best}` makes {fewer}. {_why(seen)}"]
    against = obstacles(seen, sources.read(plan.project.root, plan.project.folder).uses)
    better = STRATEGIES[STRATEGIES.index(plan.strategy) - 1]
    return [
        f"These prevent strategy `{better}`, which makes fewer wheels:",
        *(f"  {line}" for line in against),
    ]


def smallest(seen: Facts) -> str:
    """Returns the strategy with the fewest wheels that a wheel like this allows."""
    python, torch = seen["python_abi"]["kind"], seen["torch_abi"]["kind"]
    if (
        python == "none"
        and torch in ("none", "stable")
        and seen["cuda"]["runtime"] in ("static", "none")
    ):
        return "universal"
    return "abi3" if python in ("none", "abi3") else "each"


def _why(seen: Facts) -> str:
    python, torch = seen["python_abi"]["kind"], seen["torch_abi"]["kind"]
    words = {"none": "It does not use Python's C API", "abi3": "It uses only Python's limited API"}
    return f"{words[python]}; its torch ABI is {torch}, its CUDA runtime {seen['cuda']['runtime']}."


def obstacles(seen: Facts, uses: dict[str, list[str]]) -> list[str]:
    """Returns what binds the wheel to a version of Python, torch or CUDA, by symbol and source file."""
    found = []
    if seen["python_abi"]["kind"] == "version":
        symbols = _some(seen["python_abi"]["because"])
        found.append(
            f"Python's full C API: {symbols}{_in(uses.get('pybind') or uses.get('python', []))}"
        )
    elif seen["python_abi"]["kind"] == "abi3":
        found.append(f"Python's limited API{_in(uses.get('python', []))}")
    if seen["torch_abi"]["kind"] not in ("none", "stable"):
        symbols = _some([_readable(symbol) for symbol in seen["torch_abi"]["symbols"]])
        found.append(f"torch's C++ API: {symbols}{_in(uses.get('torch', []))}")
    if seen["cuda"]["runtime"] not in ("static", "none"):
        found.append(
            f"a {seen['cuda']['runtime']} CUDA runtime: link libcudart_static.a (nvcc -cudart static)"
        )
    return found


def _readable(symbol: str) -> str:
    """Returns a C++ function's name without its arguments: at::_ops::zeros_like::call for
    _ZN2at4_ops10zeros_like4callERK..."""
    rest = re.sub(r"^_ZNK?", "", symbol)
    names = []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(names) or symbol


def _some(symbols: list[str]) -> str:
    return some(symbols, SHOWN) or "its symbols"


def _in(files: list[str]) -> str:
    return f"; in {some(files, SHOWN)}" if files else ""
