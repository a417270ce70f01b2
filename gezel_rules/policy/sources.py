"""The files of a policy directory: which there are, what they hold as YAML, and which of them a family is judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from gezel_rules.documents.node import MAX_FILE_BYTES, Node, did_you_mean
from gezel_rules.documents.source import load_yaml
from gezel_rules.errors import BadInput, Problem
from gezel_rules.plain_file import read_plain
from gezel_rules.policy.files import LOGS, shown_name
from gezel_rules.record import NamedTuple


class Source(NamedTuple):
    """One file: its path below the directory, what it holds, and the family it is for ("": every one)."""

    path: str
    root: Node
    engine: str

    @property
    def is_log(self) -> bool:
        """Whether it is a log policy."""
        return LOGS in self.path.split("/")[:-1]

    @property
    def policy(self) -> str:
        """The name its policy must have: the path without the ending."""
        return self.path.removesuffix(".yaml")


class Sources(NamedTuple):
    """All files of a directory, in name order; ``unread`` are those that are no YAML: name → what stands in them, as
    far as it is text; ``layers`` what is to be laid over them, lowest first."""

    files: tuple[Source, ...]
    problems: tuple[Problem, ...]
    unread: Mapping[str, str]
    layers: tuple[Source, ...] = ()

    def of(self, family: str) -> tuple[Source, ...]:
        """The files a family is judged by: those for all, then its own."""
        shared = (source for source in self.files if not source.engine)
        return (*shared, *(source for source in self.files if source.engine == family))


def read_sources(
    paths: Iterable[Path], directory: Path, families: Collection[str], layers: Iterable[Path] = ()
) -> Sources:
    """Read files, collecting problems over all of them, and what is laid over them. A file of a family that is not
    among ``families`` is a problem."""
    files: list[Source] = []
    problems: list[Problem] = []
    unread: dict[str, str] = {}
    for path in paths:
        name = shown_name(path, directory)
        try:
            root = load_yaml(path, name)
        except BadInput as error:
            problems.extend(error.problems)
            unread[name] = _text_of(path)
            continue
        files.append(Source(path.relative_to(directory).as_posix(), root, _engine(root, families, problems)))
    above = tuple(_layers(layers, families, problems))
    return Sources(tuple(files), tuple(problems), unread, above)


def _layers(paths: Iterable[Path], families: Collection[str], problems: list[Problem]) -> Iterator[Source]:
    for path in paths:
        try:
            root = load_yaml(path)
        except BadInput as error:
            problems.extend(error.problems)
        else:
            yield Source(str(path), root, _engine(root, families, problems))


def _text_of(path: Path) -> str:
    """What can be read of a file that is no YAML."""
    try:
        return read_plain(path, MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _engine(root: Node, families: Collection[str], problems: list[Problem]) -> str:
    """The family a file names. One that there is not is said here, one that is no text when the head is read; either
    way the file is checked as one for all, so that what it defines is not missed as well."""
    node = root.value.get("engine") if isinstance(root.value, dict) else None
    if node is None or not isinstance(node.value, str):
        return ""
    if node.value in families:
        return node.value
    hint = did_you_mean(node.value, families) or f" (known: {', '.join(families)})"
    problems.append(node.problem(f"unknown engine family '{node.value}'{hint}"))
    return ""
