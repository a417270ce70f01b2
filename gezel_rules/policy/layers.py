"""Layers laid over policies: a site or a machine replaces a number, adds a rule or does without one, and forks nothing.

    summary: The fleet's cards share their RAM with a database.
    version: 1.0.0
    tables:
      capacity:
        rows: {ram: {share: 0.5}}
    decisions:
      kv.coarser:
        without: [not-automatic]
        rules:
          - {id: never-here, before: enough, when: "candidate.name == 'q4_0'", then: reject, because: too coarse for us}

What is changed keeps the place it was changed in, so problems and traces name the layer's file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.read import Value, read
from gezel_rules.errors import Problem
from gezel_rules.policy.layer_file import LAYER
from gezel_rules.policy.sources import Source, Sources
from gezel_rules.policy.tables import MARKS
from gezel_rules.record import NamedTuple


class Change(NamedTuple):
    """One change of a layer: the table or decision it is made in (``name``), what is different there, and where that is
    written."""

    name: str
    what: str
    file: str
    line: int


_PLACING = ("before", "after")
_OF_RULES = ("rules", "without")


def laid_over(sources: Sources, family: str, problems: list[Problem]) -> tuple[Source, ...]:
    """The files a family is judged by, with the layers for it laid over them, the first layer lowest. What is wrong
    with a layer is added to ``problems``."""
    files = list(sources.of(family))
    for layer in layers_of(sources, family):
        said = read(layer.root, LAYER, problems)
        for section in ("tables", "decisions"):
            for name, change in (said.at(section) or {}).items():
                if not _change(files, section, name, change, problems) and not _elsewhere(sources, section, name):
                    known = [known for file in files for known in _entries(file.root, section)]
                    node = change.node.key or change.node
                    problems.append(node.problem(f"no {section[:-1]} '{name}' to change{did_you_mean(name, known)}"))
    return tuple(files)


def layers_of(sources: Sources, family: str) -> tuple[Source, ...]:
    """The layers that are for a family."""
    return tuple(layer for layer in sources.layers if layer.engine in ("", family))


def _elsewhere(sources: Sources, section: str, name: str) -> bool:
    """Whether another family's files define it, or may: some could not be read."""
    return bool(sources.unread) or any(name in _entries(file.root, section) for file in sources.files)


def changes(layer: Source) -> Iterator[Change]:
    """What a layer changes, in the order it stands there."""
    said = read(layer.root, LAYER, [])
    for section, items in (("tables", "rows"), ("decisions", "rules")):
        for name, change in (said.at(section) or {}).items():
            for key, node in change.node.value.items():
                for what, at in _parts(node, key) if key in (items, "without") else [(key, node)]:
                    yield Change(name, what, at.text.name, (at.key or at).line)


def _parts(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    """Rows, rules, and what is left out, one by one."""
    if key == "rows" and isinstance(node.value, dict):
        for name, row in node.value.items():
            cells = [f"{cell}: {_raw(value)}" for cell, value in row.value.items()] if _is_map(row) else [_raw(row)]
            yield f"row {name}: {', '.join(cells)}", row
    elif isinstance(node.value, list) and key != "rows":
        for item in node.value:
            named = item.value.get("id", item) if _is_map(item) else item
            yield f"{'without' if key == 'without' else 'rule'} {named.plain()}", item
    else:
        yield key, node


def _is_map(node: Node) -> bool:
    return isinstance(node.value, dict)


def _raw(node: Node) -> str:
    """As it is written, on one line."""
    return " ".join(node.text.text[node.start : node.end].split())


def _change(files: list[Source], section: str, name: str, change: Value, problems: list[Problem]) -> bool:
    """Change one table or decision in the file that defines it; false when none does."""
    index = next((n for n, file in enumerate(files) if name in _entries(file.root, section)), None)
    if index is None:
        return False
    node = _entries(files[index].root, section)[name]
    changed = _table(name, node, change, problems) if section == "tables" else _decision(name, node, change, problems)
    files[index] = _replaced(files[index], section, name, changed)
    return True


def _entries(root: Node, section: str) -> Mapping[str, Node]:
    node = root.value.get(section) if isinstance(root.value, dict) else None
    return node.value if node is not None and isinstance(node.value, dict) else {}


def _replaced(source: Source, section: str, name: str, changed: Node) -> Source:
    entries = source.root.value[section]
    root = _with(source.root, {**source.root.value, section: _with(entries, {**entries.value, name: changed})})
    return source._replace(root=root)


def _with(node: Node, value: Any) -> Node:
    """Another value at the same place."""
    found = Node(value, node.text, node.line, node.column, node.start, node.end)
    found.key = node.key
    return found


def _table(name: str, table: Node, change: Value, problems: list[Problem]) -> Node:
    declared = isinstance(table.value, dict) and not MARKS.isdisjoint(table.value)
    rows = table.value.get("rows", table) if declared else table
    changed = _rows(name, rows, change, problems)
    return _with(table, {**table.value, "rows": changed}) if declared else changed


def _rows(name: str, rows: Node, change: Value, problems: list[Problem]) -> Node:
    given = change["rows"].node if "rows" in change else None
    if not isinstance(rows.value, dict) or (given is not None and not isinstance(given.value, dict)):
        return _with(rows, given.value) if given is not None else rows
    gone = _gone(f"table '{name}' has no row", change, rows.value, problems)
    kept = {key: row for key, row in rows.value.items() if key not in gone}
    for key, row in (given.value if given is not None else {}).items():
        both = key in kept and isinstance(kept[key].value, dict) and isinstance(row.value, dict)
        kept[key] = _with(row, {**kept[key].value, **row.value}) if both else row
    return _with(rows, kept)


def _gone(says: str, change: Value, known: Mapping[str, Any], problems: list[Problem]) -> set[str]:
    """What a layer does without; each must be there."""
    gone = {}
    for item in change.at("without") or ():
        gone[item.value] = item
        if item.value not in known:
            problems.append(item.problem(f"{says} '{item.value}' to do without{did_you_mean(item.value, known)}"))
    return set(gone)


def _decision(name: str, decision: Node, change: Value, problems: list[Problem]) -> Node:
    single = not (isinstance(decision.value, dict) and "rules" in decision.value)
    for key in change.value:
        if single == (key in _OF_RULES):
            has = "a single 'then', no rules" if single else "rules: name the one to change under 'rules'"
            node = change[key].node
            problems.append((node.key or node).problem(f"decision '{name}' has {has}"))
            return decision
    if single:
        return _with(decision, {**decision.value, **change.node.value})
    rules = decision.value["rules"]
    return _with(decision, {**decision.value, "rules": _with(rules, _rules(name, rules, change, problems))})


def _rules(name: str, rules: Node, change: Value, problems: list[Problem]) -> list[Node]:
    found = dict(_with_ids(rules))
    gone = _gone(f"decision '{name}' has no rule", change, found, problems)
    found = {key: rule for key, rule in found.items() if key not in gone}
    for rule in change.at("rules") or ():
        if "id" in rule:
            found = _with_rule(name, found, rule, problems)
    return list(found.values())


def _with_ids(rules: Node) -> Iterator[tuple[str, Node]]:
    """Rules by id; one without has a name that no id has."""
    for number, rule in enumerate(rules.value if isinstance(rules.value, list) else ()):
        named = isinstance(rule.value, dict) and "id" in rule.value
        yield (str(rule.value["id"].value) if named else f"rule {number}"), rule


def _with_rule(name: str, rules: Mapping[str, Node], rule: Value, problems: list[Problem]) -> dict[str, Node]:
    """The rules with one changed where it stands, or put before or behind the one it names."""
    key, placing = rule.at("id"), [word for word in _PLACING if word in rule]
    own = {word: node for word, node in rule.node.value.items() if word not in _PLACING}
    if key not in rules and not ("then" in rule and placing):
        near = did_you_mean(key, rules) or "; one to add needs 'then', and 'before' or 'after'"
        problems.append(rule["id"].problem(f"decision '{name}' has no rule '{key}'{near}"))
        return dict(rules)
    before = rules[key].value if key in rules else {}
    changed = _with(rule.node, {**before, **own})
    return _moved(name, rules, key, changed, rule, placing[0], problems) if placing else {**rules, key: changed}


def _moved(
    name: str, rules: Mapping[str, Node], key: str, node: Node, rule: Value, word: str, problems: list[Problem]
) -> dict[str, Node]:
    """The rules with that one right before another, or right behind it, as the ``word`` says."""
    beside, others = rule.at(word), [other for other in rules if other != key]
    if beside not in others:
        near = did_you_mean(beside, others)
        problems.append(rule[word].problem(f"decision '{name}' has no other rule '{beside}'{near}"))
        return dict(rules)
    at = others.index(beside) + (word == "after")
    return {other: node if other == key else rules[other] for other in (*others[:at], key, *others[at:])}
