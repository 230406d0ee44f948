"""The demo's package."""

from demo_ext._ops import scale_add, softsign
from demo_ext._opwright.library import build_info, library_path

__all__ = ["build_info", "library_path", "scale_add", "softsign"]
