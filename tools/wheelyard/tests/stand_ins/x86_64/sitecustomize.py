"""Makes Python believe that this machine is an x86_64 one, as the GPU's runner is."""

import platform

platform.machine = lambda: "x86_64"
