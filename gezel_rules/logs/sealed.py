"""The log policy of a sealed set: read and proved once, kept beside the set as plain data, and read back from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.logs.model import (
    Condition,
    Exit,
    Failure,
    Lines,
    LogPolicy,
    Pattern,
    Place,
    Prefix,
    Quote,
    Range,
    Rule,
)
from gezel_rules.policy.backends import backends
from gezel_rules.regex import Choice, Regex

if TYPE_CHECKING:
    from gezel_rules.policy.model import PolicySet


def log_policy(policies: PolicySet) -> LogPolicy:
    """The log policy of a set. Raises BadInput with every problem of every file when it was never proved."""
    return thawed(policies.beside.derived("logs", lambda: plain(_proved(policies))))


def _proved(policies: PolicySet) -> LogPolicy:
    from gezel_rules.logs.load import read_logs

    gpus = {name: row.gpu for name, row in backends(policies).items()}
    return read_logs(policies.beside.log_sources(), gpus)


def plain(value: Any) -> Any:
    """A log policy, or a part of one, as JSON can hold it."""
    if isinstance(value, Regex):
        return value.text
    if isinstance(value, Choice):
        return plain(value.expressions)
    if isinstance(value, Lines):
        return [plain(item) for item in value[:-1]]  # the prefixes say what leads a line
    if isinstance(value, Condition):
        return {"all": plain(value.all), "any": plain(value.any), "none": plain(value.none)}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def thawed(data: Any) -> LogPolicy:
    """The log policy of such data."""
    lines, patterns, exits, groups, rules, failures, backends, without_gpu, settled_by, versions = data
    return LogPolicy(
        _lines(*lines), {name: _pattern(*row) for name, row in patterns.items()}, tuple(_exit(*row) for row in exits),
        {name: tuple(ids) for name, ids in groups.items()}, tuple(_rule(*row) for row in rules),
        tuple(_failure(*row) for row in failures), frozenset(backends), frozenset(without_gpu), frozenset(settled_by),
        versions,
    )  # fmt: skip


def _lines(strip: Any, prefixes: Any, texts: Any, levels: Any, quotes: Any, ignored: Any) -> Lines:
    known = tuple(_prefix(*row) for row in prefixes)
    return Lines(
        Choice(map(Regex, strip), anywhere=True), known, tuple(texts), tuple(levels),
        tuple(_quote(*row) for row in quotes), Choice(map(Regex, ignored)), Choice(prefix.match for prefix in known),
    )  # fmt: skip


def _prefix(name: str, match: str, but_not: str | None, stamp: bool) -> Prefix:
    return Prefix(name, Regex(match), _regex(but_not), stamp)


def _quote(
    name: str, needs: Any, opens: str, but_not: str | None, closes: str | None, then: str, lines: int
) -> Quote:  # fmt: skip
    return Quote(name, tuple(needs), Regex(opens), _regex(but_not), _regex(closes), Regex(then), lines)


def _pattern(
    name: str, needs: Any, match: str, but_not: str | None, gpu: Any, failure: Any, detail: Any, backends: Any,
    engine: Any, levels: str, raw: bool, fatal: Any, until: Any, place: Any,
) -> Pattern:  # fmt: skip
    return Pattern(
        name, tuple(needs), Regex(match), _regex(but_not), gpu, failure, detail, frozenset(backends), _range(engine),
        levels, raw, fatal, frozenset(until), Place(*place),
    )  # fmt: skip


def _regex(text: str | None) -> Regex | None:
    return None if text is None else Regex(text)


def _range(row: Any) -> Range | None:
    return None if row is None else Range(*(None if bound is None else tuple(bound) for bound in row))


def _exit(name: str, statuses: Any, failure: Any, place: Any) -> Exit:
    return Exit(name, frozenset(statuses), failure, Place(*place))


def _rule(name: str, gpu: str, condition: Any, detail: Any, advice: Any, place: Any) -> Rule:
    return Rule(name, gpu, _condition(condition), detail, advice, Place(*place))


def _failure(name: str, says: str, advice: str, fatal: bool, condition: Any, place: Any) -> Failure:
    return Failure(name, says, advice, fatal, None if condition is None else _condition(condition), Place(*place))


def _condition(parts: Any) -> Condition:
    return Condition(*(tuple(map(_part, parts[key])) for key in ("all", "any", "none")))


def _part(item: Any) -> Any:
    if isinstance(item, dict):
        return _condition(item)
    return tuple(item) if isinstance(item, list) else item
