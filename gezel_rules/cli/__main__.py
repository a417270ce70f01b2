"""The program: ``gezel-rules``, or ``python -m gezel_rules.cli``."""

from __future__ import annotations

import gc
import sys

from gezel_rules.cli import main

TYPE_CHECKING = False  # type checkers know this name; typing itself is left to those who need it

if TYPE_CHECKING:
    from typing import NoReturn


def program() -> NoReturn:
    """Run the command of the command line and leave with its status. The interpreter looks for garbage as it ends; what
    is frozen it passes by, which saves a fifteenth of the instructions of a ``memory``."""
    try:
        sys.exit(main())
    finally:
        gc.freeze()


if __name__ == "__main__":
    program()
