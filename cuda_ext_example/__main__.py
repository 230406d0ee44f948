"""`python -m cuda_ext_example`: the doctor."""

from cuda_ext_example._doctor import main

raise SystemExit(main())
