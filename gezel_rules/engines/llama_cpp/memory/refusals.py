"""Where the engine refuses or aborts at start, said before it does."""

from __future__ import annotations

from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.launch import Context, Launch
from gezel_rules.engines.llama_cpp.memory.layers import number


def refusals(geo: Geometry, context: Context, launch: Launch) -> tuple[str, ...]:
    """One line per reason this launch would not start (``llama_init_from_model``, ``common_speculative``)."""
    return (*_types(geo, context), *_drafting(geo, launch))


def _types(geo: Geometry, context: Context) -> list[str]:
    tables = geo.tables
    k, v = context.type_k, context.type_v
    quantised = {t: tables.quantized(t) for t in (k, v)}
    found = [
        f"cache type {t} is not one the engine knows" for t in dict.fromkeys((k, v)) if t not in tables.cache_types
    ]
    if (geo.mla or geo.row.compressed) and k != v:
        found.append(f"{geo.arch} caches keys and values in one row: K ({k}) and V ({v}) types must be equal")
    if quantised[v] and not context.flash:
        found.append(f"a quantised V cache ({v}) needs flash attention, which is off")
    if context.flash:
        found += _blocks(geo, "K", k, quantised[k], "attention.key_length_swa", geo.head_k)
        found += _blocks(geo, "V", v, quantised[v], "attention.value_length_swa", geo.head_v)
    return found


def _blocks(geo: Geometry, side: str, kind: str, quantised: bool, swa_key: str, head: int) -> list[str]:
    """Quantised rows come in blocks of 32 values: every head size in use must divide."""
    sizes = {number(geo.header, swa_key, head) if x.sliding else head for x in geo.layers if not x.nextn}
    odd = sorted(x for x in sizes if x % 32) if quantised else []
    return [f"{side} cache type {kind} needs head sizes divisible by 32; this model has {odd[0]}"] if odd else []


def _drafting(geo: Geometry, launch: Launch) -> list[str]:
    table = geo.tables.speculation
    found = [f"speculative type {name} is not known" for name in launch.spec if name not in table]
    wants_head = [name for name in launch.spec if name in table and table[name].context == "mtp"]
    if wants_head and not geo.nextn:
        found.append(f"{wants_head[0]} needs an MTP head and this model has none: the engine exits")
    return found
