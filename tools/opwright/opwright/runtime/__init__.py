"""opwright's part of an installed extension: it loads the library, tells torch of the ops, finds faults.

opwright copies these files into the extension's package as `_opwright`; edit them in opwright.
"""
