"""The fewest bytes a launch can take: never more than any placement of it takes, and nearly all where one knows."""

from __future__ import annotations

from hypothesis import given, settings
from test_memory_properties import launches, shapes

from gezel_rules.engines.llama_cpp.memory.bound import least_bytes
from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry


@given(shapes, launches())
@settings(max_examples=200, deadline=None)
def test_no_placement_takes_less(geo, launch):
    found = estimate_geometry(geo, launch)
    taken = sum(pool.total for pool in found.pools) + found.output_bytes - found.lazy_bytes
    assert least_bytes(geo, launch) <= taken


@given(shapes, launches())
@settings(max_examples=50, deadline=None)
def test_on_the_cpu_alone_it_is_all_but_compute_and_output(geo, launch):
    launch = launch._replace(devices=0, processor="plain", tensor_split=())
    found = estimate_geometry(geo, launch)
    assert least_bytes(geo, launch) == found.total_bytes - found.compute_bytes - found.output_bytes
