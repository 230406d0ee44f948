"""opwright's part of an installed extension: loads the library, registers the ops with torch, finds faults.

opwright copies these files into the extension's package as `_opwright`; edit them in opwright.
"""
