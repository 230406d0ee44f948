"""`python -m my_ext`: the doctor."""

from my_ext._opwright.doctor import main

raise SystemExit(main())
