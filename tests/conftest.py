"""Keeps a clone that was not built from hiding the installed package."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).parent.parent)
if not Path(ROOT, "cuda_ext_example/_opwright").exists() and ROOT in sys.path:
    sys.path.remove(ROOT)
    sys.path.append(ROOT)
