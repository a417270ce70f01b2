"""How a process ended, as a number, in anybody's words."""

from __future__ import annotations

import pytest
from log_cases import shipped

from gezel_rules.logs.exit_status import read_exit_status, signed
from gezel_rules.logs.verdict import died
from gezel_rules.logs.watch import classify


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("1", 1),
        ("-11", -11),
        ("139", 139),
        ("128+11", 139),
        ("128 + 11", 139),
        ("SIGSEGV", -11),
        ("segv", -11),
        ("0xC0000005", -1073741819),
        ("0XC0000005", -1073741819),
        ("3221225477", -1073741819),
        ("-1073741819", -1073741819),
        ("18446744072635809797", -1073741819),
    ],
)
def test_any_spelling_is_read(text, status):
    assert read_exit_status(text) == status


@pytest.mark.parametrize("text", ["", "x", "0x", "1.5", "128+", "-0x1", str(1 << 64), "SIGNOTHING"])
def test_what_is_no_status_is_refused(text):
    with pytest.raises(ValueError):
        read_exit_status(text)


def test_small_numbers_stay_as_they_are():
    assert [signed(n) for n in (-15, 0, 1, 137, 255)] == [-15, 0, 1, 137, 255]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("SIGSEGV", "segmentation-fault"),
        ("135", "segmentation-fault"),
        ("0xC00000FD", "segmentation-fault"),
        ("SIGABRT", "uncaught-exception"),
        ("0xC0000409", "uncaught-exception"),
        ("0xE06D7363", "uncaught-exception"),
        ("0xC000001D", "illegal-instruction"),
        ("0xC0000135", "missing-shared-library"),
        ("1", None),
        ("SIGTERM", None),
    ],
)
def test_the_class_of_a_status_alone(text, failure):
    assert classify([], shipped(), exit_status=read_exit_status(text)).failure == failure


def test_who_was_asked_to_end_did_not_fail():
    assert [died(shipped(), status) for status in (None, 0, -15, 143, 130, 0xC000013A)] == [False] * 6
    assert [died(shipped(), status) for status in (1, 127, -9, 0xC0000005)] == [True] * 4


def test_what_the_engine_goes_on_without_is_fatal_when_it_did_not_go_on():
    lines = [
        "srv    load_model: failed to initialize speculative decoding context: draft-simple requires a draft context"
    ]
    assert [classify(lines, shipped(), exit_status=status).fatal for status in (None, 0, 1)] == [False, False, True]


STARTING, READY = "srv  llama_server: initializing ...", "srv  llama_server: model loaded"


@pytest.mark.parametrize("status", [-9, 137])
@pytest.mark.parametrize(
    ("lines", "failure"),
    [
        ([], "killed-from-outside"),
        ([STARTING, READY], "killed-from-outside"),
        ([STARTING], "host-oom-killed"),
        ([STARTING, READY, "Killed"], "host-oom-killed"),
        ([STARTING, READY, "llama-server invoked oom-killer: gfp_mask=0x140dca, order=0"], "host-oom-killed"),
        ([STARTING, "supervisor: SIGKILL, and no sign that memory was short"], "killed-from-outside"),
    ],
)
def test_12_a_sigkill_is_for_lack_of_memory_only_where_something_shows_it(status, lines, failure):
    assert classify(lines, shipped(), exit_status=status).failure == failure


def test_12_a_sigkill_that_nothing_explains_says_where_memory_would_show():
    found = classify([], shipped(), exit_status=-9)
    assert found.fatal and "dmesg" in found.advice
