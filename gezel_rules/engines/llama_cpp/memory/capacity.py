"""Windows and slots that fit: pure searches over estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.kv_cache import caches
from gezel_rules.engines.llama_cpp.memory.launch import Launch, settle
from gezel_rules.engines.llama_cpp.memory.placement import STEPS, Pool, place
from gezel_rules.engines.llama_cpp.memory.recurrent import state_parts
from gezel_rules.record import NamedTuple


class Line(NamedTuple):
    """Caches of one slot as a line over its window: ``fixed_bytes`` (windowed layers, states) + ``bytes_per_token`` ×
    tokens. Exact at multiples of the engine's padding above the sliding window."""

    fixed_bytes: int
    bytes_per_token: int


def with_window(launch: Launch, tokens: int) -> Launch:
    """The launch with a window of so many tokens for every slot (shared when the cache is unified)."""
    alone = launch.parallel is None or launch.kv_unified
    return launch._replace(ctx=tokens * (1 if alone else launch.parallel or 1))


def cache_line(geo: Geometry, launch: Launch) -> Line:
    """What the caches cost per token of the window, and at no window at all. Sliding layers are fixed unless the launch
    pins them at full size."""
    high = 4 * max(geo.trained, geo.window * 64, 1 << 16)
    low = high // 2
    at = [_cache_bytes(geo, with_window(launch, tokens)) for tokens in (low, high)]
    slope = (at[1] - at[0]) // (high - low)
    return Line(at[1] - slope * high, slope)


def kv_bytes_per_token(geo: Geometry, launch: Launch) -> int:
    """Bytes one more token of window costs, all slots together."""
    return cache_line(geo, launch).bytes_per_token


def _cache_bytes(geo: Geometry, launch: Launch) -> int:
    context = settle(launch, geo.trained, geo.nextn, geo.row, geo.tables)
    return sum(c.bytes for c in caches(geo, context)) + sum(b for _, b in state_parts(geo, context))


def window_that_fits(
    geo: Geometry,
    launch: Launch,
    pools: Sequence[Pool],
    *,
    most: int,
    least: int = 0,
    additional_gpu_bytes: int = 0,
    margin_bytes: int = 0,
    resident: bool = True,
    steps: Sequence[str] = STEPS,
) -> int:
    """The largest window per slot, at most ``most`` tokens, that fits the pools: with all weights on the GPUs, or with
    ``steps`` of offload allowed. 0 when not even ``least`` fits. Multiples of the engine's padding, or ``most``."""
    allowed = () if resident else tuple(steps)

    def fits(tokens: int) -> bool:
        there = with_window(launch, tokens)
        return place(geo, there, pools, additional_gpu_bytes, margin_bytes, allowed).fits

    pad = geo.tables.defaults.cell_padding
    return largest(fits, max(pad, least), most, pad)


def slots_that_fit(
    geo: Geometry,
    launch: Launch,
    pools: Sequence[Pool],
    *,
    window: int,
    most: int,
    additional_gpu_bytes: int = 0,
    margin_bytes: int = 0,
    resident: bool = True,
    steps: Sequence[str] = STEPS,
) -> int:
    """How many slots of ``window`` tokens each fit, at most ``most``; 0 when not even one does."""
    allowed = () if resident else tuple(steps)

    def fits(slots: int) -> bool:
        there = with_window(launch._replace(parallel=slots), window)
        return place(geo, there, pools, additional_gpu_bytes, margin_bytes, allowed).fits

    return largest(fits, 1, most, 1)


def largest(fits: Callable[[int], bool], least: int, most: int, step: int) -> int:
    """The largest value between the two for which ``fits`` holds (it must not come back once it failed); 0 when not
    even the least does. Values are ``most`` or multiples of ``step``."""
    if most >= least and fits(most):
        return most
    if most < least or not fits(least):
        return 0
    low, high = least // step, most // step
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle * step):
            low = middle
        else:
            high = middle - 1
    return max(least, low * step)


def window_in_budget(geo: Geometry, launch: Launch, budget_bytes: int, *, most: int, least: int = 0) -> int:
    """The largest window per slot whose whole launch stays within a budget of bytes, wherever they lie."""

    def fits(tokens: int) -> bool:
        return estimate_geometry(geo, with_window(launch, tokens)).total_bytes <= budget_bytes

    pad = geo.tables.defaults.cell_padding
    return largest(fits, max(pad, least), most, pad)
