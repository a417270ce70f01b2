"""llama.cpp as an engine family: every member loads what it needs only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gezel_rules.engines.family import Contract, MemoryCommand
from gezel_rules.engines.llama_cpp.parts import PACKED_WEIGHTS

if TYPE_CHECKING:
    from gezel_rules.catalog.records import Entry
    from gezel_rules.documents.declare import Kind
    from gezel_rules.documents.source import Node
    from gezel_rules.engines.family import OutsideSetting, Probe, Program, Report
    from gezel_rules.engines.protocol import Facts, Fit, ModelFile, Tables
    from gezel_rules.engines.subject import Subject
    from gezel_rules.errors import Problem
    from gezel_rules.facts.fact import Fact
    from gezel_rules.facts.vocabulary import Word
    from gezel_rules.gguf.files import FirstBytes
    from gezel_rules.gguf.records import Header
    from gezel_rules.lang.types import Function
    from gezel_rules.policy.language import Needs
    from gezel_rules.policy.model import PolicySet

MAGIC = b"GGUF"
FIRST_PIECE = 1 << 20
"""Bytes asked of a server first: most headers without a vocabulary of their own fit, the others go on from there."""


class LlamaCpp:
    """See ``engines.protocol.Family`` for what each member means."""

    name = "llama-cpp"
    label = "llama.cpp"
    variable = "GEZEL_LLAMA_SERVER"
    leaves_out: Mapping[str, str] = {PACKED_WEIGHTS: "launch.packing_failed"}

    @property
    def contract(self) -> Contract:
        from gezel_rules.engines.llama_cpp.contract import CONTRACT

        return CONTRACT

    def vocabulary(self) -> Sequence[Word]:
        from gezel_rules.engines.llama_cpp.vocabulary import WORDS

        return WORDS

    def signatures(self) -> Mapping[str, Function]:
        from gezel_rules.engines.llama_cpp.functions import SIGNATURES

        return SIGNATURES

    def needs(self) -> Needs:
        from gezel_rules.engines.llama_cpp.needs import NEEDS

        return NEEDS

    def find(self, choice: str | None, environ: Mapping[str, str], policies: Path | None) -> Program:
        from gezel_rules.engines.llama_cpp.find import find_engine

        return find_engine(choice, environ, policies=policies)

    def probe(self, probe: Probe) -> Facts:
        from gezel_rules.engines.llama_cpp.probe import probe_facts

        return probe_facts(probe)

    def outside_settings(self, probe: Probe) -> list[OutsideSetting]:
        from gezel_rules.engines.llama_cpp.probe import outside_settings

        return outside_settings(probe)

    def recognises(self, path: Path) -> bool:
        """By the first four bytes; a pipe or a device is no model, and is not waited for."""
        try:
            if not path.is_file():
                return False
            with path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    def read_model(self, path: str, cache: Path | None) -> Header:
        from gezel_rules.engines.llama_cpp.model_file import read_model

        return read_model(path, cache)

    def read_elsewhere(self, name: str, first_bytes_of: Callable[[str], FirstBytes]) -> Header:
        from gezel_rules.gguf.files import read_elsewhere

        return read_elsewhere(name, first_bytes_of, FIRST_PIECE)

    def described_model(self, entry: Entry) -> Header | None:
        from gezel_rules.engines.llama_cpp.described_header import header_of

        return header_of(entry)

    def described_drafter(self, entry: Entry) -> Header | None:
        from gezel_rules.engines.llama_cpp.described_header import draft_header_of

        return draft_header_of(entry)

    def description(self) -> Kind:
        from gezel_rules.engines.llama_cpp.described_header import HEADER

        return HEADER

    def describe_file(self, path: str, origin: str) -> Node:
        from gezel_rules.engines.llama_cpp.described_header import describe_file

        return describe_file(self.read_model(path, None), origin)

    def describe(self, model: ModelFile, origin: str) -> str:
        from gezel_rules.engines.llama_cpp.described_header import describe_header

        return describe_header(cast("Header", model), origin)

    def described(self, text: str, name: str) -> Header:
        from gezel_rules.engines.llama_cpp.described_header import read_text

        return read_text(text, name)

    def check_description(self, node: Node, problems: list[Problem]) -> None:
        from gezel_rules.engines.llama_cpp.described_header import checked_header_block

        checked_header_block(node, problems)

    def model_facts(
        self, subject: Subject, settings: Mapping[str, Fact], policies: PolicySet, cache: Path | None
    ) -> Facts:
        from gezel_rules.engines.llama_cpp.subject_facts import subject_facts

        return subject_facts(subject, settings, policies, cache)

    def fit(
        self,
        subject: Subject,
        policies: PolicySet,
        facts: Mapping[str, Fact],
        held: Mapping[str, int],
        cache: Path | None,
    ) -> Fit:
        from gezel_rules.engines.llama_cpp.capacity import capacity

        return capacity(subject, policies, facts, held, cache)

    def summary_of_model(self, path: str) -> dict[str, object]:
        from gezel_rules.engines.llama_cpp.model_facts import summary_of

        return summary_of(self.read_model(path, None))

    def inspect(self, path: str, tables: Tables) -> Report:
        from gezel_rules.engines.llama_cpp.inspect import inspect

        return inspect(path, tables)

    @property
    def memory(self) -> MemoryCommand:
        from gezel_rules.engines.llama_cpp.memory_command import add_arguments, report

        return MemoryCommand(add_arguments, report)


FAMILY = LlamaCpp()
