"""What a projector's vision encoder computes with: the buffer the engine reserves for the picture it warms up with.

A picture is cut into square patches, and the widest moment of a block decides, in f32 values per patch: feed-forward
(some values of its width, some of the hidden width) or attention (values of the hidden width). Which of them, and how
many pictures' worth, is measured for each kind of projector and stands in the policies' table ``vision_encoders``.
A larger picture than that of the warm-up takes more while it is read; the engine does not reserve it either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.header_info import HeaderInfo

FLOAT = 4  # bytes
COLOURS = 3
VISION = "vision."


class VisionEncoder(NamedTuple):
    """A row of ``vision_encoders``."""

    ffn: float
    hidden: float
    attention: float
    picture: bool
    mask: bool
    side: int
    merge: int


def projector_kind(header: HeaderInfo) -> str:
    """What the vision half of a projector calls itself; empty for one that has none."""
    if not header.get("has_vision_encoder", False):
        return ""
    return str(header.get("projector_type") or header.get(f"{VISION}projector_type") or "")


def vision_bytes(header: HeaderInfo, rows: Mapping[str, VisionEncoder]) -> int | None:
    """Bytes of the compute buffer of the vision encoder behind ``header``; 0 for a projector that cannot see, ``None``
    for a kind nobody has measured, or a header that lacks a size."""
    kind = projector_kind(header)
    if not kind:
        return None if header.get("has_vision_encoder", False) else 0
    row, side, patch = rows.get(kind), _number(header, "image_size"), _number(header, "patch_size")
    width, ffn = _number(header, "embedding_length"), _number(header, "feed_forward_length")
    if row is None or not (side and patch and width and ffn):
        return None
    across = row.side * _merge(header, row) if row.side else side // patch
    patches = across * across
    widest = max(row.ffn * ffn + row.hidden * width, row.attention * width) + (patches if row.mask else 0)
    picture = COLOURS * (across * patch) ** 2 if row.picture else 0
    return FLOAT * (int(patches * widest) + picture)


def uncounted(header: HeaderInfo, rows: Mapping[str, VisionEncoder]) -> str | None:
    """What of a projector's encoders has no known compute buffer, in words; ``None`` when all of it is known."""
    unknown = [f"its vision encoder ({projector_kind(header) or 'of no known kind'})"]
    unknown = unknown if vision_bytes(header, rows) is None else []
    if header.get("has_audio_encoder", False):
        unknown.append("its audio encoder")
    return " and ".join(unknown) or None


def _number(header: HeaderInfo, name: str) -> int:
    value = header.get(f"{VISION}{name}", 0)
    return value if isinstance(value, int) and value > 0 else 0


def _merge(header: HeaderInfo, row: VisionEncoder) -> int:
    """Patches per token and side: the header's, under either name, or what this kind has without one."""
    return _number(header, "spatial_merge_size") or _number(header, "projector.scale_factor") or row.merge
