"""More than 20,000 mutations of real headers: a one-line refusal, or exactly what ``gguf.GGUFReader`` reads.

Each mutant that we accept is read by the reference reader too, as a sparse file of its stated size. The reference
takes 8 to 60 ms for a whole header, so most mutants are of headers cut to all their keys and first tensors (1 ms);
whole headers follow, compared in one case of eight. Accepting a type the package does not know (Q2_0) is no fault.
"""

from __future__ import annotations

import os
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from gguf_oracle import oracle, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gezel_rules.errors import BadInput
from gezel_rules.gguf.cursor import Incomplete
from gezel_rules.gguf.files import check_complete
from gezel_rules.gguf.parse import parse_header

TENSORS_KEPT = 8
NUMBERS = (0, 1, 2, 3, 31, 255, 4096, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 60, 1 << 63, (1 << 64) - 1)

EDITS = st.tuples(
    st.sampled_from(["flip", "letter", "byte", "u32", "u64", "cut", "drop", "repeat", "insert"]),
    st.integers(0, (1 << 20) - 1),  # where
    st.integers(0, (1 << 20) - 1),  # with what
)
MUTANTS = st.lists(st.lists(EDITS, min_size=1, max_size=2), min_size=16, max_size=16)
QUICKLY = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def mutated(data: bytes, edits: list[tuple[str, int, int]]) -> bytes:
    """``data`` after ``edits``, one behind the other, spread over the whole of it."""
    for kind, where, what in edits:
        if len(data) < 9:
            return data
        # Hypothesis likes small numbers, which would all hit the magic: a multiplicative hash spreads them.
        at = (where * 2654435761 % (1 << 32)) * (len(data) - 8) >> 32
        number = NUMBERS[what % len(NUMBERS)]
        match kind:
            case "flip":
                data = data[:at] + bytes([data[at] ^ 1 << what % 8]) + data[at + 1 :]
            case "letter":
                data = data[:at] + bytes([97 + what % 26]) + data[at + 1 :]
            case "byte":
                data = data[:at] + bytes([what % 256]) + data[at + 1 :]
            case "u32":
                data = data[:at] + struct.pack("<I", number % (1 << 32)) + data[at + 4 :]
            case "u64":
                data = data[:at] + struct.pack("<Q", number) + data[at + 8 :]
            case "cut":
                data = data[:at]
            case "drop":
                data = data[:at] + data[at + 1 + what % 16 :]
            case "repeat":
                data = data[:at] + data[at : at + 64 + what % 64] + data[at:]
            case "insert":
                data = data[:at] + struct.pack("<Q", what) + data[at:]
    return data


def shortened(data: bytes) -> bytes:
    """A real header with all its keys and its first few tensors."""
    header = parse_header(data, "real", None)
    behind = data.index(header.tensors[TENSORS_KEPT].name.encode()) - 8
    head = data[:8] + struct.pack("<Q", TENSORS_KEPT) + data[16:behind]
    return head + bytes(-len(head) % 32)


def judged(data: bytes, path: Path, compare: bool) -> bool:
    """Whether the mutant was accepted; fails unless it was refused in one line or read as the reference reads it."""
    size = len(data) + (1 << 42)  # room for every real shape's data: what lies behind is another test's matter
    try:
        header = parse_header(data + bytes(64), str(path), size)
        check_complete(header, str(path))
    except BadInput as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
        return False
    except Incomplete as more:
        assert more.needed > len(data)
        return False
    if compare and all(tensor.type != "Q2_0" for tensor in header.tensors):
        path.write_bytes(data)
        os.truncate(path, size)
        assert same(header, oracle(path))
    return True


def run_mutants(headers: list[bytes], path: Path, examples: int, one_in: int) -> tuple[int, int]:
    """Mutants tried and accepted, over ``examples`` examples; one accepted in ``one_in`` is compared."""
    tried = accepted = 0

    @settings(QUICKLY, max_examples=examples)
    @given(st.sampled_from(headers), MUTANTS)
    def check(header: bytes, mutants: list[list[tuple[str, int, int]]]) -> None:
        nonlocal tried, accepted
        for edits in mutants:
            tried += 1
            accepted += judged(mutated(header, edits), path, tried % one_in == 0)

    check()
    return tried, accepted


@pytest.mark.slow
def test_mutants_of_real_headers_are_refused_or_read_as_the_reference_reads_them(header_bytes, tmp_path):
    short = [shortened(data) for data in header_bytes.values()]
    tried, accepted = run_mutants(short, tmp_path / "mutant.gguf", 1150, one_in=1)
    more_tried, more_accepted = run_mutants(list(header_bytes.values()), tmp_path / "mutant.gguf", 150, one_in=8)
    print(f"{tried + more_tried} mutants, {accepted + more_accepted} accepted")
    assert tried + more_tried >= 20_000
    assert accepted > tried // 20  # the comparison has something to compare


def test_no_mutant_takes_memory_or_long(header_bytes, tmp_path):
    path = tmp_path / "mutant.gguf"
    slowest = peak = 0.0

    @settings(QUICKLY, max_examples=60)
    @given(st.sampled_from(list(header_bytes.values())), MUTANTS)
    def check(header: bytes, mutants: list[list[tuple[str, int, int]]]) -> None:
        nonlocal slowest, peak
        for data in [mutated(header, edits) for edits in mutants]:
            tracemalloc.reset_peak()
            before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
            judged(data, path, compare=False)
            slowest = max(slowest, time.perf_counter() - start)
            peak = max(peak, tracemalloc.get_traced_memory()[1] - before)

    tracemalloc.start()
    try:
        check()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
    assert slowest < 30  # a hang, not a measurement
