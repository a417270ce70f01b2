"""What crosses from device to device in models whose layers share more than the residual stream: recurrent states,
DeepSeek's indexers, caches on the host. Asked of llama.cpp 0.6.0-dev (RPC build) over one to three equal devices."""

from __future__ import annotations

import pytest
from engine_truth import judged_placements

JUDGED = judged_placements("crossing")


@pytest.mark.parametrize("part", ["model", "context", "compute", "host compute"])
def test_every_row_is_the_engines(part):
    """Weights and caches to the MiB the engine prints, compute buffers within 1 % or that MiB."""
    assert len(JUDGED) == 40
    assert not [(row["shape"], row["flags"]) for row, _, marks in JUDGED if not marks[part]]
