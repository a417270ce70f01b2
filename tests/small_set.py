"""Small policy sets written by hand, with a vocabulary of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from gezel_rules.decisions.decide import Trace, decide
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.lang.types import FLAG, INTEGER, TEXT, Function, Type
from gezel_rules.policy.language import NOTHING, Language, Languages, Needs
from gezel_rules.policy.load import Drafts, load_drafts
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import compile_policies
from gezel_rules.policy.sources import read_sources

FAMILY = "small"
FACTS: dict[str, Type] = {
    "model.layers": INTEGER,
    "model.arch": TEXT,
    "gpu.free": INTEGER._replace(unit="bytes"),
    "settings.window": INTEGER._replace(optional=True, unit="tokens"),
    "settings.kv_type": TEXT._replace(optional=True, rows_of="kv_types"),
    "engine.flags": Type("list", item=TEXT),
    "launch.arguments": Type("list", item=TEXT),
    "model.moe": FLAG,
}
FUNCTIONS: dict[str, Function] = {
    "known": Function((Type("any", optional=True),), FLAG),
    "min": Function((INTEGER, INTEGER), INTEGER, variadic=True),
    "divisible": Function((INTEGER, INTEGER), FLAG),
}
CALLABLES: dict[str, Any] = {"min": min, "divisible": lambda value, by: value % by == 0}
WORLD: dict[str, Fact] = {
    "model.layers": Fact(32, "GGUF llama.block_count", "gguf"),
    "model.arch": Fact("llama", "GGUF general.architecture", "gguf"),
    "gpu.free": Fact(UNKNOWN, "engine --list-devices", "probe", settle="gezel-rules devices"),
    "settings.window": Fact(8192, "--set", "operator", (("machine", 4096, "site.yaml:3"),)),
    "settings.kv_type": Fact(None, "not set"),
    "engine.flags": Fact(["--ctx-size", "--fit"], "engine --help", "probe"),
    "launch.arguments": Fact(["--fit"], "settings.extra_args"),
    "model.moe": Fact(False, "GGUF llama.expert_count", "gguf"),
}
TABLES = """
kv_types:
  f16: {bytes: 64, automatic: true}
  q8_0: {bytes: 34, automatic: true}
  q4_0: {bytes: 18, automatic: false}
"""


def languages(
    facts: Mapping[str, Type] = FACTS, functions: Mapping[str, Function] = FUNCTIONS, needs: Needs = NOTHING
) -> Languages:
    """The language of one engine family, called ``small``."""
    return {FAMILY: lambda: Language(facts, functions, needs)}


def policy_text(name: str, decisions: str, tables: str = "") -> str:
    """A policy file's text: the decisions and tables as written, with a head before them."""
    parts = [f"policy: {name}\nversion: 1.0.0\nsummary: A small policy.\n"]
    for section, body in (("tables", tables), ("decisions", decisions)):
        if body:
            parts.append(f"{section}:\n" + indent(dedent(body).strip("\n"), "  ") + "\n")
    return "".join(parts)


def write_set(directory: Path, files: Mapping[str, str]) -> Path:
    """Write ``area/name`` → text under ``directory/policies``; returns that directory."""
    base = directory / "policies"
    for name, text in files.items():
        path = base / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return base


def compile_set(directory: Path, decisions: str, tables: str = "") -> PolicySet:
    """One file of decisions, compiled."""
    base = write_set(directory, {"kv/kv": policy_text("kv/kv", decisions, tables)})
    return compile_policies(base, FAMILY, languages())


def drafts_of(paths: Iterable[Path], directory: Path) -> Drafts:
    """Files of any family as drafts, their expressions unchecked."""
    return load_drafts(read_sources(paths, directory, ("llama-cpp",)), "llama-cpp")


def decided(directory: Path, decisions: str, tables: str = "", **facts: Any) -> Trace:
    """The trace of one file of decisions over ``WORLD``, with some values changed (``model_arch='x'``)."""
    changed = {name.replace("_", ".", 1): Fact(value, "test") for name, value in facts.items()}
    return decide(compile_set(directory, decisions, tables), {**WORLD, **changed}, CALLABLES)
