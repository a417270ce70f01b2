"""The functions llama.cpp's policies may call: their types, and their meaning in one line each.

``capacity`` binds those that need the model's geometry and the machine's pools.
"""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.engines import plain_functions
from gezel_rules.lang.types import FLAG, INTEGER, TEXT, Function, Type

_BYTES, _TOKENS = INTEGER._replace(unit="bytes"), INTEGER._replace(unit="tokens")
_KV = TEXT._replace(rows_of="kv_types")
_SPEC = TEXT._replace(rows_of="spec_types")
_MODE = TEXT._replace(rows_of="placement_modes")


def _optional(type_: Type) -> Type:
    return type_._replace(optional=True)


_PLACEMENT = Type("record", fields={
    "fits": FLAG, "says": TEXT, "devices": Type("list", item=TEXT),
    "n_gpu_layers": _optional(INTEGER), "n_cpu_moe": _optional(INTEGER),
    "override_tensor": _optional(TEXT), "tensor_split": _optional(TEXT), "needed_bytes": _BYTES,
    "usable_bytes": _BYTES, "shortfall_bytes": _BYTES,
    "ram_left_bytes": _optional(_BYTES), "checkpoint_bytes": _BYTES,
})  # fmt: skip
_REPLAN = Type("record", fields={"kv_type": TEXT, "window": _TOKENS, "slots": INTEGER, "resident_bytes": _BYTES})

SIGNATURES: Mapping[str, Function] = {
    **plain_functions.SIGNATURES,
    "window_that_fits": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES, _MODE), _TOKENS,
        "the largest window, up to the one given, of each slot: KV type, window, slots, speculative type, bytes beside "
        "the model on the GPU, placement mode; 0 when none fits",
    ),
    "fits": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES, _MODE), FLAG, "whether these slots of this window fit",
    ),
    "slots_that_fit": Function(
        (_KV, _TOKENS, INTEGER, _SPEC, _BYTES, _MODE), INTEGER,
        "the most slots, up to the number given, of that window; 0 when not even one fits",
    ),
    "one_card_holds": Function(
        (_TOKENS, _SPEC, _BYTES), FLAG,
        "whether the card with most memory alone holds the model, this window and what stands beside them, in the KV "
        "type and with the slots somebody asked for, else in the finest type taken unasked, with one slot",
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
