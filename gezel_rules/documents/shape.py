"""Reading a YAML mapping whose shape is not declared (see ``declare``): its keys as they are listed by the caller."""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.documents.kinds import FLAG, INTEGER, LIST, MAP, NUMBER, TEXT, kind_of
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem

__all__ = ["ANY", "FLAG", "INTEGER", "LIST", "MAP", "NUMBER", "TEXT", "fields", "fits", "items", "kind_of"]

ANY = "any"


def fits(kind: str, value: object) -> bool:
    """Whether a value is of one of the kinds (``text|number``)."""
    actual = kind_of(value)
    return any(k in (ANY, actual) or (k == NUMBER and actual == INTEGER) for k in kind.split("|"))


def fields(
    node: Node,
    what: str,
    problems: list[Problem],
    required: Mapping[str, str],
    optional: Mapping[str, str] | None = None,
) -> dict[str, Node]:
    """The well-formed entries of a mapping; everything missing, unknown or of another kind is added to ``problems``."""
    if not isinstance(node.value, dict):
        problems.append(node.problem(f"{what} must be a mapping, not {kind_of(node.value)}"))
        return {}
    kinds = {**required, **(optional or {})}
    for key in required:
        if key not in node.value:
            problems.append(node.problem(f"{what} has no '{key}'", 1))
    return {key: child for key, child in node.value.items() if _accept(key, child, what, kinds, problems)}


def _accept(key: str, child: Node, what: str, kinds: Mapping[str, str], problems: list[Problem]) -> bool:
    if key not in kinds:
        place = child.key or child
        problems.append(place.problem(f"{what} has no key '{key}'{did_you_mean(key, kinds)}"))
        return False
    if not fits(kinds[key], child.value):
        wanted = kinds[key].replace("|", " or ")
        problems.append(child.problem(f"'{key}' must be {wanted}, not {kind_of(child.value)}"))
        return False
    return True


def items(node: Node, what: str, kind: str, problems: list[Problem]) -> list[Node]:
    """The items of a list that are of the kind; others are added to ``problems``."""
    if not isinstance(node.value, list):
        problems.append(node.problem(f"{what} must be a list, not {kind_of(node.value)}"))
        return []
    good = []
    for child in node.value:
        if fits(kind, child.value):
            good.append(child)
        else:
            problems.append(child.problem(f"{what}: expected {kind.replace('|', ' or ')}, not {kind_of(child.value)}"))
    return good
