"""What ``gezel-rules memory`` takes and tells for a GGUF file: its header is enough."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.engines.family import Report
from gezel_rules.errors import BadInput

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.estimate import Estimate, PoolUse
    from gezel_rules.engines.llama_cpp.memory.flags import Launch
    from gezel_rules.engines.llama_cpp.memory.tables import MemoryTables
    from gezel_rules.policy.model import PolicySet

GIB = 1 << 30
BAR = 40  # columns
PARTS = (("weights", "model_bytes", "█"), ("caches", "context_bytes", "▓"), ("compute", "compute_bytes", "░"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that move memory, spelled as the engine spells them."""
    add = parser.add_argument
    add("--ctx", type=_tokens, metavar="N", help="tokens over all slots, as 32768 or 32k (default: the trained length)")
    add("--cache-type-k", metavar="T", help="type of cached keys")
    add("--cache-type-v", metavar="T", help="type of cached values")
    add("--parallel", type=_positive, metavar="N", help="slots (default: the engine's own, 4 over one cache)")
    add("--kv-unified", action="store_true", help="one cache shared by all slots")
    add("--ubatch", type=_batch, metavar="N", help="tokens of one physical batch")
    add("--batch", type=_batch, metavar="N", help="tokens of one logical batch")
    add("--swa-full", action="store_true", help="sliding-window caches at full size")
    add("--flash-attn", choices=("on", "off", "auto"), default="auto", help="flash attention")
    add(
        "--spec-type", metavar="T", action="append", default=[], help="speculative type; may be repeated or joined by ,"
    )
    add("--spec-draft-n-max", type=_positive, metavar="N", help="tokens drafted at once")
    add("--devices", type=_count, metavar="N", default=0, help="accelerators (default: none)")
    add("--n-gpu-layers", type=_count, metavar="N", help="units on the devices (default: all)")
    add("--tensor-split", type=_shares, metavar="A,B", default=(), help="shares of the devices")
    add("--n-cpu-moe", type=_count, metavar="N", default=0, help="layers whose experts stay on the CPU")
    add("--cpu-moe", action="store_true", help="all experts stay on the CPU")
    add("--override-tensor", metavar="R=BUFFER", action="append", default=[], help="tensors that match stay there")
    add("--no-kv-offload", action="store_true", help="caches stay on the host")
    add("--processor", metavar="P", help="what the CPU packs weights for, as plain, avx2, amx (default: the engine's)")


def report(args: argparse.Namespace, policies: PolicySet, cache: Path | None) -> Report:
    """The memory of the launch the arguments describe. Raises BadInput."""
    from gezel_rules.engines.llama_cpp.memory.estimate import estimate
    from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
    from gezel_rules.engines.llama_cpp.model_file import read_model

    launch, known = launch_of(args), memory_tables(policies)
    header = read_model(args.file, cache, check_size=False) if args.model is None else args.model
    processor = launch.processor or own_processor(known, policies, cache)
    found = estimate(header, launch._replace(processor=processor), known)
    return Report(found.to_json(), lines(Path(args.file).name, found))


def launch_of(args: argparse.Namespace) -> Launch:
    """The flags as the arithmetic takes them."""
    from gezel_rules.engines.llama_cpp.memory.flags import Launch

    return Launch(
        ctx=args.ctx,
        type_k=args.cache_type_k,
        type_v=args.cache_type_v,
        parallel=args.parallel,
        kv_unified=args.kv_unified,
        ubatch=args.ubatch,
        batch=args.batch,
        swa_full=args.swa_full,
        flash_attn=args.flash_attn,
        spec=tuple(name for given in args.spec_type for name in given.split(",") if name),
        n_max=args.spec_draft_n_max,
        devices=args.devices,
        n_gpu_layers=args.n_gpu_layers,
        tensor_split=args.tensor_split,
        n_cpu_moe=args.n_cpu_moe,
        cpu_moe=args.cpu_moe,
        override_tensor=tuple(_override(text) for given in args.override_tensor for text in given.split(",")),
        no_kv_offload=args.no_kv_offload,
        processor=args.processor,
    )


def own_processor(known: MemoryTables, policies: PolicySet, cache: Path | None) -> str | None:
    """What the engine found here packs weights for; ``None`` when there is none or it does not say."""
    import os

    from gezel_rules.engines.kept_answers import kept_answers
    from gezel_rules.engines.llama_cpp.features import known_features, processor_of
    from gezel_rules.engines.llama_cpp.find import find_engine
    from gezel_rules.engines.llama_cpp.identity import files_behind
    from gezel_rules.engines.patience import SilentError, patience_by

    try:
        command = find_engine(None, os.environ).command
        kept = kept_answers(command, cache, os.environ, files_behind)
        features = known_features(command, os.environ, kept, patience=patience_by(policies))
    except (BadInput, SilentError):
        return None
    return processor_of(features, known.processors)


def lines(name: str, found: Estimate) -> Iterator[str]:
    """The answer for people: what is cached, a bar per pool, doubts and refusals."""
    context = found.context
    shared = "over one cache" if context.streams == 1 and context.slots > 1 else "each with its own"
    slots = "1 slot" if context.slots == 1 else f"{context.slots} slots {shared}"
    flash = "" if context.flash else ", flash attention off"
    yield f"{name}: {found.arch}, window {context.ctx_seq:,} tokens, {slots}{flash}"
    yield ""
    widest = max((pool.total for pool in found.pools), default=1) or 1
    for pool in found.pools:
        if pool.total:
            yield _bar(pool, widest)
    yield ""
    yield from _details(found)
    yield from (f"unverified: {doubt}" for doubt in found.unknown)
    yield from (f"would not start: {reason}" for reason in found.refused)


def _bar(pool: PoolUse, widest: int) -> str:
    """One pool: its name, its bytes, a bar to scale, and what it is made of."""
    cells, said = "", []
    for label, field, mark in PARTS:
        size = getattr(pool, field)
        cells += mark * round(BAR * size / widest)
        if size:
            said.append(f"{label} {_gib(size)}")
    return f"{pool.name:<5} {_gib(pool.total):>10}  {cells:<{BAR}}  {', '.join(said)}"


def _details(found: Estimate) -> Iterator[str]:
    for cache in found.caches:
        streams = f" × {cache.streams}" if cache.streams > 1 else ""
        yield f"{cache.name} cache: {cache.cells:,} cells{streams} over {cache.layers} layers, {_gib(cache.bytes)}"
    if found.recurrent_bytes:
        yield f"recurrent state: {_gib(found.recurrent_bytes)}"
    if found.draft:
        yield f"MTP context: {_gib(found.draft.total)}"
    held = {name: size for name, size in found.buffers.items() if size}
    if len(held) > 1:
        yield "weights on the CPU: " + ", ".join(f"{name} {_gib(size)}" for name, size in held.items())
    if found.lazy_bytes:
        yield f"read on demand: {_gib(found.lazy_bytes)} of the weights"
    yield f"output buffer: {_gib(found.output_bytes)}"
    yield f"in all: {_gib(found.total_bytes)} ({found.total_bytes:,} bytes)"


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / (1 << 20):.1f} MiB"


def _override(text: str) -> tuple[str, str]:
    pattern, mark, buffer = text.rpartition("=")
    if not mark or not pattern or not buffer:
        raise BadInput(f"--override-tensor takes REGEX=BUFFER, such as 'ffn_.*=CPU': {text!r} is neither")
    return pattern, buffer


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value < 1 << 40:
        raise ValueError
    return value


def _positive(text: str) -> int:
    value = _count(text)
    if value == 0:
        raise ValueError
    return value


def _tokens(text: str) -> int:
    if text.isascii() and text.isdigit():
        return _count(text)
    from gezel_rules.facts.setting_values import SettingSpec, value_of

    value: int = value_of(SettingSpec("tokens", "integer", None, "tokens", 0), text)
    return _count(str(value))


def _batch(text: str) -> int:
    return _positive(str(_tokens(text)))


def _shares(text: str) -> tuple[float, ...]:
    shares = tuple(float(part) for part in text.replace("/", ",").split(","))
    if any(not 0 <= share < float("inf") for share in shares):
        raise ValueError
    return shares


for _read, _said in (
    (_count, "count"), (_positive, "positive count"), (_shares, "list of shares"),
    (_tokens, "count of tokens"), (_batch, "positive count of tokens"),
):  # fmt: skip
    _read.__name__ = _said
