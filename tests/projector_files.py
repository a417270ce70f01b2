"""Projectors (mmproj) as the catalog describes headers: a vision transformer as Gemma 3 has it, of any size."""

from __future__ import annotations

from typing import Any


def gemma3_projector(
    *, image: int = 896, patch: int = 14, width: int = 1152, ffn: int = 4304, heads: int = 16, blocks: int = 2,
    out: int = 640, metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Its ``header`` block; ``out`` is the width of the model it belongs to."""
    meta = {
        "general.architecture": "clip",
        "clip.has_vision_encoder": True,
        "clip.projector_type": "gemma3",
        "clip.use_gelu": True,
        "clip.vision.image_size": image,
        "clip.vision.patch_size": patch,
        "clip.vision.embedding_length": width,
        "clip.vision.feed_forward_length": ffn,
        "clip.vision.projection_dim": out,
        "clip.vision.block_count": blocks,
        "clip.vision.attention.head_count": heads,
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }
    run = f"v.blk.0-{blocks - 1}"
    lines = [
        f"v.patch_embd.weight F16 {patch}x{patch}x3x{width}",
        f"v.patch_embd.bias F32 {width}",
        f"v.position_embd.weight F32 {width}x{(image // patch) ** 2}",
        *(f"v.post_ln.{part} F32 {width}" for part in ("weight", "bias")),
        f"mm.input_projection.weight F16 {out}x{width}",
        f"mm.soft_emb_norm.weight F32 {width}",
        *(f"{run}.ln{n}.{part} F32 {width}" for n in (1, 2) for part in ("weight", "bias")),
        *(f"{run}.attn_{name}.weight F16 {width}x{width}" for name in ("q", "k", "v", "out")),
        *(f"{run}.attn_{name}.bias F32 {width}" for name in ("q", "k", "v", "out")),
        f"{run}.ffn_up.weight F16 {width}x{ffn}",
        f"{run}.ffn_up.bias F32 {ffn}",
        f"{run}.ffn_down.weight F16 {ffn}x{width}",
        f"{run}.ffn_down.bias F32 {width}",
    ]
    tensors = "\n".join(lines) + "\n"
    return {"origin": "made up for a test", "metadata": meta | (metadata or {}), "tensors": tensors}
