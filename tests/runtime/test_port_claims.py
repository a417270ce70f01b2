"""Ports that a log claims."""

from __future__ import annotations

from shipped_rules import shipped_rules

from gezel_rules.regex import Regex
from gezel_rules.runtime.port_claims import MOST, PortClaims


def test_what_the_shipped_policy_hears() -> None:
    claims = PortClaims(shipped_rules().listening)
    for line in (
        "main: server is listening on http://127.0.0.1:41000 - starting the main loop",
        "HTTP server is listening, hostname: 127.0.0.1, port: 41001, http threads: 7",
        "nothing of the kind",
        "listening on http://x:0", "listening on http://x:70000", "listening on http://x:" + "9" * 5000,
    ):  # fmt: skip
        claims.hear(line)
    assert claims.wait(0) == [41000, 41001]


def test_the_newest_claims_are_remembered() -> None:
    claims = PortClaims([Regex(r"on (?P<host>\S+):(?P<port>\d+)")])
    for port in range(1, 1000):
        claims.hear(f"on host:{port}")
    assert claims.wait(0) == list(range(1000 - MOST, 1000))


def test_no_claim_is_waited_for_only_so_long() -> None:
    assert PortClaims([]).wait(0.01) == []
