"""What crosses from device to device in models whose layers share more than the residual stream: RWKV-7 and DeepSeek's
indexer models. Asked of llama.cpp 0.6.0-dev (RPC build) over one to three equal devices with ``-fa on``."""

from __future__ import annotations

import pytest
from engine_truth import MIB, judged_placements

JUDGED = judged_placements("crossing")
CLOSE = {"rwkv7": 0.03, "ds32": 0.04, "glm-dsa": 0.07, "glm-dsa-full": 0.04}
"""How far a device's compute buffer is from the engine's figure at most, by shape."""


@pytest.mark.parametrize("part", ["model", "context"])
def test_weights_and_caches_are_exact(part):
    assert len(JUDGED) == 13
    assert not [(row["shape"], row["flags"]) for row, _, marks in JUDGED if not marks[part]]


@pytest.mark.parametrize(("row", "found"), [(row, found) for row, found, _ in JUDGED])
def test_compute_buffers_are_close(row, found):
    theirs = [row["devices"][f"RPC{i}"]["compute_mib"] for i in range(row["devices_given"])]
    for pool, mib in zip(found.pools, theirs, strict=False):
        assert pool.compute_bytes / MIB == pytest.approx(mib, rel=CLOSE[row["shape"]], abs=1.1), pool.name
    assert found.pools[-1].compute_bytes / MIB == pytest.approx(row["host"]["Host"]["compute_mib"], abs=1.1)


def test_one_device_and_the_last_of_several_are_exact_for_rwkv():
    for row, found, _ in JUDGED:
        if row["shape"] == "rwkv7" and "-ot" not in row["flags"]:
            last = row["devices"][f"RPC{row['devices_given'] - 1}"]["compute_mib"]
            assert found.pools[-2].compute_bytes / MIB == pytest.approx(last, abs=1.1), row["flags"]
