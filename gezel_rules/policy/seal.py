"""A policy set as one sealed thing: its canonical digest, and a compiled cache so that a second start reads no YAML.

The digest covers what the files say (versions, tables, decisions), not comments, layout or the order of keys; the order
of a table's rows (candidates are tried in it) and of flags (argv has it) does count. Every record carries it. It covers
the files of one engine family: those of another, beside them, change nothing.
The cache is keyed by the bytes of the files and by the code that checked them; it is a copy, never a source. A package
carries such copies of the policies it ships, looked at before the cache: its code does not change without them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import __version__, places
from gezel_rules.cache import forget_older, keep
from gezel_rules.checksum import checksum
from gezel_rules.documents.node import MAX_FILE_BYTES
from gezel_rules.errors import BadInput, why
from gezel_rules.owned import read_owned
from gezel_rules.plain_file import read_plain
from gezel_rules.policy.files import LOGS, all_paths, file_names, log_policy_paths
from gezel_rules.policy.frozen import FORMAT, checked, dumped, freeze, summed, thaw
from gezel_rules.policy.model import CANDIDATE, Judged, PolicySet
from gezel_rules.policy.records import Tables

if TYPE_CHECKING:
    from gezel_rules.policy.language import Language, Languages
    from gezel_rules.policy.load import Drafts

Code = Callable[[], bytes]
"""What tells the code that checks a set from any other (``cache.code_state``)."""
KEPT_SETS = 8
"""Compiled sets that stay in a cache: a few directories of policies, each as last edited."""


def load_policies(
    directory: Path, family: str, languages: Languages, cache: Path | None = None, *, code: Code | None = None,
    keeps: bool = True, layers: Sequence[Path] = (),
) -> PolicySet:  # fmt: skip
    """The checked set of one engine family. Raises BadInput with every problem of every file.

    ``cache`` is a directory for compiled sets (``None``: do not cache); a set is kept there for the ``code`` that
    checked it; ``keeps``: a set compiled here is kept, which is for whoever holds it against everything the program
    needs; ``layers``: files laid over the directory's, lowest first. A language is made only when a set is compiled.
    """
    shelf = Shelf(directory, family, languages, cache, code, keeps, layers)
    found = shelf.read()
    if found is None:
        found = compile_policies(directory, family, languages, shelf)
        shelf.write(found)
    return found


class Shelf:
    """Where a set's compiled form is kept, and what else was worked out of the set (``model.Beside``)."""

    def __init__(
        self, directory: Path, family: str, languages: Languages, cache: Path | None = None, code: Code | None = None,
        keeps: bool = True, layers: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        self.directory, self.family, self.languages, self.layers = directory, family, languages, tuple(layers)
        self.cache, self.code, self.keeps = cache, code, keeps

    @cached_property
    def files(self) -> list[bytes]:
        """What the files say that the set is made of. Raises BadInput for one that cannot be read."""
        return _files(self.directory, self.layers)

    def read(self) -> PolicySet | None:
        """The set; ``None`` when it is not kept, or what is kept cannot be believed."""
        data = self._read("policies")
        return thaw(data, self) if data else None

    def write(self, policies: PolicySet) -> None:
        """Keep the set."""
        if self.keeps:
            self._write("policies", freeze(policies))

    def log_sources(self) -> Sequence[Any]:
        """The log policies of the family, read. Raises BadInput with every problem of the YAML."""
        from gezel_rules.policy.sources import read_sources

        found = read_sources(log_policy_paths(self.directory), self.directory, self.languages)
        if found.problems:
            raise BadInput(found.problems)
        if not found.of(self.family):
            raise BadInput(f"{self.directory}: no log policy files (expected {LOGS}/<name>.yaml)")
        return found.of(self.family)

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """What was kept under a name; made, and kept, when there is nothing."""
        data = self._read(name)
        body = checked(data) if data else None
        if body is None:
            body = dumped(make())
            if self._unchanged():
                self._write(name, summed(body))
        return json.loads(body)

    def _unchanged(self) -> bool:
        """Whether the files are still those of the set, so that what was just read of them belongs to it."""
        return self.files == _files(self.directory, self.layers)

    def _read(self, name: str) -> bytes | None:
        built = places.compiled_dir() if self.cache else None
        if built and (data := _bytes(built / self._name(name, b""))):
            return data
        return read_owned(self.cache / self._name(name, self._code)) if self.cache else None

    def _write(self, name: str, data: bytes) -> None:
        if self.cache:
            keep(self.cache / self._name(name, self._code), data)
            forget_older(self.cache, f"{name}-*.json", KEPT_SETS)

    def _name(self, name: str, code: bytes) -> str:
        about = f"{__version__} {FORMAT} {self.family}\0".encode()
        return f"{name}-{checksum([about, code, *self.files]).hex()}.json"

    @cached_property
    def _code(self) -> bytes:
        return self.code() if self.code else b""


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # not there


def compile_policies(directory: Path, family: str, languages: Languages, shelf: Shelf | None = None) -> PolicySet:
    """Read, check and seal, without the cache. Raises BadInput with every problem of every file."""
    from gezel_rules.policy.load import load_drafts
    from gezel_rules.policy.sources import read_sources

    shelf = shelf or Shelf(directory, family, languages)
    drafts = load_drafts(read_sources(all_paths(directory), directory, languages, shelf.layers), family)
    return sealed(drafts, languages[family](), directory, shelf)


def sealed(drafts: Drafts, language: Language, directory: Path, shelf: Shelf) -> PolicySet:
    """The set of checked drafts. Raises BadInput with every problem."""
    from gezel_rules.policy.causes import in_order
    from gezel_rules.policy.check import check_drafts
    from gezel_rules.policy.whole import faults_of

    decisions = check_drafts(drafts, language.facts, language.functions)
    if found := faults_of(drafts, language.needs(), directory.name):
        raise BadInput(in_order(found, [drafts]))
    lines = {name: dumped(table.rows) for name, table in drafts.tables.items()}
    defaults = {name: table.declared.defaults for name, table in drafts.tables.items() if table.declared}
    names = frozenset((*language.facts, *lines, *decisions, CANDIDATE))
    flags = tuple(name for name in drafts.decisions if drafts.decisions[name].decision.flag)
    read = {name for decision in decisions.values() for name in decision.reads}
    judged = Judged(decisions, names, flags, tuple(name for name in lines if name in read))
    digest = digest_of(drafts.plain, flags)
    return PolicySet(lambda: judged, Tables(lines, defaults), tuple(drafts.files), digest, shelf)


def digest_of(plain: Mapping[str, Any], flags: Sequence[str]) -> str:
    """sha256 over the canonical JSON (sorted keys, no spaces) of all files by their path, and the order of flags."""
    import hashlib

    files = {path: {**file, "tables": _in_order(file.get("tables") or {})} for path, file in plain.items()}
    text = json.dumps([files, list(flags)], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _in_order(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables with their rows as pairs, so that sorting keys leaves them where they are."""
    return {
        name: {**table, "rows": pairs(table["rows"])} if isinstance(table, dict) and "rows" in table else pairs(table)
        for name, table in tables.items()
    }


def pairs(rows: Any) -> Any:
    """A table's rows with their order, which counts: candidates are tried in it."""
    return list(rows.items()) if isinstance(rows, dict) else rows


def _files(directory: Path, layers: Sequence[Path]) -> list[bytes]:
    """What the files are called and say. Raises BadInput for one that cannot be read."""
    parts = [os.fsencode(directory.name or directory.absolute().name)]  # people are shown it in every place
    start = len(str(directory))
    for path in (*file_names(directory), *map(str, layers)):
        try:
            data = read_plain(path, MAX_FILE_BYTES)
        except OSError as error:
            raise BadInput(f"{path}: {why(error)}") from None
        name = path[start:] if path.startswith(str(directory)) else path
        parts += [b"\0%s\0%d\0" % (os.fsencode(name), len(data)), data]
    return parts
