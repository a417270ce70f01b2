"""What a placed launch takes of each pool of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.family import MemoryUse, PoolUse
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate
from gezel_rules.engines.llama_cpp.memory.placement import Placement
from gezel_rules.engines.pools import Pool
from gezel_rules.facts.fact import UNKNOWN, Fact

if TYPE_CHECKING:
    from gezel_rules.decisions.decide import Trace


def memory_use(
    placed: Placement, beside: int, cards: Sequence[Pool], ram: Pool, uncounted: Sequence[str] = ()
) -> MemoryUse:
    """``beside``: bytes of drafter and projector, on the first pool; ``uncounted``: what of them nobody knows."""
    found = placed.estimate
    machine = [*cards[: len(found.pools) - 1], ram]
    pools = [
        PoolUse(
            pool.name,
            pool.usable,
            {"weights": use.model_bytes, "context": use.context_bytes, "compute": use.compute_bytes,
             "drafter and projector": beside if number == 0 else 0},
        )
        for number, (pool, use) in enumerate(zip(machine, found.pools, strict=True))
    ]  # fmt: skip
    account = {**found.to_json(), "beside_bytes": beside, "unknown": [*found.unknown, *uncounted]}
    return MemoryUse(tuple(pools), placed.shortfall_bytes, account)


def uncounted_of_projector(trace: Trace) -> Iterator[str]:
    """What of the projector a launch loads is not in its memory."""
    if trace.value("vision.path") is None:
        return
    facts = trace.facts
    if trace.value("vision.loads") and facts["entry.projector_bytes"].value is None:
        yield "the projector's weights"
    if facts["launch.projector_compute"].value is UNKNOWN or facts["launch.projector_uncounted"].value is not None:
        yield "what the projector's encoder computes with"


def as_policies_read(found: Placement, beside: int, ram: Pool) -> dict[str, Any]:
    """Where the weights go and what that takes, under the names of the function ``place``."""
    launch = found.launch
    split = launch.tensor_split
    return {
        "fits": found.fits,
        "n_gpu_layers": found.n_gpu_layers,
        "n_cpu_moe": launch.n_cpu_moe or None,
        "override_tensor": ",".join(f"{names}={buffer}" for names, buffer in launch.override_tensor) or None,
        "tensor_split": ",".join(f"{share:g}" for share in split) if len(split) > 1 else None,
        "needed_bytes": found.estimate.total_bytes + beside,
        "shortfall_bytes": found.shortfall_bytes,
        "ram_left_bytes": _ram_left(ram, found.estimate, beside),
    }


def _ram_left(ram: Pool, found: Estimate, beside: int) -> int | None:
    """What a launch leaves of the RAM it may take; ``None`` when nobody knows how much that is."""
    if ram.usable is None:
        return None
    on_host = found.pools[-1].total + (beside if len(found.pools) == 1 else 0)
    return max(0, ram.usable - on_host - found.output_bytes + found.lazy_bytes)


def usable_fact(pools: Sequence[Pool], why: str) -> Fact:
    """The usable bytes of some pools together; unknown when one of them is."""
    sizes = [pool.usable for pool in pools]
    if any(size is None for size in sizes):
        return Fact(UNKNOWN, why, "probe", settle="gezel-rules devices")
    return Fact(sum(size or 0 for size in sizes), why, "policy")
