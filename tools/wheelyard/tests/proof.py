"""Evidence as the smoke test writes it on a GPU machine: for tests of who believes it."""

from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.steps.smoke import PROGRAM
from wheelyard.tools import evidence

WHEEL = "demo_ext-1.0-py3-none-any.whl"


def proof(**changes: Any) -> dict[str, Any]:
    """Evidence that counts for the wheel with sha256 "abc", with these changes."""
    seen = {
        "schema_version": evidence.SCHEMA,
        "wheel": WHEEL,
        "sha256": "abc",
        "machine": "x86_64",
        "python": "3.12.3",
        "torch": "2.11.0",
        "torch_cuda": "13.0",
        "gpu": {"name": "NVIDIA H200", "capability": "9.0", "driver": "580"},
        "program": sha256(PROGRAM),
        "spec": "a spec",
        "command": None,
        "checks": {"add float32 cpu shapes": 5, "add float32 cuda shapes": 5},
        "installed": False,
        "loaded": {"demo_ext/__init__.py": "0" * 64},
        "runs": [{"passed": True, "failures": []}],
        "failures": [],
        "passed": True,
        **changes,
    }
    return {**seen, evidence.SEAL: evidence.seal(seen)}
