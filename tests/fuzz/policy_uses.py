"""What a set of policies is used for, without an engine: the commands that read it, and what a launch reads of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fuzz_meter import Ran, command

from gezel_rules.author.idle import idle
from gezel_rules.engines.llama_cpp import probe
from gezel_rules.engines.llama_cpp.devices import device_facts, parse_devices
from gezel_rules.engines.llama_cpp.embedded_flags import embedded_table, help_text, read_argv, version_of
from gezel_rules.errors import BadInput
from gezel_rules.logs.load import read_logs
from gezel_rules.logs.sealed import log_policy
from gezel_rules.planner import policies as planner_policies
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.load import load_drafts
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import sealed
from gezel_rules.policy.sources import Sources
from gezel_rules.runtime.rules import supervision

FAMILY = "llama-cpp"
CARDS = """Available devices:
  CUDA0: NVIDIA GeForce RTX 4090 (24080 MiB, 23000 MiB free)
  Vulkan0: Intel(R) Arc(TM) Graphics (MTL) (15900 MiB, 14000 MiB free)
  RPC0: 127.0.0.1:50052 (15900 MiB, 14000 MiB free)
  What1: nobody knows (0 MiB, 0 MiB free)
"""
STARTS = "ggml_vulkan: 0 = Intel(R) Arc(TM) Graphics (Intel open-source Mesa driver) | uma: 1 | fp16: 1\n"
SETTINGS = (
    ("window=8k",), ("kv_type=q8_0",), ("slots=2", "window=64k"), ("extra_args=-t 4 -ngl 3 -ot exps=CPU",),
    ("extra_args=--cache-type-k f16 -c 4096",), ("spec_type=ngram-mod",), ("spec_type=none",), ("vision=false",),
    (), (),
)  # fmt: skip


class InMemory:
    """What lies beside a set that is in no directory (``policy.model.Beside``)."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def log_sources(self) -> Sequence[Any]:
        """The log policies."""
        return [source for source in self.sources.of(FAMILY) if source.is_log]

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """Made anew each time."""
        return make()


def checked(sources: Sources, directory: Path, logs: bool) -> PolicySet:
    """The set, as ``policy check`` and every start look at it; ``logs``: with its log policies. Raises BadInput."""
    language = LANGUAGES[FAMILY]()
    drafts = load_drafts(sources, FAMILY)
    found = sealed(drafts, language, directory, InMemory(sources))  # type: ignore[arg-type]
    if logs:
        read_logs(drafts.logs, drafts.gpu_backends)
    if problems := idle(drafts, found.decisions, language, ()):
        raise BadInput(problems)
    return found


class Uses(NamedTuple):
    """What there is to plan: catalog ids, described hosts, a model file, logs."""

    entries: tuple[str, ...]
    hosts: tuple[str, ...]
    models: tuple[Path, ...]
    logs: tuple[Path, ...]
    patch: pytest.MonkeyPatch

    def draw(self, found: PolicySet, chance: random.Random, logs: bool) -> Sequence[tuple[str, Callable[[], object]]]:
        """Uses of a set, by chance; what none may fail in always."""
        entry, host = chance.choice(self.entries), chance.choice(self.hosts)
        told = [word for text in chance.choice(SETTINGS) for word in ("--set", text)]
        plain = ["plan", entry, "--host", host]
        also = chance.choice((
            ["explain", entry, "--host", host, *told], ["explain", entry, "--host", host, "--json"],
            ["explain", entry, "kv.type", "--host", host, "--why-not", "q4_0"],
            ["plan", chance.choice(self.entries), "--host", host, "--json", *told],
            ["memory", str(chance.choice(self.models)), "--ctx", "8192"],
            ["memory", str(chance.choice(self.models)), "--cache-type-k", "q8_0", "--json"],
            ["inspect", str(chance.choice(self.models))],
        ))  # fmt: skip
        argvs = [plain, also] + ([["log", str(chance.choice(self.logs)), "--backend", "cuda"]] if logs else [])
        self.patch.setattr(planner_policies, "load_policies", lambda *args, **more: found)
        commands = [(" ".join(argv), lambda argv=argv: answered(command(*argv))) for argv in argvs]
        commands += [("logs", lambda: log_policy(found))] if logs else []
        return [*commands, ("supervision", lambda: supervised(found)), ("embedded", lambda: embedded(found)),
                ("devices", lambda: devices(found))]  # fmt: skip


def answered(ran: Ran) -> None:
    """A command has answered, or said in a line each what is wrong."""
    assert ran.status in (0, 1, 2), ran
    assert ran.status != 2 or (ran.err.startswith("gezel-rules") and "Traceback" not in ran.err), ran


def supervised(found: PolicySet) -> None:
    """What a launch reads of a set before the engine runs."""
    rules = supervision(found)
    assert rules.ready_timeout(1 << 40) >= 0


def embedded(found: PolicySet) -> None:
    """What the embedded engine reads: every flag with a value that may be none."""
    table = embedded_table(found)
    help_text(table)
    version_of(11434, table)
    for name, flag in table.flags.items():
        word = next(iter(table.words.get(flag.words, ())), "1")
        try:
            read_argv([name] if flag.takes in ("on", "off", "all experts") else [name, word], table)
        except BadInput:
            continue  # a value that this flag does not take


def devices(found: PolicySet) -> None:
    """What a probe reads: the devices that an engine lists."""
    rules = probe._rules(found)
    device_facts(parse_devices(CARDS, rules, STARTS), rules, probe._cpu(found), "test")
