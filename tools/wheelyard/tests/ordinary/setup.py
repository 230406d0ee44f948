"""Builds the usual CUDAExtension: a pybind binding and a kernel, for the torch that is installed."""

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

SOURCES = ["csrc/binding.cpp"]
if torch.version.cuda:
    extension = CUDAExtension(
        "ordinary._C",
        [*SOURCES, "csrc/scale_rows.cu"],
        define_macros=[("WITH_CUDA", None)],
    )
else:
    extension = CppExtension("ordinary._C", SOURCES)

setup(ext_modules=[extension], cmdclass={"build_ext": BuildExtension})
