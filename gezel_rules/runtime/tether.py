"""A program whose life ends with its parent's: ``python -I -S tether.py PARENT_PID PROGRAM ARGV…`` (Linux).

Asks the kernel for a signal when the parent dies (prctl(2), PR_SET_PDEATHSIG; kept across exec), then becomes the
program. Run by path and without site packages: it is started before every engine. Imports nothing of this package.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Tie this process to its parent, then become ``command``. Exits 127 when the program cannot be run."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        os._exit(143)
    try:
        os.execv(command[0], command)  # noqa: S606 - a list, no shell
    except OSError as error:
        print(f"error: cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
