"""The ways weights can leave the GPU, as launches with a dial: the more, the less is on the cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gezel_rules.memory.geometry import Geometry
from gezel_rules.memory.launch import Launch


class Step(NamedTuple):
    """One dial: ``launch(n)`` for 1 ≤ n ≤ ``most``; ``says(n)`` in words."""

    most: int
    launch: Callable[[int], Launch]
    says: Callable[[int], str]


def offload_steps(launch: Launch, geometry: Geometry, order: Sequence[str]) -> list[Step]:
    """The steps this model has, in the policy's order; each starts where the one before it ends."""
    steps = []
    for name in order:
        step = _MAKE[name](launch, geometry)
        if step.most > 0:
            steps.append(step)
            launch = step.launch(step.most)
    return steps


def least(low: int, high: int, enough: Callable[[int], bool]) -> int | None:
    """The smallest n in low…high that is enough, when more is never worse; ``None`` when not even high is."""
    if high < low or not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _experts(launch: Launch, geometry: Geometry) -> Step:
    layers = len(geometry.layers)
    return Step(
        layers if geometry.experts else 0,
        lambda n: launch._replace(n_cpu_moe=n),
        lambda n: f"experts of {n} of {layers} layers are on the CPU, all else on the GPU",
    )


def _ffn(launch: Launch, geometry: Geometry) -> Step:
    layers = len(geometry.layers)

    def moved(n: int) -> Launch:
        numbers = "|".join(map(str, range(n)))
        return launch._replace(override_tensor=((rf"blk\.({numbers})\.ffn_(up|down|gate)\.weight", "CPU"),))

    return Step(
        0 if geometry.experts else layers,
        moved,
        lambda n: f"feed-forward weights of {n} of {layers} layers are on the CPU, all else on the GPU",
    )


def _layers(launch: Launch, geometry: Geometry) -> Step:
    units = len(geometry.layers) + 1
    return Step(
        units,
        lambda n: launch._replace(n_gpu_layers=units - n, override_tensor=(), n_cpu_moe=launch.n_cpu_moe),
        lambda n: f"{units - n} of {units} layers are on the GPU, the others on the CPU",
    )


_MAKE = {"experts": _experts, "ffn": _ffn, "layers": _layers}
