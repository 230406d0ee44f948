"""`python -m demo_ext`: the doctor."""

from demo_ext._opwright.doctor import main

raise SystemExit(main())
