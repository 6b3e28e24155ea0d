"""`python -m logitree` is the command `logitree`."""

from .cli import main

raise SystemExit(main())
