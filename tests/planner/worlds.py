"""Small worlds for planner tests: a catalog, hosts and a store written to a directory, and plans made in them.

Entries and hosts are written in the catalog's own format (JSON is YAML), headers as the catalog describes them and, for
what is installed, as GGUF files of their true size that use no disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gguf_files import write_gguf

from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp.parts import PACKED_WEIGHTS
from gezel_rules.places import policies_dir
from gezel_rules.planner.plan import Plan, Request, make_plan
from gezel_rules.planner.report import explainer, plan_json
from gezel_rules.planner.subject import Places

GIB = 1 << 30
DIGEST = "ab" * 32
HELP = Path(__file__).parents[1] / "data" / "engine-help" / "llama-server-0.6.0-dev.help.txt"
ANSWERS = """#!/bin/sh
case "$1" in
  --version) echo "version: 0.6.0 (build 1, commit unknown)" >&2 ;;
  --help) cat '{root}/help' ;;
  --list-devices) cat '{root}/devices' ;;
esac
"""


def shape(
    *,
    arch: str = "llama",
    layers: int = 4,
    width: int = 256,
    ffn: int = 512,
    heads: int = 4,
    kv_heads: int = 2,
    head: int = 64,
    vocab: int = 1024,
    trained: int = 131072,
    quant: str = "Q4_K",
    mtp: int = 0,
    mtp_tensors: bool = True,
    experts: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The ``header`` block of a plain transformer; ``mtp`` blocks of a prediction head stand behind its layers."""
    blocks = layers + mtp
    meta = {
        "general.architecture": arch,
        f"{arch}.context_length": trained,
        f"{arch}.embedding_length": width,
        f"{arch}.block_count": blocks,
        f"{arch}.feed_forward_length": ffn,
        f"{arch}.vocab_size": vocab,
        f"{arch}.attention.head_count": heads,
        f"{arch}.attention.head_count_kv": kv_heads,
        f"{arch}.attention.key_length": head,
        f"{arch}.attention.value_length": head,
    }
    if mtp:
        meta[f"{arch}.nextn_predict_layers"] = mtp
    if experts:
        meta |= {f"{arch}.expert_count": experts, f"{arch}.expert_used_count": 2}
    lines = [f"token_embd.weight {quant} {width}x{vocab}", f"output_norm.weight F32 {width}",
             f"output.weight {quant} {width}x{vocab}"]  # fmt: skip
    lines += _blocks(blocks, width, ffn, heads, kv_heads, head, quant, experts)
    if mtp and mtp_tensors:
        lines += [f"blk.{layers}-{blocks - 1}.nextn.eh_proj.weight {quant} {2 * width}x{width}"]
    return {"origin": "made up for a test", "metadata": meta | dict(metadata or {}), "tensors": "\n".join(lines) + "\n"}


def _blocks(n: int, width: int, ffn: int, heads: int, kv: int, head: int, quant: str, experts: int) -> list[str]:
    run = f"blk.0-{n - 1}"
    lines = [
        f"{run}.attn_norm.weight F32 {width}",
        f"{run}.attn_q.weight {quant} {width}x{heads * head}",
        f"{run}.attn_k.weight {quant} {width}x{kv * head}",
        f"{run}.attn_v.weight {quant} {width}x{kv * head}",
        f"{run}.attn_output.weight {quant} {heads * head}x{width}",
        f"{run}.ffn_norm.weight F32 {width}",
    ]
    if not experts:
        pairs = (("gate", width, ffn), ("up", width, ffn), ("down", ffn, width))
        return lines + [f"{run}.ffn_{name}.weight {quant} {a}x{b}" for name, a, b in pairs]
    pairs = (("gate", width, ffn), ("up", width, ffn), ("down", ffn, width))
    lines.append(f"{run}.ffn_gate_inp.weight F32 {width}x{experts}")
    return lines + [f"{run}.ffn_{name}_exps.weight {quant} {a}x{b}x{experts}" for name, a, b in pairs]


LARGE = {"layers": 64, "width": 5120, "ffn": 17408, "heads": 40, "kv_heads": 8, "head": 128, "vocab": 151936}
"""About 12 GiB in Q4_K."""
MOE = {
    "arch": "qwen3moe", "layers": 48, "width": 2048, "ffn": 768, "heads": 32, "kv_heads": 4, "head": 128,
    "vocab": 151936, "experts": 128,
}  # fmt: skip
"""About 16 GiB in Q4_K, nearly all of it experts."""


CARDS = {"rocm": "ROCm", "vulkan": "Vulkan", "metal": "MTL", "sycl": "SYCL"}
"""What the engine calls the cards of a backend, before their number."""


class Shelved(NamedTuple):
    """A file as the store knows it."""

    name: str
    path: str
    size: int
    sha256: str


class Installed(NamedTuple):
    """A model as the store knows it."""

    model_id: str
    files: Mapping[str, Shelved]

    def by_role(self, role: str) -> tuple[Shelved, ...]:
        return (self.files[role],) if role in self.files else ()


class World:
    """A catalog, hosts and a store under one directory; ``plan`` decides a launch in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "store"
        self.shelf: dict[str, Installed] = {}
        for name in ("catalog/models", "catalog/hosts", "store"):
            (root / name).mkdir(parents=True)
        self.host("card", [card()])

    def entry(self, name: str, header: Mapping[str, Any] | None = None, **more: Any) -> str:
        """A catalog entry; ``more`` are its further fields."""
        said = {"id": name, "name": name, "family": name, "summary": "Made up.", "quant": "Q4_K", "chat": True}
        files = [{"role": "model", "name": f"{name}.gguf", "sources": [{"url": f"https://example.org/{name}.gguf"}]}]
        files += more.pop("files", [])
        self._write(f"catalog/models/{name}.yaml", {**said, "files": files, "header": header or shape(), **more})
        return name

    def host(
        self,
        name: str,
        devices: Sequence[Mapping[str, Any]],
        *,
        backend: str = "cuda",
        cpus: int = 16,
        ram: tuple[str, str] = ("64 GiB", "60 GiB"),
        flags: Sequence[str] | None = None,
        version: str = "0.6.0",
        processor: str | None = None,
    ) -> str:
        """A described host; its cards are called as the backend calls them."""
        named = [{**device, "name": device["name"].replace("CUDA", CARDS.get(backend, "CUDA"))} for device in devices]
        engine = {"kind": "llama-server", "backend": backend, "version": version}
        engine |= {"processor": processor} if processor else {}
        engine |= {"flags": list(flags)} if flags is not None else {}
        self._write(f"catalog/hosts/{name}.yaml", {
            "host": name, "summary": "Made up.", "os": "linux", "cpus": cpus, "ram": {"total": ram[0], "free": ram[1]},
            "engine": engine, "devices": named,
        })  # fmt: skip
        return name

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        (self.root / name).write_text(json.dumps(data, indent=1))

    def engine(self, *devices: str, without: Sequence[str] = (), unlisted: Sequence[str] = ()) -> str:
        """A program that answers as llama-server 0.6.0 does when it is asked about itself: it lists these devices, and
        its ``--help`` is the real one, less the lines of some options, and less some words from the lists of words."""
        real = HELP.read_text()
        for word in unlisted:
            real = real.replace(f",{word},", ",").replace(f",{word}\n", "\n")
        said = [line for line in real.splitlines() if not any(f"{flag} " in line for flag in without)]
        (self.root / "help").write_text("\n".join(said) + "\n")
        (self.root / "devices").write_text("\n".join(["Available devices:", *(devices or ["  (none)"])]) + "\n")
        program = self.root / "llama-server"
        program.write_text(ANSWERS.format(root=self.root))
        program.chmod(0o755)
        return str(program)

    def install(self, name: str, **headers: Mapping[str, Any]) -> Installed:
        """Put a model on the shelf: a file of its true size for each role (``model=shape()``, ``draft=…``)."""
        files = {}
        for role, header in headers.items():
            path = self.store / name / f"{role}.gguf"
            path.parent.mkdir(exist_ok=True)
            write_gguf(path, header)
            files[role] = Shelved(path.name, str(path), path.stat().st_size, DIGEST)
        self.shelf[name] = Installed(name, files)
        return self.shelf[name]

    def plan(
        self,
        model: str,
        host: str | None = "card",
        *assignments: str,
        environ: Mapping[str, str] | None = None,
        site: Mapping[str, Any] | None = None,
        held: Mapping[str, int] | None = None,
        broke: Sequence[tuple[str, str]] = (),
        unpacked: Sequence[str] = (),
        engine: str | None = None,
    ) -> Launch:
        """Decide: ``assignments`` are ``--set``, ``site`` the site file, ``held`` what other launches reserved."""
        sites = ()
        if site is not None:
            self._write("site.yaml", site)
            sites = (self.root / "site.yaml",)
        where = self.root / "catalog" / "hosts" / f"{host}.yaml" if host else None
        return Launch(make_plan(Request(
            model=model, policies=policies_dir(), cache=None, environ=environ or {}, sites=sites, held=held or {},
            places=Places(self.root / "catalog", self.store, self.shelf.get), assignments=assignments, host=where,
            broke=lambda build, what: (build, what) in {*broke, *((name, PACKED_WEIGHTS) for name in unpacked)},
            program=lambda family: Program("llama-server", (engine,), Path(engine)) if engine else None,
        )))  # fmt: skip


class Launch:
    """A plan with short ways to ask about it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.explain = explainer(plan)

    def __getitem__(self, decision: str) -> Any:
        return self.plan.trace.value(decision)

    def rule(self, decision: str) -> str | None:
        """The id of the rule that decided."""
        winner = self.plan.trace.judgements[decision].winner
        return winner.rule.id if winner else None

    def because(self, decision: str) -> str:
        return self.explain.because(self.plan.trace.judgements[decision])

    def level(self, decision: str) -> str:
        return self.explain.level(self.plan.trace.judgements[decision])

    def beaten(self, decision: str) -> dict[str, str]:
        return dict(self.explain.beaten(self.plan.trace.judgements[decision]))

    def arg(self, flag: str) -> str | None:
        """The value an option has in argv, or ``None`` when it is not passed."""
        argv = self.plan.argv
        return argv[argv.index(flag) + 1] if flag in argv else None

    @property
    def argv(self) -> list[str]:
        return self.plan.argv

    @property
    def json(self) -> dict[str, Any]:
        return plan_json(self.plan)


def used(plan: Plan) -> dict[str, int]:
    """Bytes a launch takes, by pool."""
    return {pool.name: pool.used for pool in plan.memory.pools}


def card(name: str = "CUDA0", total: str = "24 GiB", free: str | None = None, **more: str) -> dict[str, str]:
    """A device of a described host; nothing else holds its memory unless ``free`` says so."""
    return {"name": name, "description": "A card", "kind": "discrete", "total": total, "free": free or total, **more}


def draft_file(name: str = "draft.gguf") -> dict[str, Any]:
    """The file of an entry's own drafter."""
    return {"role": "draft", "name": name, "sources": [{"url": f"https://example.org/{name}"}]}


def drafter(name: str = "draft.gguf", header: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An entry's own drafter: its file and what is said about it."""
    return {"files": [draft_file(name)], "draft": {"file": name, "header": header or dflash(), **more}}


def dflash(**more: Any) -> dict[str, Any]:
    """The header of a small DFlash drafter."""
    return shape(**{"arch": "dflash", "layers": 2, **more})
