"""Holding an entry against the policies: the backends, algorithms and formats it names must exist there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gezel_rules.documents.read import Value, unknown_names
from gezel_rules.errors import Problem


def check(entry: Value, known: Mapping[str, Collection[str]]) -> list[Problem]:
    """Every name in an entry's values that is not among the ``known``, in file order, each with the nearest that is.

    ``known`` are the policies' tables by name; ``models`` (the ids of the catalog) and ``engine_families`` may stand
    beside them. A name of what is not given is not checked.
    """
    return unknown_names(entry, known)
