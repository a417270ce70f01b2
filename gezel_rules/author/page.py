"""What ``policy show`` prints: entries of the index as text, wrapped to a width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from gezel_rules.author.show import Entry

_HIT = {
    "first": "the first rule that fires decides",
    "unique": "at most one rule may fire",
    "collect": "the values of all rules that fire",
}


def page(entry: Entry, width: int) -> Iterator[str]:
    """The lines of one entry."""
    return _PAGES[entry["kind"]](entry, width)


def overview(files: list[Entry], width: int) -> Iterator[str]:
    """The lines of the list of all policies."""
    for number, file in enumerate(files):
        if number:
            yield ""
        yield from page(file, width)


def _wrapped(label: str, text: str, width: int, indent: int = 2, column: int = 0) -> Iterator[str]:
    """``label`` in a column of its own, the text wrapped beside it."""
    lead = " " * indent + label.ljust(column)
    under = " " * (indent + column)
    yield from textwrap.wrap(
        text, max(width, 40), initial_indent=lead, subsequent_indent=under, break_long_words=False,
        break_on_hyphens=False,
    ) or [lead.rstrip()]  # fmt: skip


def _policy(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']} {entry['version']}   {entry['file']}"
    yield from _wrapped("", entry["summary"], width)
    column = 2 + max((len(item["name"]) for item in (*entry["decisions"], *entry["tables"])), default=0)
    for decision in entry["decisions"]:
        said = f"{decision['flag']}: {decision['says']}" if "flag" in decision else decision["says"]
        yield from _wrapped(decision["name"], said, width, 4, column)
    for table in entry["tables"]:
        said = f"table, {_count(table['rows'], 'row')}"
        said += f": {table['says']}" if "says" in table else ""
        yield from _wrapped(table["name"], said, width, 4, column)


def _decision(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {_place(entry)}"
    if entry["says"]:
        yield from _wrapped("", entry["says"], width)
    yield from _wrapped("", _how(entry), width)
    for rule in entry["rules"]:
        yield ""
        yield from _rule(rule, entry, width)
    yield ""
    kinds = {"fact": "facts", "decision": "decisions", "table": "tables"}
    for kind, label in kinds.items():
        names = [name for name, of in entry["reads"].items() if of == kind]
        if names:
            yield from _wrapped(f"reads {label}", ", ".join(names), width, 2, 17)
    yield from _read_by(entry, width)
    yield from _changes(entry, width)


def _how(entry: Entry) -> str:
    """How its rules are combined, and what becomes of the value."""
    if entry["hit"] == "search":
        how = f"the first of {entry['over']} that a rule accepts before another rejects it"
    else:
        how = _HIT[entry["hit"]] if len(entry["rules"]) > 1 else "one rule"
    unit = f"; in {entry['unit']}" if entry["unit"] else ""
    flag = f"; becomes {entry['flag']}" if entry["flag"] and entry["flag"] != "*" else ""
    return how + unit + flag


def _rule(rule: Mapping[str, Any], decision: Entry, width: int) -> Iterator[str]:
    level = f" · speaks for {rule['level']}" if rule["level"] else ""
    file, line = rule["source"]["file"], rule["source"]["line"]
    place = f"line {line}" if file == decision["source"]["file"] else f"{file}:{line}"
    yield f"  {rule['id']}   {place}{level}"
    outcome = rule["then"] if decision["hit"] == "search" else _outcome(rule["then"])
    yield from _wrapped("when", rule["when"] or "always", width, 4, 9)
    yield from _wrapped("then", outcome, width, 4, 9)
    if rule["because"]:
        yield from _wrapped("because", rule["because"], width, 4, 9)
    if rule["evidence"]:
        yield from _wrapped("evidence", _evidence(rule["evidence"]), width, 4, 9)


def _outcome(then: str) -> str:
    return {"None": "none", "True": "true", "False": "false"}.get(then, then)


def _evidence(evidence: Mapping[str, Any]) -> str:
    dates = [f"{key} {evidence[key]}" for key in ("measured", "where", "expires") if key in evidence]
    return " · ".join([" ".join(str(evidence["note"]).split()), *dates])


def _place(entry: Entry) -> str:
    source = entry["source"]
    return f"{source['file']}:{source['line']} · {entry['policy']} {entry['version']}"


def _read_by(entry: Entry, width: int) -> Iterator[str]:
    yield from _wrapped("read by", ", ".join(entry["read_by"]) or "no decision", width, 2, 17)


def _changes(entry: Entry, width: int) -> Iterator[str]:
    """What layers make different here."""
    for change in entry.get("changes", ()):
        yield from _wrapped("laid over", f"{change['what']}   {_at(change)}", width, 2, 17)


def _at(change: Entry) -> str:
    return f"{change['source']['file']}:{change['source']['line']}"


def _layer(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['file']} {entry['version']}   laid over the policies"
    yield from _wrapped("", entry["summary"], width)
    column = 2 + max((len(change["name"]) for change in entry["changes"]), default=0)
    for change in entry["changes"]:
        yield from _wrapped(change["name"], f"{change['what']}   line {change['source']['line']}", width, 4, column)


def _table(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {_place(entry)}"
    yield from _columns(entry, width)
    rows = entry["rows"]
    column = 2 + max((len(key) for key in rows), default=0) if isinstance(rows, dict) else 0
    for key, row in rows.items() if isinstance(rows, dict) else [("", row) for row in rows]:
        yield from _wrapped(key, _cells(row), width, 4, column)
    yield ""
    yield from _read_by(entry, width)
    yield from _changes(entry, width)


def _columns(entry: Entry, width: int) -> Iterator[str]:
    """What a declared table says of itself and of its columns."""
    if "says" not in entry:
        return
    yield from _wrapped("", entry["says"], width)
    columns = {**entry["columns"], **({"each": entry["of"]} if "of" in entry else {})}
    wide = 2 + max(map(len, columns), default=0)
    for name, column in columns.items():
        yield from _wrapped(name, _meaning(column), width, 2, wide)
    if columns:
        yield ""


def _meaning(column: Entry) -> str:
    """What a column holds and means, in one line."""
    notes = [column["holds"] + (f" in {column['unit']}" if "unit" in column else "")]
    notes += [f"{key} {_cells(column[key])}" for key in ("minimum", "maximum", "default") if key in column]
    notes += ["may be left out"] if "optional" in column else []
    return ", ".join(notes) + (f": {column['says']}" if "says" in column else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s'[: number != 1]}"


def _cells(row: object) -> str:
    if isinstance(row, dict):
        return " · ".join(f"{column} {_cells(value)}" for column, value in row.items()) or "-"
    if isinstance(row, list):
        return ", ".join(map(_cells, row)) or "-"
    if row is None or isinstance(row, bool):
        return {None: "none", True: "yes", False: "no"}[row]
    return str(row)


def _fact(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   fact, {entry['type']}"
    yield from _wrapped("", entry["says"], width)
    yield ""
    yield from _wrapped("from", entry["source"], width, 2, 17)
    if entry["values"]:
        yield from _wrapped("values", f"the rows of {entry['values']}", width, 2, 17)
    if entry["unknown"]:
        yield from _wrapped("may be unknown", f"{entry['settle']} would tell", width, 2, 17)
    yield from _read_by(entry, width)


def _area(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {_count(len(entry['facts']), 'fact')}"
    column = 2 + max(len(fact["name"]) for fact in entry["facts"])
    for source, found in groupby(entry["facts"], itemgetter("source")):
        yield from _wrapped("", f"from {source}", width)
        for fact in found:
            values = f": a row of {fact['values']}" if fact["values"] else ""
            yield from _wrapped(fact["name"], f"{fact['says']} ({fact['type']}{values})", width, 4, column)


def _each(kind: str, shown: Callable[[Entry, int], Iterator[str]]) -> Callable[[Entry, int], Iterator[str]]:
    """A page of pages, with an empty line between them."""

    def pages(entry: Entry, width: int) -> Iterator[str]:
        for number, item in enumerate(entry[kind]):
            yield from [""] if number else []
            yield from shown(item, width)

    return pages


def _facts(entry: Entry, width: int) -> Iterator[str]:
    """All facts, area by area."""
    areas = [(name, list(found)) for name, found in groupby(entry["facts"], lambda fact: fact["name"].split(".")[0])]
    yield from _each("areas", _area)({"areas": [{"name": name, "facts": found} for name, found in areas]}, width)


def _areas(entry: Entry, width: int) -> Iterator[str]:
    column = 2 + max(len(area["name"]) for area in entry["areas"])
    for area in entry["areas"]:
        sources = dict.fromkeys(fact["source"] for fact in area["facts"])
        said = f"{_count(len(area['facts']), 'fact')} from {'; '.join(sources)}"
        yield from _wrapped(area["name"], said, width, 0, column)


def _function(entry: Entry, width: int) -> Iterator[str]:
    yield entry["name"]
    more = ", …" if entry["variadic"] else ""
    yield from _wrapped("", entry["says"], width)
    yield from _wrapped("takes", ", ".join(entry["takes"]) + more, width, 2, 7)
    yield from _wrapped("gives", entry["gives"], width, 2, 7)
    for name, column in entry["columns"].items():
        yield from _wrapped(f".{name}", column, width, 9, 3 + max(map(len, entry["columns"])))
    yield from _wrapped("for", entry["source"], width, 2, 7)


def _table_head(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {_count(entry['rows'], 'row')}   {_place(entry)}"
    yield from (line for line in _columns(entry, width) if line)


def _log(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {entry['type']}   {entry['source']['file']}:{entry['source']['line']}"
    yield from _wrapped("", entry["says"], width)
    if entry["advice"]:
        yield from _wrapped("", entry["advice"], width)


def _check(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry['name']}   {entry['severity']}"
    yield from _wrapped("", entry["says"], width)
    yield from _wrapped("", entry["remedy"], width)
    if entry["name"] != "broken":
        yield from _wrapped("", f"To let one stand, say why in a comment above it: # allow {entry['name']}: …", width)


_PAGES: dict[str, Callable[[Entry, int], Iterator[str]]] = {
    "policy": _policy,
    "layer": _layer,
    "decision": _decision,
    "table": _table,
    "fact": _fact,
    "area": _area,
    "check": _check,
    "checks": _each("checks", _check),
    "facts": _facts,
    "areas": _areas,
    "function": _function,
    "functions": _each("functions", _function),
    "tables": _each("tables", _table_head),
    "logs": _each("logs", _log),
}
