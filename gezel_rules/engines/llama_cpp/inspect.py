"""What a GGUF file says about itself, for ``gezel-rules inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from math import isfinite
from typing import Any

from gezel_rules.engines.family import Report
from gezel_rules.engines.llama_cpp.model_facts import model_facts
from gezel_rules.gguf import Array, Header, read_header

_LONGEST_SHOWN = 72  # characters of an untrusted text, in the table


def inspect(path: str, tables: Mapping[str, Any]) -> Report:
    """The summary of a header. ``tables``: policy's, which tell drafters and projectors from models; without
    them the kind is unknown. Raises BadInput."""
    header = read_header(path)
    kinds = {"drafters": tables.get("drafter_architectures"), "projectors": tables.get("projector_architectures")}
    facts = model_facts(header, **kinds)
    summary = summarise(header, facts)
    return Report(summary, list(_lines(path, summary)))


def summarise(header: Header, facts: dict[str, object]) -> dict[str, Any]:
    """The header as plain JSON; sizes in bytes, ``geometry`` as the file has it, ``null`` for what is unknown."""
    return {
        "version": header.version,
        "byte_order": header.byte_order,
        "arch": facts.get("model.arch"),
        "name": facts.get("model.name"),
        "kind": _kind(facts),
        "file_type": facts.get("model.file_type"),
        "parameters": facts["model.parameters"],
        "tensors": len(header.tensors),
        "file_bytes": header.file_bytes,
        "data_offset": header.data_offset,
        "weights_bytes": facts["model.weights_bytes"],
        "bytes_by_type": _bytes_by_type(header),
        "mtp_layers": facts["model.mtp_layers"],
        "has_chat_template": facts["model.has_chat_template"],
        "tied_embeddings": facts.get("model.tied_embeddings"),
        "geometry": _geometry(header),
    }


def _kind(facts: dict[str, object]) -> str | None:
    if facts.get("model.is_projector"):
        return "projector"
    if facts.get("model.is_drafter") or facts["model.mtp_only"]:
        return "drafter"
    known = "model.is_projector" in facts and "model.is_drafter" in facts
    return "model" if known else None


def _bytes_by_type(header: Header) -> dict[str, int]:
    """Type → bytes, the largest share first."""
    sizes: dict[str, int] = {}
    for tensor in header.tensors:
        sizes[tensor.type] = sizes.get(tensor.type, 0) + tensor.nbytes
    return dict(sorted(sizes.items(), key=lambda size: (-size[1], size[0])))


def _geometry(header: Header) -> dict[str, Any]:
    prefix = f"{header.arch}."
    geometry = {key: value for key, value in header.metadata.items() if header.arch and key.startswith(prefix)}
    return {key: _json(value) for key, value in geometry.items()}


def _json(value: Any) -> Any:
    """JSON has no NaN or infinity: they are written as text."""
    if isinstance(value, Array):
        return value._asdict()
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _lines(path: str, summary: dict[str, Any]) -> Iterator[str]:
    rows = [*_rows(summary), *((_printable(key), _plain(value)) for key, value in summary["geometry"].items())]
    width = max(len(label) for label, _ in rows)
    yield _printable(path)
    for label, value in rows:
        yield f"  {label:{width}}  {value}"


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "format", f"GGUF v{summary['version']}, {summary['byte_order']}-endian"
    for label in ("name", "arch", "kind"):
        yield label, _plain(summary[label])
    yield "file type", _plain(summary["file_type"])
    yield "parameters", f"{summary['parameters']:,} in {summary['tensors']:,} tensors"
    yield "weights", f"{_mib(summary['weights_bytes'])} from byte {summary['data_offset']:,}"
    for kind, size in summary["bytes_by_type"].items():
        yield f"  {kind}", f"{_mib(size)}  {size / max(1, summary['weights_bytes']):6.1%}"
    yield "MTP layers", _plain(summary["mtp_layers"])
    yield "chat template", _plain(summary["has_chat_template"])
    yield "tied embeddings", _plain(summary["tied_embeddings"])


def _mib(size: int) -> str:
    return f"{size / 2**20:12,.2f} MiB"


def _plain(value: Any) -> str:
    """One value on one line; equal neighbours of a per-layer array are counted (``5×1 0``)."""
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case list():
            runs = ((item, len(list(run))) for item, run in groupby(value))
            return _printable(" ".join(f"{n}×{_plain(item)}" if n > 1 else _plain(item) for item, n in runs))
        case {"type": kind, "length": length}:
            return f"{length:,} × {kind}"
    return _printable(f"{value:.6g}" if isinstance(value, float) else str(value))


def _printable(text: str) -> str:
    """Text from a file, without control characters, cut to a line."""
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean if len(clean) <= _LONGEST_SHOWN else clean[: _LONGEST_SHOWN - 1] + "…"
