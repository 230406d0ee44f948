"""CPU and CUDA ops for PyTorch, in one library for every Python and every torch from 2.10 on.

    >>> import torch, cuda_ext_example
    >>> a, b = torch.arange(3), torch.ones(3, dtype=torch.int64)
    >>> cuda_ext_example.my_add(a, b)
    tensor([1, 2, 3])

`python -m cuda_ext_example` says what this installation can do on this machine.
"""

try:
    from cuda_ext_example._opwright.library import build_info, library_path  # noqa: I001  (its errors are clearest)
    from cuda_ext_example._ops import *  # noqa: F403
    from cuda_ext_example._ops import __all__ as _functions
except ImportError as error:
    from cuda_ext_example._opwright import doctor

    if doctor.is_being_started():  # it reports the error with more detail
        raise SystemExit(doctor.main(error)) from None
    raise

__all__ = ["__version__", "build_info", "library_path", *_functions]

__version__: str = build_info()["version"]
