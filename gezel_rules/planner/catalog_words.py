"""What a catalog entry says, held against the policies of its engine family: an unknown word would be passed to the
engine, or would make a drafter or an exclusion vanish in silence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.catalog.against_policy import check
from gezel_rules.documents.read import Value, in_file_order
from gezel_rules.engines import registry
from gezel_rules.errors import Problem
from gezel_rules.planner.policies import LANGUAGES

if TYPE_CHECKING:
    from gezel_rules.catalog.read import Further

TablesOf = Callable[[str], Mapping[str, Any]]
"""Name of an engine family → the tables of its policies. Raises BadInput where those are broken."""


def checks(tables_of: TablesOf, models: Callable[[], Collection[str]]) -> Further:
    """What must hold of an entry beside its shape. ``models``: the ids of the catalog."""

    def further(entry: Value, in_order: bool) -> list[Problem]:
        family = entry.at("engine")
        if family not in LANGUAGES:
            return check(entry, {"engine_families": LANGUAGES})
        known = {**tables_of(family), "engine_families": LANGUAGES}
        if "draft" in entry and "id" in entry["draft"]:
            known["models"] = models()
        found = check(entry, known)
        # a header that is in order is read, and judged, where it is needed
        return found if in_order and not found else found + header_faults(entry)

    return further


def header_faults(entry: Value) -> list[Problem]:
    """Everything wrong with the ``header`` blocks of an entry: the model's and the drafter's."""
    problems: list[Problem] = []
    for holder in (entry, entry["draft"]) if "draft" in entry else (entry,):
        if "header" in holder:
            registry.family(entry.at("engine")).check_description(holder["header"].node, problems)
    return in_file_order(problems)
