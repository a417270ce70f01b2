"""Reading ``tuning``: what the catalog recommends for this model, flat, each value with its place."""

from __future__ import annotations

from gezel_rules.catalog.records import Tuned
from gezel_rules.catalog.sources import place
from gezel_rules.documents.shape import INTEGER, MAP, NUMBER, TEXT, fields
from gezel_rules.documents.source import Node
from gezel_rules.errors import Problem

_TOP = {
    "spec": MAP,
    "window": INTEGER,
    "slots": INTEGER,
    "reasoning": MAP,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "top_k": INTEGER,
    "min_p": NUMBER,
}
_SPEC = {"type": TEXT, "n_max": INTEGER, "sampling": TEXT}
_REASONING = {"format": TEXT, "budget": INTEGER}
_LEAST = {"window": 1, "slots": 1, "spec.n_max": 1, "reasoning.budget": 0, "top_k": 0}
_RANGE = {"temperature": 10.0, "top_p": 1.0, "min_p": 1.0}


def read_tuning(node: Node, problems: list[Problem]) -> tuple[dict[str, Tuned], dict[str, dict[str, Tuned]]]:
    """``Entry.tuned`` and ``Entry.overlays``."""
    got = fields(node, "'tuning'", problems, {}, _TOP)
    flat = {key: child for key, child in got.items() if key not in ("spec", "reasoning")}
    if "reasoning" in got:
        flat |= _below("reasoning", fields(got["reasoning"], "'reasoning'", problems, {}, _REASONING))
    overlays: dict[str, dict[str, Tuned]] = {}
    if "spec" in got:
        spec = fields(got["spec"], "'spec'", problems, {}, {**_SPEC, "by_backend": MAP})
        by_backend = spec.pop("by_backend", None)
        flat |= _below("spec", spec)
        for backend, overlay in (by_backend.value if by_backend else {}).items():
            overlays[backend] = _tuned(_below("spec", fields(overlay, "an overlay", problems, {}, _SPEC)), problems)
    return _tuned(flat, problems), overlays


def _below(name: str, got: dict[str, Node]) -> dict[str, Node]:
    return {f"{name}.{key}": child for key, child in got.items()}


def _tuned(flat: dict[str, Node], problems: list[Problem]) -> dict[str, Tuned]:
    for key, node in flat.items():
        if key in _LEAST and node.value < _LEAST[key]:
            problems.append(node.problem(f"'{key}' must be at least {_LEAST[key]}"))
        if key in _RANGE and not 0 <= node.value <= _RANGE[key]:
            problems.append(node.problem(f"'{key}' must be from 0 to {_RANGE[key]:g}"))
    return {key: Tuned(node.value, place(node)) for key, node in flat.items()}
