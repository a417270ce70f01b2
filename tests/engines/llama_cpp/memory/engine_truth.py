"""What the engine allocated (tests/data/truth), our estimate of the same launches, and the score of each.

``python tests/engines/llama_cpp/memory/engine_truth.py`` prints the score per model shape.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.memory.estimate import estimate_geometry
from gezel_rules.engines.llama_cpp.memory.flags import Launch
from gezel_rules.engines.llama_cpp.memory.geometry import geometry
from gezel_rules.engines.llama_cpp.memory.tables import memory_tables
from gezel_rules.gguf import read_header
from gezel_rules.gguf.quants import QUANTS
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

DATA = Path(__file__).parents[3] / "data"
MIB = 1 << 20
PRINTED = 0.006 * MIB
"""The engine prints two decimals of a MiB."""


@cache
def architectures():
    """The architecture tables as policy ships them."""
    return memory_tables(read_policies(policies_dir(), FAMILY, None))


@cache
def index():
    """Every header kept here: real shapes, and made-up files of architectures that have no row in the truth tables."""
    kept = {folder: json.loads((DATA / folder / "index.json").read_text()) for folder in ("headers", "unseen")}
    return {name: {**entry, "folder": folder} for folder, entries in kept.items() for name, entry in entries.items()}


def sparse(name: str, directory: Path) -> Path:
    """A model file of the true size that holds its header only; takes no disk."""
    path = directory / name
    if not path.exists():
        path.write_bytes(gzip.decompress((DATA / index()[name]["folder"] / f"{name}.head.gz").read_bytes()))
        os.truncate(path, index()[name]["file_bytes"])
    return path


@cache
def shape(name: str):
    """The geometry of a shape."""
    with tempfile.TemporaryDirectory() as directory:
        return geometry(read_header(sparse(name, Path(directory))), architectures())


@cache
def rows(table: str):
    """The scorable rows of a table whose shape has a header here."""
    folder = "unseen" if table == "unseen" else "truth"
    text = gzip.decompress((DATA / folder / f"{table}.jsonl.gz").read_bytes()).decode()
    found = [json.loads(line) for line in text.splitlines()]
    for row in found:
        row.setdefault("gguf", f"{row.get('shape')}.gguf")
    return [row for row in found if row.get("ok", True) and row["gguf"] in index()]


def launch_of(row) -> Launch:
    """The launch of a truth row."""
    return Launch(
        ctx=row["ctx"],
        type_k=row["type_k"],
        type_v=row["type_v"],
        parallel=None if row["parallel_auto"] else row["parallel"],
        kv_unified=row["kv_unified"],
        ubatch=row["ubatch"],
        swa_full=row["swa_full"],
        flash_attn=row["flash_attn"],
        spec=(row["spec"],) if row["spec"] else (),
    )


VALUED = {
    "-c": ("ctx", int),
    "-np": ("parallel", int),
    "-ngl": ("n_gpu_layers", int),
    "-ts": ("tensor_split", lambda text: tuple(map(float, text.split(",")))),
    "-ctk": ("type_k", str),
    "-ctv": ("type_v", str),
    "-ub": ("ubatch", int),
    "-b": ("batch", int),
    "-fa": ("flash_attn", str),
    "-ncmoe": ("n_cpu_moe", int),
    "-ot": ("override_tensor", lambda text: (tuple(text.rsplit("=", 1)),)),
}
SWITCHES = {"-nkvo": "no_kv_offload", "-cmoe": "cpu_moe", "-kvu": "kv_unified", "--swa-full": "swa_full"}


def launch_of_flags(flags, devices: int, flash: str) -> Launch:
    """The launch of a placement row's flags; ``flash``: how flash attention was asked for where they do not say."""
    given, left = {"devices": devices, "flash_attn": flash}, list(flags)
    while left:
        flag = left.pop(0)
        if flag in SWITCHES:
            given[SWITCHES[flag]] = True
        else:
            name, read = VALUED[flag]
            given[name] = read(left.pop(0))
    return Launch(**given)


@cache
def judged():
    """Every truth row with our estimate and what is right about it, by criterion."""
    return [(row, found, dict(_marks(row, found))) for row in rows("truth") for found in (_estimate(row),)]


@cache
def _known(name, launch):
    return estimate_geometry(shape(name), launch)


def _estimate(row):
    return _known(row["gguf"], launch_of(row))


def _marks(row, found):
    ours = {cache.name: cache for cache in found.caches}
    yield "kv", len(ours) == len(row["kv"]) and all(_same_cache(ours.get(c["name"]), c) for c in row["kv"])
    yield "recurrent", abs(found.recurrent_bytes - row["rs_bytes"]) <= PRINTED
    yield "output", abs(found.output_bytes - row["output_bytes"]) <= PRINTED
    if row["method"] == "server-dry":  # whole MiB, floored per buffer
        yield "weights", 0 <= found.weights_bytes - sum(row["model_mib"].values()) * MIB < 2 * MIB
    off = abs(found.compute_bytes - row["compute_bytes"])
    yield "compute", off <= max(MIB, 0.01 * row["compute_bytes"])
    if row["draft"]:
        pairs = zip(found.draft.caches, row["draft"]["kv"], strict=True)
        yield "draft", all(_same_cache(ours, theirs) for ours, theirs in pairs)
        yield "draft compute", abs(found.draft.compute_bytes / MIB - float(row["draft"]["compute_mib"]["CPU"])) <= 8


def _same_cache(ours, theirs) -> bool:
    if ours is None:
        return False
    shape = (ours.cells, ours.streams, ours.layers) == (theirs["cells"], theirs["streams"], theirs["layers"])
    return shape and abs(ours.bytes - theirs["bytes"]) <= PRINTED


@cache
def judged_placements(table: str = "placement", flash: str = "on"):
    """Every placement row with our estimate and its marks: model, context, and the devices' compute buffers."""
    pairs = [
        (row, _known(row["gguf"], launch_of_flags(row["flags"], row["devices_given"], flash))) for row in rows(table)
    ]
    return [(row, found, dict(_placement_marks(row, found))) for row, found in pairs]


def _placement_marks(row, found):
    theirs = [row["devices"].get(f"RPC{i}", {}) for i in range(row["devices_given"])]
    theirs.append({key: sum(part[key] for part in row["host"].values()) for key in next(iter(row["host"].values()))})
    pairs = list(zip(found.pools, theirs, strict=True))
    for part in ("model", "context"):
        yield part, all(_near(getattr(p, f"{part}_bytes"), t.get(f"{part}_mib", 0), 0.01, 3) for p, t in pairs)
    yield "compute", all(_near(p.compute_bytes, t.get("compute_mib", 0), 0.01, 1.01) for p, t in pairs[:-1])
    yield "host compute", _near(pairs[-1][0].compute_bytes, pairs[-1][1]["compute_mib"], 0.01, 1.01)


def _near(ours: int, theirs_mib: int, share: float, mib: float) -> bool:
    return abs(ours / MIB - theirs_mib) <= max(mib, share * theirs_mib)


def retyped(name: str, kind: str):
    """The geometry of a shape with every tensor of another type, where its rows are whole blocks of that type."""
    _, block, size = next(row for row in QUANTS.values() if row[0] == kind)
    geo = shape(name)
    tensors = tuple(
        t if t.type in ("F32", "I32") or t.dims[0] % block
        else t._replace(type=kind, nbytes=t.elements // block * size)
        for t in geo.header.tensors
    )  # fmt: skip
    return geometry(geo.header._replace(tensors=tensors), architectures())


@cache
def judged_buffers(table: str, processor: str | None):
    """Rows of a table with our bytes by buffer of the host, and whether they are the engine's."""
    judged = []
    for row in rows(table):
        if row["method"] == "server-dry":
            ours = _known(row["gguf"], launch_of(row)._replace(processor=processor)).buffers
            judged.append((row, ours, same_buffers(ours, row["model_mib"])))
    return judged


def same_buffers(ours, theirs_mib) -> bool:
    """Whether every buffer is as large as the engine says, which prints whole MiB, floored."""
    return set(theirs_mib) <= set(ours) and {b: size // MIB for b, size in ours.items()} == {
        b: theirs_mib.get(b, 0) for b in ours
    }


def scores(judgements):
    """Shape → criterion → (right, asked)."""
    table = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row, _, marks in judgements:
        for criterion, right in marks.items():
            for name in (row["shape"], "all"):
                table[name][criterion][0] += right
                table[name][criterion][1] += 1
    return table


def report(judgements, title: str) -> str:
    """The scores as a table for people."""
    table = scores(judgements)
    criteria = list(table["all"])
    lines = [f"{title:26}" + "".join(f"{c:>15}" for c in criteria)]
    for name in sorted(table, key=lambda n: (n == "all", n)):
        cells = [f"{table[name][c][0]}/{table[name][c][1]}" if c in table[name] else "-" for c in criteria]
        lines.append(f"{name:26}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(judged(), "one CPU"), "\n")
    print(report(judged_placements(), "devices"), "\n")
    print(report(judged_placements("unseen", "auto"), "made-up files"))
    for table, processor in (("truth", None), ("amx", "amx")):
        marks = [right for *_, right in judged_buffers(table, processor)]
        print(f"\nbuffers of the host, {processor or 'avx2'}: {sum(marks)}/{len(marks)}")
