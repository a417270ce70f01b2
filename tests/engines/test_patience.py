"""Programs that hang are told from those that are slow: by what they do, over all that they are asked."""

from __future__ import annotations

import sys
import time

import pytest

from gezel_rules.engines.ask import ask
from gezel_rules.engines.patience import Bounds, Patience, SilentError

WORKS = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"
SLEEPS = "import time; time.sleep({})"


def told(code: str, patience: Patience) -> None:
    ask([sys.executable, "-c", code], {}, patience=patience)


def test_a_program_that_works_is_waited_for() -> None:
    told(WORKS.format(2), Patience(Bounds(0.6, 600, 10)))


def test_a_program_whose_child_works_is_waited_for() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORKS.format(2)!r}])"
    told(child, Patience(Bounds(0.6, 600, 10)))


def test_one_that_works_without_end_is_not() -> None:
    with pytest.raises(SilentError, match="gave no answer within"):
        told(WORKS.format(600), Patience(Bounds(600, 1, 10)))


def test_what_one_answer_took_is_gone_for_the_next() -> None:
    patience = Patience(Bounds(4, 600, 10))
    told(SLEEPS.format(2), patience)
    begun = time.monotonic()
    with pytest.raises(SilentError):
        told(SLEEPS.format(600), patience)
    assert time.monotonic() - begun < 3.5
