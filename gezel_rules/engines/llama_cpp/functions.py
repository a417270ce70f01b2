"""The pure functions a policy may call: their types here, their meaning in one line each.

Those that need the model's geometry and the machine's pools are bound for one plan by ``capacity``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gezel_rules.lang.types import ANY, FLAG, INTEGER, TEXT, Function, Type

_BYTES, _TOKENS = INTEGER._replace(unit="bytes"), INTEGER._replace(unit="tokens")
_KV = TEXT._replace(rows_of="kv_types")
_SPEC = TEXT._replace(rows_of="spec_types")
_MODE = TEXT._replace(rows_of="placement_modes")
_LIST = Type("list", item=TEXT)


def _optional(type_: Type) -> Type:
    return type_._replace(optional=True)


_PLACEMENT = Type("record", fields={
    "fits": FLAG, "says": TEXT, "n_gpu_layers": _optional(INTEGER), "n_cpu_moe": _optional(INTEGER),
    "override_tensor": _optional(TEXT), "tensor_split": _optional(TEXT), "needed_bytes": _BYTES,
    "usable_bytes": _BYTES, "shortfall_bytes": _BYTES,
    "ram_left_bytes": _optional(_BYTES),
})  # fmt: skip
_REPLAN = Type("record", fields={"kv_type": TEXT, "window": _TOKENS, "slots": INTEGER, "resident_bytes": _BYTES})

SIGNATURES: Mapping[str, Function] = {
    "known": Function((_optional(ANY),), FLAG, "whether a fact is known"),
    "min": Function((INTEGER, INTEGER), INTEGER, "the smallest whole number", variadic=True),
    "max": Function((INTEGER, INTEGER), INTEGER, "the largest whole number", variadic=True),
    "divisible": Function((INTEGER, INTEGER), FLAG, "whether the first is a multiple of the second"),
    "overlap": Function((_LIST, _LIST), FLAG, "whether two lists share a member"),
    "joined": Function((_LIST,), TEXT, "the members of a list with commas between them"),
    "window_that_fits": Function(
        (_KV, _TOKENS, _SPEC, _BYTES, _MODE), _TOKENS,
        "the largest window, up to the one given, of a single slot: KV type, window, speculative type, bytes beside "
        "the model on the GPU, placement mode; 0 when none fits",
    ),
    "slots_that_fit": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES, _MODE), INTEGER,
        "the most slots, up to the number given, of that window; 0 when not even one fits",
    ),
    "bytes_needed": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES), _BYTES,
        "everything resident: weights, caches, compute buffers and what stays beside them",
    ),
    "place": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES, _MODE), _PLACEMENT,
        "where the weights go with this window and these slots, card by card",
    ),
    "replan": Function((_BYTES,), _REPLAN, "KV type, window and slots as if the drafter took that many bytes"),
}  # fmt: skip

PLAIN: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "divisible": lambda value, by: value % by == 0,
    "joined": ",".join,
    "overlap": lambda a, b: not set(a).isdisjoint(b),
}
"""Functions that need nothing but their arguments (``known`` is the evaluator's own)."""


def function_units() -> dict[str, str]:
    """Units of what the functions give: by function name, and by column as ``.column``."""
    units = {name: function.result.unit for name, function in SIGNATURES.items() if function.result.unit}
    for function in SIGNATURES.values():
        units |= {f".{column}": type_.unit for column, type_ in (function.result.fields or {}).items() if type_.unit}
    return units
