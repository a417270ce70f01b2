"""Context checkpoints: copies, on the host, of what a slot cannot roll back. The server makes them while it serves, up
to ``--ctx-checkpoints`` for each slot (llama.cpp 0.6.0-dev, ``server-context.cpp``); its memory tables leave them out.

One holds the recurrent state, and the cells of the sliding-window cache that the next token still sees
(``LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY``). A drafter's context is copied beside it, whole where it neither slides nor
keeps a state: a plain cache knows no partial copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.estimate import Estimate
    from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
    from gezel_rules.engines.llama_cpp.memory.kv_cache import Cache


def checkpoint_bytes(geo: Geometry, found: Estimate) -> int:
    """Bytes of one checkpoint of one slot whose window is full, an MTP head's context included; 0 for a model that
    makes none: its cache can be cut back to any token."""
    state, context = _state_bytes(found), found.context
    if not state and (context.swa_full or not _slides(geo, found.caches)):
        return 0
    head = _copied(geo, found.draft.caches) if found.draft else 0
    return state + _sliding_bytes(geo, found.caches) + head


def drafter_checkpoint_bytes(geo: Geometry, found: Estimate, *, head: bool) -> int:
    """Bytes that a separate drafter's context adds to each checkpoint of its target; ``head``: its file is an MTP
    head, and only the head's own cache counts."""
    if head:
        return _copied(geo, found.draft.caches) if found.draft else 0
    state = _state_bytes(found)
    return state + _sliding_bytes(geo, found.caches) if state else _copied(geo, found.caches)


def _state_bytes(found: Estimate) -> int:
    return found.recurrent_bytes // (found.context.slots * found.context.states)


def _slides(geo: Geometry, held: Iterable[Cache]) -> bool:
    return geo.window > 0 and any(cache.name == "swa" for cache in held)


def _sliding_bytes(geo: Geometry, held: Iterable[Cache]) -> int:
    """The cells of one slot that a sliding layer still sees."""
    sliding = [cache for cache in held if cache.name == "swa"]
    return sum(cache.bytes // (cache.cells * cache.streams) * min(geo.window, cache.cells) for cache in sliding)


def _copied(geo: Geometry, held: tuple[Cache, ...]) -> int:
    """What is copied of one slot's cache: the sliding part, or all of it where nothing slides."""
    if _slides(geo, held):
        return _sliding_bytes(geo, held)
    return sum(cache.bytes // cache.streams for cache in held)
