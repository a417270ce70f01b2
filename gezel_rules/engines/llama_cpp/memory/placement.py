"""The best placement that fits: everything on the GPUs, else experts, feed-forward tensors, whole layers to the CPU.

Every answer is a full estimate of what the engine would allocate, pool by pool; nothing is placed on the strength of a
sum. Steps go from the cheapest for speed to the dearest; within a step as little as needed moves, found in few steps
(what a pool holds only shrinks as more moves away).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from gezel_rules.engines.llama_cpp.memory.estimate import Estimate, PoolUse, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.offload import HOST
from gezel_rules.engines.llama_cpp.memory.search import boundary, largest
from gezel_rules.engines.llama_cpp.memory.split import balanced, filled, unit_bytes
from gezel_rules.engines.llama_cpp.memory.weights import kept_ffn
from gezel_rules.record import NamedTuple

HOST_KINDS = frozenset({"ram", "host"})


class Pool(NamedTuple):
    """Memory a launch may take. ``kind``: a host kind, or a device's; ``usable_bytes``: for this launch, headroom
    already off, and where a device shares the host's memory, what the other may take of it. ``copies_weights``: the
    device takes weights over from the host for large batches."""

    name: str
    kind: str
    usable_bytes: int
    copies_weights: bool = True


class Attempt(NamedTuple):
    """One placement that was tried. ``shortfall_bytes``: missing over all pools; ``why``: in one line, or empty."""

    step: str
    moved: int
    shortfall_bytes: int
    why: str


class Placement(NamedTuple):
    """Where the weights go. ``step``: 'resident', 'experts', 'ffn', 'layers', 'cpu'; ``moved``: how many layers' parts
    left the GPUs; ``launch``: with all flags set; ``tried``: every attempt with why it failed, in order;
    ``shortfall_bytes``: what the best attempt lacks (0 = it fits); ``excess``: by how much the fullest pool is over,
    in bytes (negative: what it has to spare)."""

    fits: bool
    step: str
    moved: int
    launch: Launch
    estimate: Estimate
    pools: tuple[PoolUse, ...]
    tried: tuple[Attempt, ...]
    shortfall_bytes: int
    excess: int

    @property
    def n_gpu_layers(self) -> int | None:
        """Units (layers and the output) on GPUs; ``None`` = no GPU takes part."""
        return self.launch.n_gpu_layers if self.launch.devices else None

    @property
    def n_cpu_moe(self) -> int:
        """Layers whose experts stay on the CPU."""
        return self.launch.n_cpu_moe

    @property
    def override_tensor(self) -> tuple[tuple[str, str], ...]:
        """Tensors that stay on the CPU, as (regex, buffer)."""
        return self.launch.override_tensor

    @property
    def tensor_split(self) -> tuple[float, ...]:
        """Units per GPU; empty for one."""
        return self.launch.tensor_split


class Limits(NamedTuple):
    """What is fixed before a search: layers on the GPU, layers whose experts are on the CPU (``None``: left to it), and
    the share of the layers whose experts may move."""

    n_gpu_layers: int | None = None
    n_cpu_moe: int | None = None
    share: float = 1.0

    @property
    def own(self) -> bool:
        """Whether somebody decides what the GPU gets."""
        return self.n_gpu_layers is not None or self.n_cpu_moe is not None


class Room(NamedTuple):
    """The pools of a search: devices in the engine's order, the host, and what is asked beside the model."""

    devices: tuple[Pool, ...]
    host: Pool
    beside: int
    margin: int

    def usable(self, number: int) -> int:
        """Bytes the model may take on a device: what runs beside it sits on the first."""
        return self.devices[number].usable_bytes - self.margin - (self.beside if number == 0 else 0)


STEPS = ("experts", "ffn", "layers")
FREE = Limits()


def place(
    geo: Geometry,
    launch: Launch,
    pools: Sequence[Pool],
    additional_gpu_bytes: int = 0,
    margin_bytes: int = 0,
    steps: Sequence[str] = STEPS,
    limits: Limits = FREE,
) -> Placement:
    """The first placement that fits, in the order resident, then ``steps``, within ``limits``; what the launch itself
    says about layers, overrides and splits is replaced. ``pools``: devices in the engine's order and one host pool
    (missing = endless). ``additional_gpu_bytes``: drafter and projector, on the first device. ``margin_bytes``: kept
    free on each device."""
    room = _room(pools, additional_gpu_bytes, margin_bytes)
    bare = launch._replace(
        devices=len(room.devices),
        n_gpu_layers=limits.n_gpu_layers,
        n_cpu_moe=limits.n_cpu_moe or 0,
        cpu_moe=False,
        override_tensor=(),
        ffn_on_cpu=frozenset(),
        tensor_split=(),
        device_free=tuple(p.usable_bytes for p in room.devices),
    )
    tried: list[Attempt] = []
    if not room.devices:
        return _settled(_try(geo, bare, room, "cpu", 0), tried)
    start = _try(geo, _split(geo, bare, room), room, "asked" if limits.own else "resident", limits.n_cpu_moe or 0)
    best = start
    for step in () if best.fits else steps:
        tried.append(_attempt(best))
        found = _least(geo, bare, room, step, limits)
        if found is None:
            continue
        if found.fits:
            return _settled(found, tried)
        best = found if found.shortfall_bytes < best.shortfall_bytes else best
    return _settled(best, tried)


def _room(pools: Sequence[Pool], beside: int, margin: int) -> Room:
    devices = tuple(p for p in pools if p.kind not in HOST_KINDS)
    hosts = [p for p in pools if p.kind in HOST_KINDS]
    host = hosts[0] if hosts else Pool("host", "ram", 1 << 62)
    return Room(devices, host, beside, margin)


def _settled(found: Placement, tried: Sequence[Attempt]) -> Placement:
    launch, ffn = found.launch, found.launch.ffn_on_cpu
    if ffn:
        launch = launch._replace(override_tensor=(kept_ffn(ffn),), ffn_on_cpu=frozenset())
    return found._replace(launch=launch, tried=(*tried, _attempt(found)))


def _attempt(found: Placement) -> Attempt:
    return Attempt(found.step, found.moved, found.shortfall_bytes, _why(found))


def _why(found: Placement) -> str:
    """Which pool is short, in one line."""
    return found.tried[0].why if found.tried else ""


def _least(geo: Geometry, bare: Launch, room: Room, step: str, limits: Limits) -> Placement | None:
    """The placement of a step that moves least and fits the devices; the one that moves most when none does.

    The host is judged only then: it fills up as the devices empty, so that moving more would not help it. On one device
    the search begins where weights, caches and states are no more than it holds.
    """
    make, most = _ladder(geo, bare, step, limits)
    if not most:
        return None
    devices = room._replace(host=room.host._replace(usable_bytes=1 << 62))
    name = f"asked {step}" if limits.own else step

    def at(count: int, pools: Room) -> Placement:
        return _try(geo, _split(geo, make(count), pools), pools, name, count)

    emptiest = at(most, devices)
    if not emptiest.fits:
        return at(most, room)
    least = 1
    if len(room.devices) == 1:
        least = most + 1 - largest(lambda kept: _lacking(geo, make(most + 1 - kept), room) <= 0, 1, most, 1)
    fullest = at(least, devices)
    if fullest.fits or least == most:
        return at(least, room)
    found = boundary(lambda n: at(n, devices).excess, (most, emptiest.excess), (least, fullest.excess))
    return at(found, room)


def _lacking(geo: Geometry, launch: Launch, room: Room) -> int:
    """Bytes that the device lacks for weights, caches and states; its compute buffer comes on top."""
    return sum(unit_bytes(geo, launch)) - room.usable(0)


def _ladder(geo: Geometry, bare: Launch, step: str, limits: Limits) -> tuple[Callable[[int], Launch], int]:
    """How a step makes its launches, and how far it goes (0 = not for this model, or it is fixed)."""
    routed = [w.place for w in geo.weights if w.experts and 0 <= w.place < geo.trunk]
    dense = sorted({w.place for w in geo.weights if w.ffn and 0 <= w.place < geo.trunk})
    units = len(geo.layers) + 1
    if step == "experts":
        first, last = min(routed, default=0), max(routed, default=-1)
        most = 0 if limits.n_cpu_moe is not None else ceil((last + 1 - first) * limits.share)
        return lambda n: bare._replace(n_cpu_moe=first + n), most
    if step == "ffn":
        return lambda n: bare._replace(ffn_on_cpu=frozenset(dense[:n])), 0 if routed else len(dense)
    most_moe = max(routed, default=-1) + 1 if limits.n_cpu_moe is None else limits.n_cpu_moe
    emptied = bare._replace(n_cpu_moe=most_moe, ffn_on_cpu=frozenset() if routed else frozenset(dense))
    return lambda n: emptied._replace(n_gpu_layers=units - n), units if limits.n_gpu_layers is None else 0


def _split(geo: Geometry, launch: Launch, room: Room) -> Launch:
    """The launch with a tensor split for several devices: balanced by what each may take, and where that overfills one,
    filled up in order."""
    if len(room.devices) < 2:
        return launch
    capacities = [room.usable(i) for i in range(len(room.devices))]
    even = launch._replace(tensor_split=balanced(geo, launch, capacities))
    found = estimate_geometry(geo, even)
    if max(size for _, size in _over(found, room)) <= 0:
        return even
    return launch._replace(tensor_split=filled(geo, even, found.pools, capacities))


def _try(geo: Geometry, launch: Launch, room: Room, step: str, moved: int) -> Placement:
    """One launch judged against every pool."""
    units = len(geo.layers) + 1
    asked = launch if launch.n_gpu_layers is not None or not launch.devices else launch._replace(n_gpu_layers=units)
    asked = asked._replace(op_offload=any(pool.copies_weights for pool in room.devices))
    result = estimate_geometry(geo, asked)
    over = _over(result, room)
    short, why = _shortfall(over)
    note = Attempt(step, moved, short, why)
    fullest = max(size for _, size in over)
    return Placement(short == 0, step, moved, asked, result, result.pools, (note,), short, fullest)


def _over(result: Estimate, room: Room) -> list[tuple[str, int]]:
    """By how many bytes each pool is over what it may hold; negative where it has room."""
    host = result.pools[HOST]
    on_host = host.total + result.output_bytes - result.lazy_bytes + (result.draft.output_bytes if result.draft else 0)
    over = [(p.name, result.pools[i].total - room.usable(i)) for i, p in enumerate(room.devices)]
    over.append((room.host.name, on_host - room.host.usable_bytes))
    return over


def _shortfall(over: Sequence[tuple[str, int]]) -> tuple[int, str]:
    """Bytes missing over all pools, and the first that is short."""
    short = [(name, size) for name, size in over if size > 0]
    why = f"{short[0][0]} is {short[0][1]} bytes short" if short else ""
    return sum(size for _, size in short), why
