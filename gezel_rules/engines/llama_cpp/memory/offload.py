"""Where the engine puts things: which device owns each layer, each tensor, each cache row."""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import Geometry
from gezel_rules.engines.llama_cpp.memory.weights import INPUT, Load, loads_of
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

HOST = -1
"""The device number of the host."""


class Owners(NamedTuple):
    """``layers``: device of each layer; ``output``: of the output side; ``HOST`` = the CPU;
    ``offloaded``: units (layers and the output) off the host."""

    layers: tuple[int, ...]
    output: int
    offloaded: int


def owners(geo: Geometry, launch: Launch) -> Owners:
    """The last ``n_gpu_layers`` units of layers + output go to the devices, in contiguous runs weighted by the split
    (``llama_model_base::load_tensors``); unset = all."""
    units = len(geo.layers) + 1
    wanted = units if launch.n_gpu_layers is None or launch.n_gpu_layers < 0 else min(launch.n_gpu_layers, units)
    if not launch.devices or not wanted:
        return Owners((HOST,) * len(geo.layers), HOST, 0)
    points = split_points(launch)
    shares, last = array("f", [i / wanted for i in range(wanted)]), launch.devices - 1
    devices = (HOST,) * (units - wanted) + tuple([min(bisect_right(points, share), last) for share in shares])
    return Owners(devices[:-1], devices[-1], wanted)


def split_points(launch: Launch) -> list[float]:
    """Cumulative shares per device, in the engine's single precision: by ``tensor_split``, else by free memory."""
    shares: Sequence[float] = launch.tensor_split or launch.device_free or (1.0,) * launch.devices
    shares = [*shares, *(0.0,) * launch.devices][: launch.devices]
    if not any(shares):
        shares = [float(x) for x in launch.device_free] or [1.0] * launch.devices
    if any(x < 0 for x in shares):
        raise BadInput(f"--tensor-split cannot have negative shares: {','.join(map(str, shares))}")
    total, sums = 0.0, []
    for share in shares:
        total = _f32(total + _f32(share))
        sums.append(total)
    return [_f32(x / total) for x in sums]


def _f32(value: float) -> float:
    """The nearest single-precision number: split points are compared in the engine's own precision."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
"""What --cpu-moe matches (``llm_ffn_exps_cpu_override``)."""


def overrides(launch: Launch) -> list[tuple[re.Pattern[str], int]]:
    """Tensor overrides as (pattern, device), in the order they are tried; first match wins."""
    return [(_pattern(text), _device(buffer, launch)) for text, buffer in launch.override_tensor]


def override_of(name: str, rules: Iterable[tuple[re.Pattern[str], int]]) -> int | None:
    """The device an override moves a tensor to, if one matches its name."""
    return next((device for pattern, device in rules if pattern.search(name)), None)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as fault:
        raise BadInput(f"--override-tensor: {text!r} is not a regular expression ({fault})") from None


def _device(buffer: str, launch: Launch) -> int:
    """The device a buffer name means: CPU and its host buffers are the host, NAME<n> the n-th device."""
    if buffer.upper().startswith("CPU") or buffer.endswith("_Host"):
        return HOST
    number = re.search(r"(\d+)(?:\[.*\])?$", buffer)
    if number is None or int(number[1]) >= launch.devices:
        raise BadInput(f"--override-tensor: there is no buffer {buffer!r} among {launch.devices} devices")
    return int(number[1])


def place_weights(geo: Geometry, mtp: bool, launch: Launch, own: Owners) -> list[tuple[Load, int]]:
    """All loaded tensors with their devices: overrides first, then --cpu-moe and --n-cpu-moe (which name the experts of
    all, or of the first layers), then their layer's device. The MTP head's tensors are loaded only when asked for."""
    rules, trunk, ffn = overrides(launch), geo.trunk, launch.ffn_on_cpu
    expert_layers = len(geo.layers) if launch.cpu_moe else launch.n_cpu_moe
    homes = dict(enumerate(own.layers)) | {INPUT: HOST}

    def device(load: Load) -> int:
        if load.fixed is not None:
            return load.fixed
        if (load.experts and load.place < expert_layers) or (load.ffn and load.place in ffn):
            return HOST
        return homes.get(load.place, own.output)

    found = loads_of(geo.weights, lambda name: override_of(name, rules)) if rules else geo.once(loads)
    return [(load, device(load)) for load in found if load.place < trunk or mtp or load.kept]


def loads(geo: Geometry) -> tuple[Load, ...]:
    """The weights where nothing overrides their places."""
    return loads_of(geo.weights)


def place_layers(parts: Iterable[tuple[int, int]], launch: Launch, own: Owners) -> dict[int, int]:
    """Bytes per device of per-layer parts (caches, states): they follow their layer, or stay on the host."""
    sums: dict[int, int] = {}
    for layer, size in parts:
        device = HOST if launch.no_kv_offload else own.layers[layer]
        sums[device] = sums.get(device, 0) + size
    return sums
