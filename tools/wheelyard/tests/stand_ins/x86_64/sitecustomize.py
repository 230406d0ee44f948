"""Has Python take this machine for one of x86_64, as the GPU's runner is."""

import platform

platform.machine = lambda: "x86_64"
