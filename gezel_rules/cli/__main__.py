"""``python -m gezel_rules.cli``."""

import sys

from gezel_rules.start import main

sys.exit(main())
