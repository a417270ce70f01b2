"""What a GGUF header says about its model, as flat facts for the policy engine.

A fact the header does not settle is left out, never guessed: a missing key, a value of the wrong type, an array where
one number is meant. A key whose absence has a meaning to the engine (no experts, no MTP head) gives that meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from gezel_rules.gguf.quants import FILE_TYPES
from gezel_rules.gguf.records import Array, Header

MODEL_FACT_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model.arch": "general.architecture",
        "model.name": "general.name",
        "model.file_type": "general.file_type",
        "model.layers": "<arch>.block_count",
        "model.trained_window": "<arch>.context_length",
        "model.embedding": "<arch>.embedding_length",
        "model.vocab": "length of tokenizer.ggml.tokens, else <arch>.vocab_size, else rows of token_embd.weight",
        "model.experts": "<arch>.expert_count, 0 when absent",
        "model.experts_used": "<arch>.expert_used_count, 0 when absent",
        "model.mtp_layers": "<arch>.nextn_predict_layers if blk.<first of them>.nextn.eh_proj.weight is there, else 0",
        "model.mtp_only": "model.mtp_layers > 0 and no blk.0.attn_norm.weight",
        "model.has_chat_template": "tokenizer.chat_template is there and not empty",
        "model.is_drafter": "general.architecture is one of the policy's drafter architectures",
        "model.is_projector": "general.architecture is one of the policy's projector architectures",
        "model.tied_embeddings": "token_embd.weight is there and output.weight is not",
        "model.sliding_window": "<arch>.attention.sliding_window",
        "model.weights_bytes": "sum of all tensors' bytes",
        "model.parameters": "sum of all tensors' elements",
        "model.head_dim_k": "<arch>.attention.key_length, else <arch>.embedding_length / <arch>.attention.head_count",
        "model.head_dim_v": "<arch>.attention.value_length, else <arch>.embedding_length / <arch>.attention.head_count",
        "model.recurrent": "any key of a recurrent state: <arch>.ssm.conv_kernel, <arch>.shortconv.l_cache, …",
        "model.mla": "both <arch>.attention.key_length_mla and <arch>.attention.value_length_mla",
        "model.byte_order": "the GGUF version field",
    }
)
"""Fact → the GGUF key it was read from, or the formula over keys; ``<arch>`` is ``general.architecture``."""

_RECURRENT_KEYS = (
    "ssm.conv_kernel",
    "shortconv.l_cache",
    "kda.head_dim",
    "wkv.head_size",
    "full_attention_interval",
    "attention.recurrent_layers",
)


def model_facts(
    header: Header, *, drafters: Collection[str] | None = None, projectors: Collection[str] | None = None
) -> dict[str, object]:
    """Flat facts as in ``MODEL_FACT_KEYS``; plain JSON; lengths in tokens, sizes in bytes; unknown ones are absent.

    ``drafters`` and ``projectors`` are the architectures that policy counts as such; without them the two facts that
    need them are unknown. Never raises on a well-formed header, whatever its values.
    """
    facts = _identity(header) | _shape(header) | _attention(header)
    arch = header.arch
    if arch and drafters is not None:
        facts["model.is_drafter"] = arch in drafters
    if arch and projectors is not None:
        facts["model.is_projector"] = arch in projectors
    return {name: value for name, value in facts.items() if value is not None}


def summary_of(header: Header) -> dict[str, object]:
    """What a manifest records: ``arch``, ``quant`` and ``context_length`` in tokens, where the header says them."""
    facts = model_facts(header)
    names = {"arch": "model.arch", "quant": "model.file_type", "context_length": "model.trained_window"}
    return {name: facts[fact] for name, fact in names.items() if fact in facts}


def _identity(header: Header) -> dict[str, Any]:
    name, file_type = header.metadata.get("general.name"), header.metadata.get("general.file_type")
    template = header.metadata.get("tokenizer.chat_template", "")
    return {
        "model.arch": header.arch or None,
        "model.name": name if isinstance(name, str) else None,
        # The engine sets bit 1024 on a type it guessed itself (llama.h).
        "model.file_type": FILE_TYPES.get(file_type & ~1024) if type(file_type) is int else None,
        "model.has_chat_template": bool(template) and isinstance(template, str | Array),
        "model.byte_order": header.byte_order,
    }


def _shape(header: Header) -> dict[str, Any]:
    tensors = {tensor.name: tensor for tensor in header.tensors}
    layers, mtp = whole(header, "block_count"), _mtp_layers(header, tensors)
    return {
        "model.layers": layers,
        "model.trained_window": whole(header, "context_length"),
        "model.embedding": whole(header, "embedding_length"),
        "model.vocab": _vocab(header, tensors),
        "model.experts": whole(header, "expert_count", 0),
        "model.experts_used": whole(header, "expert_used_count", 0),
        "model.mtp_layers": mtp,
        "model.mtp_only": mtp > 0 and "blk.0.attn_norm.weight" not in tensors,
        "model.tied_embeddings": "output.weight" not in tensors if "token_embd.weight" in tensors else None,
        "model.weights_bytes": sum(tensor.nbytes for tensor in header.tensors),
        "model.parameters": sum(tensor.elements for tensor in header.tensors),
    }


def _attention(header: Header) -> dict[str, Any]:
    return {
        "model.sliding_window": whole(header, "attention.sliding_window"),
        "model.head_dim_k": whole(header, "attention.key_length", _head_dim(header)),
        "model.head_dim_v": whole(header, "attention.value_length", _head_dim(header)),
        "model.recurrent": any(_says_so(header.get(key)) for key in _RECURRENT_KEYS),
        "model.mla": bool(whole(header, "attention.key_length_mla") and whole(header, "attention.value_length_mla")),
    }


def _says_so(value: object) -> bool:
    """A number, or a per-layer list with at least one layer that is not nought."""
    return any(value) if isinstance(value, tuple) else bool(value)


def whole(header: Header, suffix: str, missing: int | None = None) -> int | None:
    """The whole number ≥ 0 at ``<arch>.<suffix>``; ``missing`` when the key is absent, ``None`` when it is no such."""
    value = header.get(suffix, missing)
    return value if type(value) is int and value >= 0 else None


def _vocab(header: Header, tensors: Mapping[str, Any]) -> int | None:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, Array):
        return tokens.length
    stated = whole(header, "vocab_size")
    rows = tensors["token_embd.weight"].dims[1:2] if "token_embd.weight" in tensors else ()
    return stated if stated is not None else next(iter(rows), None)


def _mtp_layers(header: Header, tensors: Mapping[str, Any]) -> int:
    """Trunk-only files keep the key, so the head's first tensor counts too; ``block_count`` includes the head."""
    layers, heads = whole(header, "block_count", 0) or 0, whole(header, "nextn_predict_layers", 0) or 0
    return heads if heads and f"blk.{layers - heads}.nextn.eh_proj.weight" in tensors else 0


def _head_dim(header: Header) -> int | None:
    embedding, heads = whole(header, "embedding_length"), whole(header, "attention.head_count")
    return embedding // heads if embedding and heads else None
