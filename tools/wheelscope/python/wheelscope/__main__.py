"""Becomes the program."""

import os
import sys

from wheelscope import program

try:
    found = program()
except FileNotFoundError as error:
    sys.exit(f"error: {error}")
os.execv(found, ["wheelscope", *sys.argv[1:]])
