"""Where wheelyard's project lies, and the repository around it, whose matrix and workflows some tests read."""

from pathlib import Path

TOOL = Path(__file__).resolve().parents[1]
ROOT = TOOL.parents[1]
