"""Entries of running engines: what stands in a file is not believed."""

from __future__ import annotations

import json
import os

import pytest

from gezel_rules.runtime import registry
from gezel_rules.runtime.process import started
from gezel_rules.runtime.registry import Entry


def entry() -> Entry:
    """Of this very process."""
    pid = os.getpid()
    return Entry("one", "m", "fake", "", pid, started(pid), pid, started(pid), 1796097286.5, "")


@pytest.mark.parametrize("since", ["Infinity", "-Infinity", "NaN", "1e999", "1" + "0" * 400, "-1"])
def test_a_beginning_that_is_no_time_is_no_entry(state, since):
    path = registry.enter(state, entry())
    assert registry.running(state) == [entry()]
    path.write_text(json.dumps({**entry()._asdict(), "since": "SINCE"}).replace('"SINCE"', since))
    assert registry.running(state) == [] and not path.exists()
