"""Runs the doctor: `python -m my_ext`."""

from my_ext._opwright.doctor import main

raise SystemExit(main())
