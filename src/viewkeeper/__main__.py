"""`python -m viewkeeper` is the command `viewkeeper`."""

from __future__ import annotations

import sys

from viewkeeper.cli.main import main

sys.exit(main())
