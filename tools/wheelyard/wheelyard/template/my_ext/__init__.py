"""PyTorch ops for CPU and CUDA, in one library for every Python and every torch from 2.10 on.

`python -m my_ext` says what this installation can do on this machine.
"""

try:
    from my_ext._opwright.library import build_info, library_path  # first: it says what is wrong
    from my_ext._ops import running_max, scale_add
except ImportError as error:
    from my_ext._opwright import doctor

    if doctor.is_being_started():  # and can say more about it
        raise SystemExit(doctor.main(error)) from None
    raise

__all__ = ["__version__", "build_info", "library_path", "running_max", "scale_add"]

__version__: str = build_info()["version"]
