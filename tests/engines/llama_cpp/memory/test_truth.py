"""The whole truth tables: what the engine allocated, row by row, against our estimate from the header."""

from __future__ import annotations

import pytest
from engine_truth import judged, judged_placements, report, rows, scores


@pytest.mark.parametrize("criterion", ["kv", "recurrent", "output", "weights", "draft"])
def test_arithmetic_is_exact_on_every_row(criterion):
    right, asked = scores(judged())["all"][criterion]
    wrong = [(row["shape"], row["ctx"]) for row, _, marks in judged() if not marks.get(criterion, True)]
    assert asked
    assert right == asked, wrong[:5]


def test_the_table_is_whole():
    assert len(rows("truth")) == 1387
    assert len(rows("placement")) == 799


@pytest.mark.parametrize(("criterion", "least"), [("compute", 0.995), ("draft compute", 1.0)])
def test_cpu_compute_buffer(criterion, least):
    right, asked = scores(judged())["all"][criterion]
    assert right / asked >= least, report(judged(), "one CPU")


@pytest.mark.parametrize("part", ["model", "context"])
def test_placement_is_exact_on_every_row(part):
    wrong = [(row["shape"], row["flags"]) for row, _, marks in judged_placements() if not marks[part]]
    assert not wrong


@pytest.mark.parametrize(("criterion", "least"), [("compute", 0.99), ("host compute", 0.995)])
def test_device_compute_buffers(criterion, least):
    right, asked = scores(judged_placements())["all"][criterion]
    assert right / asked >= least, report(judged_placements(), "devices")


def test_no_shape_is_left_behind():
    for name, criteria in scores(judged()).items():
        right, asked = criteria["compute"]
        assert right / asked >= 0.6, name


def test_the_report_names_every_shape():
    text = report(judged(), "one CPU")
    assert all(row["shape"] in text for row in rows("truth"))
