"""`python -m cuda_ext_example`: the doctor."""

from cuda_ext_example._opwright.doctor import main

raise SystemExit(main())
