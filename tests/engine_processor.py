"""What the engine at hand packs weights for, so that no test assumes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from gezel_rules.engines.llama_cpp.builds import engine_at, processor_fact
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.memory.tables import Processor
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies


def processor(command: Sequence[str]) -> str | None:
    """As it says itself; ``None`` when it does not."""
    return _asked(tuple(map(str, command)))


def unpacked(command: Sequence[str]) -> list[str]:
    """What lets an engine run whose code is for AMX: virtual machines may name it and withhold it."""
    return ["--no-repack"] if processor(command) == "amx" else []


@cache
def _asked(command: tuple[str, ...]) -> str | None:
    rows = read_policies(policies_dir(), FAMILY, None).rows("processors", Processor)
    found = processor_fact(engine_at("engine", command, None, os.environ), rows).value
    return None if found is UNKNOWN else str(found)
