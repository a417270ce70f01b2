"""Which layers slide, keep a state, own a cache: the architecture table and the file's keys, settled layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.errors import BadInput

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo
    from gezel_rules.engines.llama_cpp.memory.tables import Architecture, MemoryTables

MOST = 1 << 40  # no count of a real model comes near; keeps a broken header's arithmetic small


def number(header: HeaderInfo, key: str, default: int) -> int:
    """A count from the header, or the default when the key is absent. :raises BadInput: when it is no sane count."""
    value = header.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise BadInput(f"{header.arch}.{key} of this GGUF is not a count: its memory cannot be computed")
    return value


def needed(header: HeaderInfo, key: str) -> int:
    """A count no model can do without. :raises BadInput: when it is absent, zero or no count."""
    value = number(header, key, 0)
    if value == 0:
        raise BadInput(f"this GGUF has no {header.arch or 'architecture'}.{key}: its memory cannot be computed")
    return value


def per_layer(value: Any, blocks: int) -> list[int]:
    """A key that is one number or one per layer; short arrays are filled with zero, as the engine's are.
    :raises BadInput: when an item is no sane count."""
    items = list(value[:blocks]) + [0] * (blocks - len(value)) if isinstance(value, tuple) else [value] * blocks
    if any(not isinstance(x, int) or not 0 <= x < MOST for x in items):
        raise BadInput("this GGUF has a per-layer count that is none: its memory cannot be computed")
    return [int(x) for x in items]


MOST_LAYERS = 512  # LLAMA_MAX_LAYERS: the engine refuses more


def block_count(header: HeaderInfo, row: Architecture) -> int:
    blocks = needed(header, "block_count")
    if row.loops:
        blocks *= max(1, number(header, "num_loops", 1))
    blocks += 1 if row.extra_router_layer else 0
    if blocks > MOST_LAYERS:
        raise BadInput(f"this GGUF claims {blocks} layers; the engine stops at {MOST_LAYERS}")
    return blocks


def nextn_layers(header: HeaderInfo, row: Architecture, blocks: int) -> int:
    """MTP layers at the end. DeepSeek-V4 trunks keep the key without the tensors and cache all layers then."""
    if row.extra_router_layer:
        return 0
    nextn = min(number(header, "nextn_predict_layers", 0), blocks)
    if nextn and row.compressed:
        probe = f"blk.{blocks - nextn}.nextn.eh_proj.weight"
        return nextn if any(t.name == probe for t in header.tensors) else 0
    return nextn


MOST_EXPERTS = 1024  # LLAMA_MAX_EXPERTS: the engine refuses more


def experts_used(header: HeaderInfo, blocks: int) -> int:
    """Experts per token, the most of any layer. :raises BadInput: for more than the engine loads."""
    used = max(per_layer(header.get("expert_used_count", 0), blocks))
    if used > MOST_EXPERTS:
        raise BadInput(f"this GGUF claims {used} experts per token; the engine stops at {MOST_EXPERTS}")
    return used


def head_counts(header: HeaderInfo, blocks: int) -> tuple[list[int], list[int]]:
    """Query and KV heads per layer; KV heads default to the query heads. Looped layers repeat the file's."""
    count = header.get("attention.head_count", 0)
    file_blocks = needed(header, "block_count")
    heads = per_layer(count, file_blocks)
    kv_heads = per_layer(header.get("attention.head_count_kv", count), file_blocks)
    if blocks == file_blocks + 1:
        return [*heads, 1], [*kv_heads, 1]
    times = blocks // file_blocks
    return heads * times, kv_heads * times


def head_sizes(header: HeaderInfo, row: Architecture, heads: Sequence[int]) -> tuple[int, int]:
    if not heads[0] and not row.headless_first:  # as the engine: no heads in the first layer, no attention sizes
        return 0, 0
    size = needed(header, "embedding_length") // heads[0] if heads[0] else 0
    return number(header, "attention.key_length", size), number(header, "attention.value_length", size)


def window_of(header: HeaderInfo, row: Architecture, blocks: int) -> int:
    """Tokens a sliding layer sees; 0 when this model has no sliding layers."""
    if not row.slides or row.window_layers not in (None, blocks):
        return 0
    key = None if header.get("attention.sliding_window") is None else number(header, "attention.sliding_window", 0)
    if (row.window_if == "positive" and not key) or (row.window_if == "nonzero" and key == 0):
        return 0
    if row.window_forced is not None:
        return row.window_forced
    return key if key is not None else row.window_default


def sliding_layers(
    header: HeaderInfo, row: Architecture, blocks: int, nextn: int, recurrent: Sequence[bool]
) -> list[bool]:
    """Which layers slide: the file's array, else a period, the file's before the table's."""
    if row.window_attention:
        return [not r for r in recurrent]
    pattern = header.get("attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        return [bool(x) for x in per_layer(pattern, blocks)]
    own = 1 if row.window_every is None else row.window_every
    every = own if pattern is None else number(header, "attention.sliding_window_pattern", 1)
    if every == 0:
        return [True] * blocks
    dense = 0 if row.dense_first else every - 1
    return [i % every != dense and i < blocks - nextn for i in range(blocks)]


def recurrent_layers(
    header: HeaderInfo, row: Architecture, blocks: int, nextn: int, kv_heads: Sequence[int], ff: Sequence[int]
) -> list[bool]:
    rule, trunk = row.recurrent, blocks - nextn
    if rule in ("all", "every"):
        return [i < trunk for i in range(blocks)]
    if rule == "headless":
        return [i < trunk and kv_heads[i] == 0 for i in range(blocks)]
    if rule == "headless-no-ffn":
        return [i < trunk and kv_heads[i] == 0 and ff[i] == 0 for i in range(blocks)]
    if rule == "interval":
        listed = header.get("attention.recurrent_layers")
        if listed is not None:
            return [bool(x) and i < trunk for i, x in enumerate(per_layer(listed, blocks))]
        every = max(1, number(header, "full_attention_interval", row.interval))
        return [i < trunk and (i + 1) % every != 0 for i in range(blocks)]
    return [False] * blocks


def cached_layers(
    header: HeaderInfo, row: Architecture, blocks: int, nextn: int, recurrent: Sequence[bool], ff: Sequence[int]
) -> list[bool]:
    """Which layers own a KV cache in the main context."""
    if row.cache in ("none", "target") or row.recurrent == "all":
        return [False] * blocks
    last = blocks if row.nextn_cached or nextn == blocks else blocks - nextn
    if row.cached_layers is not None:
        last = min(last, row.cached_layers)
    if row.shared_layers:
        last = min(last, blocks - number(header, "attention.shared_kv_layers", 0))
    if row.recurrent == "every":
        return [i < last for i in range(blocks)]
    no_ffn = row.recurrent == "headless-no-ffn"
    return [i < last and not recurrent[i] and not (no_ffn and ff[i]) for i in range(blocks)]


def indexer_rows(
    header: HeaderInfo, row: Architecture, blocks: int, nextn: int, recurrent: Sequence[bool]
) -> list[int]:
    """Values of the indexer row of each layer; 0 = that layer has no indexer."""
    size, rule, trunk = number(header, "attention.indexer.key_length", 0), row.indexer, blocks - nextn
    if rule == "none" or not size:
        return [0] * blocks
    pooled = header.get("attention.indexer.kpool") or any(per_layer(header.get("attention.compress_ratios", 0), blocks))
    size *= (row.indexer_slots or 1) if pooled else 1
    if rule == "after-dense":
        dense = number(header, "leading_dense_block_count", 0)
        return [size if i >= dense else 0 for i in range(blocks)]
    full = _full_indexers(header, row, blocks) if rule == "full-layers" else [True] * blocks
    return [size if i < trunk and not recurrent[i] and full[i] else 0 for i in range(blocks)]


def _full_indexers(header: HeaderInfo, row: Architecture, blocks: int) -> list[bool]:
    """Layers that own an indexer (the others reuse an earlier layer's choice)."""
    types = header.get("attention.indexer.types")
    if types is not None:
        return [bool(x) for x in per_layer(types, blocks)]
    if row.indexer_long is None or needed(header, "context_length") < row.indexer_long:
        return [True] * blocks
    return [i < row.indexer_first or (i - row.indexer_first) % row.indexer_every == 0 for i in range(blocks)]


def is_mla(header: HeaderInfo, row: Architecture) -> bool:
    """Latent attention: with both keys present only K is cached; files without them cache K and V in full."""
    return bool(row.mla and header.get("attention.key_length_mla") and header.get("attention.value_length_mla"))


def state_values(header: HeaderInfo, row: Architecture, heads: Sequence[int], head_k: int) -> tuple[int, int]:
    """f32 values per layer and state row: rolling part and recurrent part (``llama_hparams::n_embd_r/n_embd_s``)."""
    kind, embedding = row.state, needed(header, "embedding_length")
    conv, inner = number(header, "ssm.conv_kernel", 0), number(header, "ssm.inner_size", 0)
    state, groups = number(header, "ssm.state_size", 0), number(header, "ssm.group_count", 0)
    rolling = max(0, conv - 1) * (inner + 2 * groups * state)
    if kind == "rwkv":
        return number(header, "token_shift_count", 2) * embedding, embedding * number(header, "wkv.head_size", 0)
    if kind == "shortconv":
        return embedding * (number(header, "shortconv.l_cache", 1) - 1), 0
    if kind == "kda":
        size = number(header, "kda.head_dim", 0)
        return 3 * (conv - 1 if conv else 3) * heads[0] * size, size * size * heads[0]
    if kind == "linear":
        return rolling, head_k * head_k * heads[0]
    return rolling, state * inner


def vocabulary(header: HeaderInfo) -> int:
    """Rows of the logits: the tokenizer's, else the vocab_size key, else the embedding's."""
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if tokens is not None:
        length = getattr(tokens, "length", None)
        return length if isinstance(length, int) else len(tokens) if isinstance(tokens, tuple) else 0
    if header.get("vocab_size"):
        return number(header, "vocab_size", 0)
    return next((t.dims[-1] for t in header.tensors if t.name == "token_embd.weight"), 0)


def unproven(header: HeaderInfo, row: Architecture, tables: MemoryTables) -> tuple[str, ...]:
    """What the numbers rest on without proof."""
    if header.arch not in tables.architectures:
        keys = (
            "attention.sliding_window",
            "ssm.state_size",
            "attention.indexer.key_length",
            "attention.shared_kv_layers",
        )
        seen = [k for k in keys if header.get(k)]
        hint = f" (it has {', '.join(seen)}, not accounted for)" if seen else ""
        return (f"architecture {header.arch} is unverified: estimated from its keys as plain attention{hint}",)
    if (
        row.window_array
        and window_of(header, row, 0)
        and not isinstance(header.get("attention.sliding_window_pattern"), tuple)
    ):
        return (f"{header.arch} needs a sliding_window_pattern array and this file has none: the engine refuses it",)
    return ()
