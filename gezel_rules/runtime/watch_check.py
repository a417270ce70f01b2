"""Checks over a whole log policy: names that must exist, samples that must and must not match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gezel_rules.errors import Problem
from gezel_rules.runtime.watch_lines import Words, unwrap
from gezel_rules.runtime.watch_policy import Condition, Lines, LogPolicy, Pattern
from gezel_rules.source import Node, did_you_mean


def ignored(text: str, lines: Lines) -> bool:
    """Whether the line only repeats names, paths or text of others."""
    return any(pattern.match(text) for pattern in lines.ignored)


def matches(pattern: Pattern, words: Words) -> bool:
    """Whether a line is what the pattern means: literal, level, expression, and nothing it excludes."""
    if pattern.levels and words.level and words.level not in pattern.levels:
        return False
    if pattern.match.search(words.text) is None:
        return False
    return pattern.but_not is None or pattern.but_not.search(words.text) is None


def check_references(policy: LogPolicy, nodes: Mapping[str, Node], problems: list[Problem]) -> None:
    """Every id, failure class and backend that is spoken of exists."""
    evidence = {*policy.patterns, *policy.groups, *(e.id for e in policy.exits)}
    classes = {failure.id for failure in policy.failures}
    for name, wanted in _references(policy):
        for item in wanted:
            if item not in evidence:
                hint = did_you_mean(item, evidence)
                problems.append(_inside(nodes[name], item).problem(f"'{name}' speaks of '{item}', which is no evidence{hint}"))
    for entry in (*policy.patterns.values(), *policy.exits):
        if entry.failure is not None and entry.failure not in classes:
            hint = did_you_mean(entry.failure, classes)
            problems.append(_inside(nodes[entry.id], entry.failure).problem(f"unknown failure class '{entry.failure}'{hint}"))
    for name, backend in _backends(policy):
        if backend not in policy.backends:
            hint = did_you_mean(backend, policy.backends)
            problems.append(_inside(nodes[name], backend).problem(f"unknown backend '{backend}'{hint}"))


def _references(policy: LogPolicy) -> Iterable[tuple[str, tuple[str, ...]]]:
    yield from policy.groups.items()
    for pattern in policy.patterns.values():
        yield pattern.id, tuple(pattern.until)
    for entry in (*policy.rules, *policy.failures):
        yield entry.id, tuple(item for item in _flat(entry.condition) if isinstance(item, str))


def _backends(policy: LogPolicy) -> Iterable[tuple[str, str]]:
    for pattern in policy.patterns.values():
        yield from ((pattern.id, backend) for backend in pattern.backends)
    for entry in (*policy.rules, *policy.failures):
        yield from ((entry.id, item[1]) for item in _flat(entry.condition) if isinstance(item, tuple))


def _flat(condition: Condition | None) -> Iterable[str | tuple[str, str]]:
    for item in (*condition.all, *condition.any, *condition.none) if condition else ():
        if isinstance(item, Condition):
            yield from _flat(item)
        else:
            yield item


def _inside(node: Node, value: str) -> Node:
    """The node of an entry that holds the value, for the caret; the entry itself when it is not found."""
    if node.value == value:
        return node
    children = node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    return next((found for child in children if (found := _inside(child, value)).value == value), node)


def check_samples(policy: LogPolicy, nodes: Mapping[str, Node], problems: list[Problem]) -> None:
    """Each pattern matches its ``matches`` and none of its ``ignores``, through the same unwrapping as a log."""
    for pattern in policy.patterns.values():
        entry = nodes[pattern.id].value
        for sample in entry["matches"].value:
            _must_match(pattern, sample, policy.lines, problems)
        for sample in entry["ignores"].value if "ignores" in entry else ():
            words = unwrap(str(sample.value), policy.lines)
            if _reaches(pattern, words) and not ignored(words.text, policy.lines) and matches(pattern, words):
                problems.append(sample.problem(f"'{pattern.id}' matches this line and must not"))
        if not entry["matches"].value:
            problems.append(entry["matches"].problem(f"'{pattern.id}' needs at least one line it matches", 1))


def _must_match(pattern: Pattern, sample: Node, lines: Lines, problems: list[Problem]) -> None:
    words = unwrap(str(sample.value), lines)
    if ignored(words.text, lines):
        problems.append(sample.problem("this line is among the 'ignored' ones"))
    elif not matches(pattern, words):
        problems.append(sample.problem(f"'{pattern.id}' does not match this line"))
    elif not _reaches(pattern, words):
        problems.append(sample.problem(f"'{pattern.id}' matches this line, but none of its 'needs' literals stands in it"))


def _reaches(pattern: Pattern, words: Words) -> bool:
    return any(literal in words.text for literal in pattern.needs)
