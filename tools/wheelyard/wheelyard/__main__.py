"""`python -m wheelyard` is the command `wheelyard`."""

import sys

from wheelyard.cli import main

sys.exit(main())
