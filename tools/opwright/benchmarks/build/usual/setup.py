"""The usual way to build the same ops: CUDAExtension on torch/extension.h.

Environment: USE_NINJA (0 or 1, default 1), and torch's own TORCH_CUDA_ARCH_LIST and MAX_JOBS.
"""

import os

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="usual",
    version="0.1.0",
    ext_modules=[
        CUDAExtension(
            "usual",
            ["ops.cpp", "my_add.cu", "my_fast_add.cu", "cust_add.cu", "rms_norm.cu"],
            extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3"]},
        )
    ],
    cmdclass={
        "build_ext": BuildExtension.with_options(use_ninja=os.environ.get("USE_NINJA") != "0")
    },
)
