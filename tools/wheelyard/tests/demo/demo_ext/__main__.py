"""The doctor of the demo project."""

import demo_ext

print(demo_ext.__version__)
