"""Installed models as commands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gezel_rules.store.wanted import Installed


def model_json(model: Installed) -> dict[str, Any]:
    """An installed model as plain JSON: sizes in bytes, ``context_length`` in tokens, ``null`` for what is unknown."""
    names = ("role", "name", "path", "size", "sha256", "verified", "origin")
    return {
        "model": model.model_id,
        "size": model.size,
        "quant": model.header.get("quant"),
        "catalog_quant": model.catalog_quant or None,
        "arch": model.header.get("arch"),
        "context_length": model.header.get("context_length"),
        "backend": model.backend or None,
        "vision": model.vision,
        "files": [{name: getattr(file, name) for name in names} for file in model.files],
        "left_out": [{"name": name, "reason": reason} for name, reason in model.left_out],
    }


def size_words(count: int) -> str:
    """Bytes as people read them (binary units)."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def installed_id(model: str) -> str:
    """The id MODEL goes by in the store: as it is, or as a reference reads (``user/repo`` for ``hf://user/repo:…``)."""
    from gezel_rules.catalog.names import id_fault
    from gezel_rules.catalog.references import parse_reference
    from gezel_rules.store.reference_plan import reference_id

    return model if not id_fault(model) else reference_id(parse_reference(model))
