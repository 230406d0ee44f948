"""auditwheel, as the reference for the platform tag that a wheel's binaries justify."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from auditwheel.error import NonPlatformWheelError, WheelToolsError
from auditwheel.wheel_abi import WheelAbIInfo, analyze_wheel_abi
from auditwheel.wheeltools import get_wheel_architecture, get_wheel_libc

from validation.corpus.reference import Facts, Reference


def analyse(wheel: Path, exclude: frozenset[str]) -> WheelAbIInfo:
    """Analyses a wheel without a search path: otherwise, auditwheel adds the needs of any library
    on this machine that has a needed name."""

    def claimed(what: Any) -> Any:
        try:
            return what(wheel.name)
        except (WheelToolsError, NonPlatformWheelError):
            return None

    return analyze_wheel_abi(
        claimed(get_wheel_libc),
        claimed(get_wheel_architecture),
        wheel,
        exclude,
        disable_isa_ext_check=False,
        allow_graft=False,
        args_ldpaths="/nowhere",
    )


def outside(found: WheelAbIInfo) -> frozenset[str]:
    """Returns the libraries that no policy has: the "lowest" policy is that of the newest systems,
    and has the most."""
    return frozenset(found.external_refs[found.policies.lowest.name].libs)


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (it unpacks the wheel itself)
    """Returns the overall tag, as if the libraries that the wheel and the platform lack were
    present (wheelscope lists these separately); `any` for wheels without ELF files."""
    try:
        found, lacking = analyse(wheel, frozenset()), frozenset[str]()
        while more := outside(found) - lacking:  # excluded libraries reveal others
            lacking |= more
            found = analyse(wheel, lacking)
        tag = found.overall_policy.name
    except NonPlatformWheelError:
        tag = "any"
    except Exception as problem:  # it gives up on unreadable files
        tag = f"no answer: {problem}"
    return {"": {"platform_tag": tag}}


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    return {"": {"platform_tag": item["platform_tag"]}}


AUDITWHEEL = Reference("auditwheel", lambda: version("auditwheel") + ", whole", ask, ours)
