"""What the engine's own ``--fit`` makes of a model with nothing set: computed.

It follows ``common_params_fit_impl`` of llama.cpp 0.6.0-dev step by step, on our own estimates in place of
its dry runs: window first, then layers from the last device back (experts in RAM), then experts from the first on, then
part of one more layer. Sizes are bytes unless a name says MiB.
"""

from __future__ import annotations

from functools import cache

from gezel_rules.engines.llama_cpp.memory.estimate import Estimate, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.record import NamedTuple

MIB = 1 << 20
MARGIN = 1024 * MIB
"""What --fit leaves free of each device (--fit-target)."""
LEAST = 4096
"""Tokens below which --fit does not go (--fit-ctx)."""
MOE, UP, GATE, ATTN = 4, 2, 3, 1
_STAYS = {
    ATTN: r"blk\.{}\.ffn_(gate|up|gate_up|down).*",
    UP: r"blk\.{}\.ffn_(gate|gate_up|down).*",
    GATE: r"blk\.{}\.ffn_down.*",
    MOE: r"blk\.{}\.ffn_(up|down|gate_up|gate)_(ch|)exps",
}
"""Which tensors of a partial layer go elsewhere (``get_overflow_pattern``)."""


class Part(NamedTuple):
    """Units of one device: ``layers`` with the output as one, the last ``part`` of them partial; ``kind``: which
    tensors of the first partial one go to the next device or to RAM."""

    layers: int = 0
    part: int = 0
    kind: int = MOE


class Fit(NamedTuple):
    """The answer: tokens of context (shared by four slots), units per device (none: everything, as the engine splits
    by itself), and why the engine gave up, if it did."""

    ctx: int
    parts: tuple[Part, ...] = ()
    failed: str = ""


class Machine(NamedTuple):
    """``free``: bytes of each device; ``ram``: bytes in total, which is what counts without devices; ``copies``: the
    devices copy host weights for large batches (RPC does not); ``target``: bytes to use of each device; ``uncounted``:
    bytes of weights that the engine packs for its CPU, which --fit overlooks; ``processor``: what it packs them for."""

    free: tuple[int, ...]
    ram: int
    copies: bool
    target: tuple[int, ...]
    uncounted: int = 0
    processor: str | None = None


def launch_of(fit: Fit, geo: Geometry, machine: Machine) -> Launch:
    """The launch that ``--fit`` goes on with."""
    count = len(machine.free)
    bare = Launch(ctx=fit.ctx, devices=count, device_free=machine.free, op_offload=machine.copies)
    bare = bare._replace(processor=machine.processor)
    if not fit.parts:
        return bare
    layers, overrides = sum(p.layers for p in fit.parts), []
    first = geo.trunk + 1 - layers
    for number, p in enumerate(fit.parts):
        first += p.layers - p.part
        for layer in range(first, first + p.part):
            odd = layer == first and p.kind != MOE
            goes = f"GPU{number + 1}" if odd and number + 1 < count else "CPU"
            overrides.append((_STAYS[p.kind if layer == first else MOE].format(layer), goes))
        first += p.part
    split = tuple(float(p.layers) for p in fit.parts) if count > 1 and layers else ()
    return bare._replace(n_gpu_layers=layers, tensor_split=split, override_tensor=tuple(overrides))


def estimated(fit: Fit, geo: Geometry, machine: Machine) -> Estimate:
    """Our estimate of that launch."""
    return estimate_geometry(geo, launch_of(fit, geo, machine))


def computed(geo: Geometry, machine: Machine) -> Fit:
    """The answer by the algorithm."""
    search = _Search(geo, machine)
    start = search.window()
    if start.failed or not search.short:
        return start
    filled = search.dense(start)
    return search.experts(filled) if search.moe and search.surplus(start) > 0 else filled


class _Search:
    """The state of one search; ``short``: layers have to go."""

    def __init__(self, geo: Geometry, machine: Machine) -> None:
        self.geo, self.machine, self.short = geo, machine, False
        self.moe = any(w.experts for w in geo.weights)
        self.used = cache(self._used)

    def _used(self, fit: Fit) -> list[int]:
        """Bytes by device; by the host where there is none."""
        found = estimated(fit, self.geo, self.machine)
        return [pool.total for pool in found.pools[:-1]] or [found.pools[-1].total - self.machine.uncounted]

    def window(self) -> Fit:
        """Step 2: the context between the least and the trained one, by interpolation of what all devices hold."""
        most = Fit(self.geo.trained)
        target = self.machine.target or (self.machine.ram - MARGIN,)
        used = self.used(most)
        if all(u <= t for u, t in zip(used, target, strict=True)):
            return most
        self.short, found = True, most
        room, full = sum(target), sum(used)
        if full > room and self.geo.trained > LEAST:
            found = self._between(room - self._waste(most), full)
        if not self.machine.free and self.short:
            return found._replace(failed="unable to fit into system memory")
        return found

    def _waste(self, most: Fit) -> int:
        """What several devices are expected to lose, for layers and tensors go as wholes."""
        count = len(self.machine.free)
        if count < 2:
            return 0
        model = sum(p.model_bytes for p in estimated(most, self.geo, self.machine).pools[:-1])
        return (count + 1) * (model // self.geo.trunk) // (6 if self.moe else 2)

    def _between(self, room: int, full: int) -> Fit:
        low, high = LEAST, self.geo.trained
        least = sum(self.used(Fit(low)))
        if room <= least:
            return Fit(low)
        ctx = low + (high - low) * (room - least) // (full - least)
        self.short = len(self.machine.free) > 1
        return Fit(max(ctx - ctx % 256, low))

    def surplus(self, start: Fit) -> int:
        """Bytes left over all devices with every expert in RAM."""
        bare = launch_of(start, self.geo, self.machine)
        away = bare._replace(override_tensor=((r"blk\.\d+\.ffn_(up|down|gate_up|gate)_(ch|)exps", "CPU"),))
        pools = estimate_geometry(self.geo, away).pools[:-1]
        return sum(self.machine.target) - sum(pool.total for pool in pools)

    def dense(self, start: Fit) -> Fit:
        """Step 3: layers from the last device back, their experts in RAM."""
        last = len(self.machine.free) - 1
        low = start._replace(parts=(Part(),) * (last + 1))
        for number in range(last, -1, -1):
            units = self.geo.trunk + 1 - sum(p.layers for p in low.parts[number + 1 :])
            part = (units if number < last else units - 1) if self.moe else 0
            high = _with(low, number, Part(units, part))
            if units > 0:
                low = self._false_position(low, high, number, self._more)
        return low

    def _more(self, fit: Fit, number: int, step: int) -> Fit:
        p = fit.parts[number]
        # the output is a unit that cannot be partial
        output = number == len(fit.parts) - 1 and p.part == 0
        return _with(fit, number, Part(p.layers + step, p.part + (step - output if self.moe else 0), p.kind))

    def _false_position(self, low: Fit, high: Fit, number: int, at) -> Fit:
        """The most that fits one device between two fits: interpolated, tried, narrowed."""
        target = self.machine.target[number]
        if self.used(high)[number] <= target:
            return high

        def size(fit: Fit) -> int:
            p = fit.parts[number]
            return p.layers - (p.part if at != self._more else 0)

        while (delta := size(high) - size(low)) > 1:
            below, above = self.used(low)[number], self.used(high)[number]
            step = int(delta * (target - below) / (above - below)) if above != below else delta
            step = min(max(step, 1) if step >= 0 else delta, delta - 1)
            tried = at(low, number, step)
            low, high = (tried, high) if self.used(tried)[number] <= target else (low, tried)
        return low

    def experts(self, fit: Fit) -> Fit:
        """Step 4: layers made whole from the first device on, then part of one more on each."""
        last = len(fit.parts) - 1
        first = self._begins(fit)
        for number in range(last + 1):
            if number > first:
                break
            fit = self._false_position(fit, self._all(fit, number, first), number, self._converted)
            first = self._first_partial(fit, first)
            if first <= last and fit.parts[first].part:
                fit = self._one_more(fit, number, first)
                first = self._first_partial(fit, first)
        return fit

    def _begins(self, fit: Fit) -> int:
        held = [number for number, p in enumerate(fit.parts) if p.layers]
        return held[0] if held else len(fit.parts)

    def _first_partial(self, fit: Fit, first: int) -> int:
        while first < len(fit.parts) and not fit.parts[first].part:
            first += 1
        return min(first, len(fit.parts) - 1) if all(not p.part for p in fit.parts) else first

    def _all(self, fit: Fit, number: int, first: int) -> Fit:
        """Everything that is still partial, whole and on one device; the output stays on the last."""
        parts, last = list(fit.parts), len(fit.parts) - 1
        for other in range(first, last + 1):
            moved = parts[other].layers - (other == last)
            parts[number] = parts[number]._replace(layers=parts[number].layers + moved)
            parts[other] = parts[other]._replace(layers=parts[other].layers - moved, part=0)
        return fit._replace(parts=tuple(parts))

    def _converted(self, fit: Fit, number: int, step: int) -> Fit:
        parts = list(fit.parts)
        for other in range(number, len(parts)):
            moved = min(step, parts[other].part)
            parts[other] = parts[other]._replace(layers=parts[other].layers - moved, part=parts[other].part - moved)
            parts[number] = parts[number]._replace(layers=parts[number].layers + moved)
            step -= moved
            if parts[other].part:
                break
        return fit._replace(parts=tuple(parts))

    def _one_more(self, fit: Fit, number: int, first: int) -> Fit:
        """Attention and up, if that fits also gate; else attention alone."""
        parts = list(fit.parts)
        parts[first] = parts[first]._replace(layers=parts[first].layers - 1, part=parts[first].part - 1)
        own = parts[number]
        parts[number] = own._replace(layers=own.layers + 1, part=own.part + 1)
        there = fit._replace(parts=tuple(parts))
        tried = [_with(there, number, parts[number]._replace(kind=kind)) for kind in (UP, GATE, ATTN)]
        if self._fits(tried[0], number):
            return tried[1] if self._fits(tried[1], number) else tried[0]
        return tried[2] if self._fits(tried[2], number) else fit

    def _fits(self, fit: Fit, number: int) -> bool:
        pairs = list(zip(self.used(fit), self.machine.target, strict=True))
        return all(used < target for used, target in pairs[number : number + 2])


def _with(fit: Fit, number: int, part: Part) -> Fit:
    return fit._replace(parts=(*fit.parts[:number], part, *fit.parts[number + 1 :]))
