"""The GPUs of this machine, as its driver names them."""

import re
import subprocess


def capabilities() -> list[str]:
    """The compute capability of each."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return re.findall(r"^\d+\.\d+$", done.stdout, re.MULTILINE) if done.returncode == 0 else []
