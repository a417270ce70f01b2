"""What the embedded engine honours of llama-server's command line: the flag table, and an argv read by it.

Pure: the wheel is not imported here. The table is data (``policies/llama-cpp/embedded.yaml``); this module knows only
the ways a value can be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gezel_rules.errors import BadInput
from gezel_rules.policy.model import PolicySet
from gezel_rules.record import NamedTuple

ALL_LAYERS, AUTO_LAYERS = -2, -1  # xllamacpp params_reference.md: "-1 is auto, <= -2 is all"
MIB = 1 << 20


class FlagRow(NamedTuple):
    """A row of ``embedded_flags``."""

    short: str
    also: str
    takes: str
    words: str | None
    sets: str
    value: str
    says: str


class Word(NamedTuple):
    """A row of a table of words: a plain ``value``, or a ``member`` of an enumeration and what it ``turns_on``."""

    value: Any
    member: str | None
    turns_on: str | None


class Default(NamedTuple):
    """A row of ``embedded_defaults``."""

    value: Any


class TensorRule(NamedTuple):
    """A row of ``embedded_tensor_rules``."""

    pattern: str
    buffer: str


class Build(NamedTuple):
    """A row of ``embedded_builds``."""

    version: str


class Flag(NamedTuple):
    """One flag: its spellings, how its value is written (``takes``), the dotted parameters it sets, and its help."""

    name: str
    spellings: tuple[str, ...]
    takes: str
    sets: tuple[str, ...]
    words: str
    metavar: str
    says: str


class Member(NamedTuple):
    """A member of one of the wheel's enumerations (``enumeration.NAME``), and a parameter that goes with it."""

    dotted: str
    turns_on: str = ""


class Adapter(NamedTuple):
    """A LoRA adapter: file and scale."""

    path: str
    scale: float


class Setting(NamedTuple):
    """One parameter to set: dotted name and value; ``adds`` says that repeated settings accumulate; ``by`` is the
    flag as it was written."""

    parameter: str
    value: Any
    adds: bool = False
    by: str = ""


class Table(NamedTuple):
    """The flags by every spelling, the tables of words, the tensor rules, the defaults, and the builds whose version is
    known."""

    flags: Mapping[str, Flag]
    words: Mapping[str, Mapping[str, Word]]
    tensor_rules: Mapping[str, TensorRule]
    defaults: tuple[Setting, ...]
    builds: tuple[tuple[int, str], ...]


def embedded_table(policies: PolicySet) -> Table:
    """The flag table of a set. Raises BadInput for a flag of words that names no table of them."""
    flags: dict[str, Flag] = {}
    words: dict[str, Mapping[str, Word]] = {}
    for name, row in policies.rows("embedded_flags", FlagRow).items():
        flag = _flag(name, row)
        flags.update(dict.fromkeys(flag.spellings, flag))
        if flag.words:
            words[flag.words] = policies.rows(flag.words, Word)
        elif flag.takes in _OF_WORDS:
            raise BadInput(f"table 'embedded_flags': {name} takes {flag.takes}, and its row names no table of them")
    defaults = policies.rows("embedded_defaults", Default).items()
    builds = policies.rows("embedded_builds", Build).items()
    return Table(
        flags, words, policies.rows("embedded_tensor_rules", TensorRule),
        tuple(Setting(name, default.value) for name, default in defaults),
        tuple(sorted((int(build), row.version) for build, row in builds)),
    )  # fmt: skip


def _flag(name: str, row: FlagRow) -> Flag:
    spellings = (*row.short.split(), name, *row.also.split())
    return Flag(name, spellings, row.takes, tuple(row.sets.split()), row.words or "", row.value, row.says)


def read_argv(argv: Sequence[str], table: Table) -> list[Setting]:
    """The parameters an argv sets, in order. Raises BadInput in llama-server's own words, so that one
    log policy reads both, naming the first flag that cannot be honoured."""
    settings: list[Setting] = []
    tokens = iter(argv)
    for token in tokens:
        flag = table.flags.get(token)
        if flag is None:
            raise BadInput(f"error: invalid argument: {token}: the embedded engine cannot honour {token}")
        settings += _settings(flag, token, tokens, table)
    return settings


def _settings(flag: Flag, token: str, tokens: Iterator[str], table: Table) -> list[Setting]:
    if flag.takes in ("on", "off"):
        return [Setting(name, flag.takes == "on", by=token) for name in flag.sets]
    if flag.takes == "all experts":
        return [Setting(name, _tensor_rule(table, flag.takes), adds=True, by=token) for name in flag.sets]
    text = next(tokens, None)
    if text is None:
        raise BadInput(f'error while handling argument "{token}": expected value for argument')
    try:
        value, adds = _read_value(flag, text, table)
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f'error while handling argument "{token}": {text}: {why}') from None
    return [Setting(name, value, adds, token) for name in flag.sets]


def _read_value(flag: Flag, text: str, table: Table) -> tuple[Any, bool]:
    if flag.takes == "words":
        return _word(flag, text, table), False
    if flag.takes == "word list":
        return [_word(flag, word, table) for word in text.split(",")], True
    if flag.takes == "experts":
        return [rule for layer in range(_count(text)) for rule in _tensor_rule(table, flag.takes, layer)], True
    return _READERS[flag.takes](text), flag.takes in _ADDING


def _word(flag: Flag, word: str, table: Table) -> Any:
    row = table.words[flag.words].get(word)
    if row is None:
        raise ValueError(f"the embedded engine knows {', '.join(table.words[flag.words])}")
    return row.value if row.member is None else Member(row.member, row.turns_on or "")


def _tensor_rule(table: Table, which: str, layer: int = 0) -> list[str]:
    row = table.tensor_rules[which]
    return [f"{row.pattern.replace('{layer}', str(layer))}={row.buffer}"]


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= 4096:
        raise ValueError("expected a number of layers")
    return count


def _layers(text: str) -> int:
    words = {"auto": AUTO_LAYERS, "all": ALL_LAYERS}
    return words[text] if text in words else int(text)


def _directory(text: str) -> str:
    if not Path(text).is_dir():
        raise ValueError("not a directory")
    return text if text.endswith("/") else text + "/"


def _margins(text: str) -> list[int]:
    return [int(part) * MIB for part in text.split(",")]


def _template_arguments(text: str) -> dict[str, str]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return {key: json.dumps(value) for key, value in data.items()}


def _keys(text: str) -> list[str]:
    lines = (line.strip() for line in Path(text).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _scaled_adapters(text: str) -> list[Adapter]:
    pairs = (part.rpartition(":") for part in text.split(","))
    return [Adapter(path, float(scale)) for path, _, scale in pairs]


_READERS: dict[str, Callable[[str], Any]] = {
    "whole": int,
    "decimal": float,
    "text": str,
    "texts": lambda text: [part for part in text.split(",") if part],
    "path": str,
    "directory": _directory,
    "layers": _layers,
    "margins": _margins,
    "proportions": lambda text: [float(part) for part in text.replace("/", ",").split(",")],
    "tensor rules": lambda text: text.split(","),
    "adapters": lambda text: [Adapter(part, 1.0) for part in text.split(",")],
    "scaled adapters": _scaled_adapters,
    "template arguments": _template_arguments,
    "keys file": _keys,
    "file text": lambda text: Path(text).read_text(),
}
_OF_WORDS = ("words", "word list")
_ADDING = frozenset({"tensor rules", "adapters", "scaled adapters", "keys file"})


def help_text(table: Table) -> str:
    """The flags in the form ``llama-server --help`` prints them, so that one reader reads both."""
    lines = ["----- embedded engine: flags it honours -----", ""]
    lines += _help_lines(("-h,", "--help"), "", "print usage and exit")
    lines += _help_lines(("--version",), "", "show version and build info")
    lines += _help_lines(("--list-devices",), "", "print list of available devices and exit")
    for flag in dict.fromkeys(table.flags.values()):
        spelled = tuple(f"{word}," for word in flag.spellings[:-1]) + flag.spellings[-1:]
        lines += _help_lines(spelled, flag.metavar, flag.says)
    return "\n".join(lines)


def _help_lines(spelled: Sequence[str], metavar: str, says: str) -> list[str]:
    head = " ".join((*spelled, metavar)).rstrip()
    if spelled[0].endswith(",") and not spelled[0].startswith("--"):
        head = f"{spelled[0]:<6} " + " ".join((*spelled[1:], metavar)).rstrip()
    return [f"{head:<39} {says}"] if len(head) < 39 else [head, f"{'':<39} {says}"]


def version_of(build: int, table: Table) -> str:
    """The llama.cpp version a build number is at least, ``unknown`` below the first one known."""
    known = [version for first, version in table.builds if first <= build]
    return known[-1] if known else "unknown"
