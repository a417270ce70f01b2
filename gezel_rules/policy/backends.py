"""The table of backends as code reads it: logs are judged by it, engines and plans name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.policy.model import PolicySet


class Backend(NamedTuple):
    """A row of ``backends``."""

    label: str
    gpu: bool
    host_buffer: bool


def backends(policies: PolicySet) -> Mapping[str, Backend]:
    """The backends by name."""
    return policies.rows("backends", Backend)
