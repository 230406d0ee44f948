"""PyTorch ops for CPU and CUDA, in one library for every Python and every torch from 2.10 on.

`python -m my_ext` says what this installation can do on this machine.
"""

from pathlib import Path

try:
    from my_ext._opwright.library import build_info, library_path  # noqa: I001  (says what is wrong)
    from my_ext._ops import *  # noqa: F403
    from my_ext._ops import __all__ as _functions
except ImportError as error:
    if (error.name or "").startswith("my_ext._opwright"):
        place = Path(__file__).parent
        raise ImportError(
            f"the package in {place} has not been built: run `make check` in {place.parent}, or leave that folder to "
            "import a package that is installed elsewhere"
        ) from None
    from my_ext._opwright import doctor

    if doctor.is_being_started():  # which can say more about it
        raise SystemExit(doctor.main(error)) from None
    raise

__all__ = ["__version__", "build_info", "library_path", *_functions]

__version__: str = build_info()["version"]
