"""Runs the command `wheelyard` as `python -m wheelyard`."""

import sys

from wheelyard.cli import main

sys.exit(main())
