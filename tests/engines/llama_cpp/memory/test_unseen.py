"""Architectures without a row in the truth tables: made-up files, and what the engine (llama.cpp 0.6.0-dev, RPC build,
``-fit on``) said it would allocate for them. The rules have to carry over; nothing was fitted to these."""

from __future__ import annotations

import pytest
from engine_truth import judged_placements, report

JUDGED = judged_placements("unseen", "auto")


@pytest.mark.parametrize("part", ["model", "context"])
def test_weights_and_caches_are_exact_on_every_row(part):
    assert len(JUDGED) == 508
    assert not [(row["shape"], row["flags"]) for row, _, marks in JUDGED if not marks[part]]


@pytest.mark.parametrize(("criterion", "least"), [("compute", 0.95), ("host compute", 0.975)])
def test_compute_buffers_are_right_or_said_to_be_coarse(criterion, least):
    marks = [marks[criterion] for _, found, marks in JUDGED if not found.unknown]
    assert sum(marks) / len(marks) >= least, report(JUDGED, "made-up files")


def test_few_architectures_are_coarse():
    assert {row["shape"] for row, found, _ in JUDGED if found.unknown} == {"ds4", "minimax-m3"}
