"""Checks over a whole log policy: names that must exist, samples that must and must not match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.logs.lines import Words, ignored, matches, unwrap
from gezel_rules.logs.model import Condition, Lines, LogPolicy, Pattern
from gezel_rules.logs.verdict import parts


def check_references(policy: LogPolicy, nodes: Mapping[str, Node], problems: list[Problem]) -> None:
    """Every id, failure class and backend that is spoken of exists."""
    evidence = {*policy.patterns, *policy.groups, *(e.id for e in policy.exits)}
    for name, wanted in _references(policy):
        for item in wanted:
            _known(item, evidence, f"'{name}' speaks of '{item}', which is no evidence", nodes[name], problems)
    for pattern in policy.patterns.values():
        for part in parts(pattern.detail or ""):
            said = f"'{pattern.id}' has no group '{part}'"
            _known(part, pattern.match.groups, said, nodes[pattern.id].value["detail"], problems)
    classes = {failure.id for failure in policy.failures}
    for name, failure in _supported(policy):
        _known(failure, classes, f"unknown failure class '{failure}'", nodes[name], problems)
    for name, backend in _backends(policy):
        if backend not in policy.backends:
            _known(backend, policy.backends, f"unknown backend '{backend}'", nodes[name], problems)


def _known(word: str, known: Iterable[str], said: str, node: Node, problems: list[Problem]) -> None:
    if word not in known:
        problems.append(_inside(node, word).problem(said + did_you_mean(word, known))._replace(misses=word))


def _references(policy: LogPolicy) -> Iterable[tuple[str, tuple[str, ...]]]:
    yield from policy.groups.items()
    yield "settled_by", tuple(policy.settled_by)
    for pattern in policy.patterns.values():
        yield pattern.id, tuple(pattern.until)
    for name, condition in _conditions(policy):
        yield name, tuple(item for item in _flat(condition) if isinstance(item, str))


def _supported(policy: LogPolicy) -> Iterable[tuple[str, str]]:
    yield from ((p.id, p.failure) for p in policy.patterns.values() if p.failure is not None)
    yield from ((e.id, e.failure) for e in policy.exits if e.failure is not None)


def _backends(policy: LogPolicy) -> Iterable[tuple[str, str]]:
    yield from (("without_gpu", backend) for backend in policy.without_gpu)
    for pattern in policy.patterns.values():
        yield from ((pattern.id, backend) for backend in pattern.backends)
    for name, condition in _conditions(policy):
        yield from ((name, item[1]) for item in _flat(condition) if isinstance(item, tuple))


def _conditions(policy: LogPolicy) -> Iterable[tuple[str, Condition | None]]:
    yield from ((rule.id, rule.condition) for rule in policy.rules)
    yield from ((failure.id, failure.condition) for failure in policy.failures)


def _flat(condition: Condition | None) -> Iterable[str | tuple[str, str]]:
    for item in (*condition.all, *condition.any, *condition.none) if condition else ():
        if isinstance(item, Condition):
            yield from _flat(item)
        else:
            yield item


def _inside(node: Node, value: str) -> Node:
    """The node of an entry that holds the value, for the caret; the entry itself when it is not found."""
    inner = node.value
    if inner == value:
        return node
    children = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
    return next((found for child in children if (found := _inside(child, value)).value == value), node)


def check_samples(
    policy: LogPolicy, nodes: Mapping[str, Node], words: Mapping[str, Node], problems: list[Problem]
) -> None:
    """Each pattern matches its ``matches`` and none of its ``ignores``, through the same unwrapping as a log.

    ``words``: where the named pieces of expressions are written: one that is at fault spoils every pattern with it.
    """
    failing: dict[str, list[Problem]] = {}
    for pattern in policy.patterns.values():
        if found := _samples_at_fault(pattern, nodes[pattern.id].value, policy.lines):
            failing[pattern.id] = found
    shared = [word for word in words if all(f"{{{{{word}}}}}" in _written(nodes[name]) for name in failing)]
    if len(failing) > 1 and shared:
        said = f"{len(failing)} patterns with this word do not match their lines, '{next(iter(failing))}' for one"
        problems.append(words[shared[0]].problem(said))
    elif len(failing) >= MANY:
        first = next(iter(failing.values()))[0]
        said = f"{first.message}, and {len(failing) - 1} more patterns fail: what is taken off lines may be at fault"
        problems.append(first._replace(message=said))
    else:
        problems.extend(_once(found) for found in failing.values())


MANY = 4  # patterns that fail at once: not each of them is at fault


def _once(found: list[Problem]) -> Problem:
    also = f" (nor {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0]._replace(message=found[0].message + also)


def _written(entry: Node) -> str:
    """The expressions of an entry, as written."""
    return "".join(str(entry.value[key].value) for key in ("match", "but_not") if key in entry.value)


def _samples_at_fault(pattern: Pattern, entry: Mapping[str, Node], lines: Lines) -> list[Problem]:
    problems: list[Problem] = []
    for sample in entry["matches"].value:
        _must_match(pattern, sample, lines, problems)
    for sample in entry["ignores"].value if "ignores" in entry else ():
        words = unwrap(str(sample.value), lines)
        if _reaches(pattern, words) and not ignored(words.text, lines) and matches(pattern, words):
            problems.append(sample.problem(f"'{pattern.id}' matches this line and must not"))
    return problems


def _must_match(pattern: Pattern, sample: Node, lines: Lines, problems: list[Problem]) -> None:
    words = unwrap(str(sample.value), lines)
    if ignored(words.text, lines):
        problems.append(sample.problem("this line is among the 'ignored' ones"))
    elif not matches(pattern, words):
        problems.append(sample.problem(f"'{pattern.id}' does not match this line"))
    elif not _reaches(pattern, words):
        problems.append(sample.problem(f"none of the 'needs' literals of '{pattern.id}' stands in this line"))


def _reaches(pattern: Pattern, words: Words) -> bool:
    return any(literal in words.text for literal in pattern.needs)
