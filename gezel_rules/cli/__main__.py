"""``python -m gezel_rules.cli``."""

import sys

from gezel_rules.cli import main

sys.exit(main())
