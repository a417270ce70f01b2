"""What an expression can be: kinds of plain JSON values, units for people, and "may be none" / "may be unknown"."""

from __future__ import annotations

from collections.abc import Mapping

from gezel_rules.record import NamedTuple


class Type(NamedTuple):
    """``kind`` is flag, integer, number, text, none, list, record, table or any.

    ``unit`` is how people read it (bytes, tokens, seconds, percent); ``optional`` says it may be ``None``;
    ``choices`` are the words a text may be; ``item`` is what a list or table holds; ``fields`` a record's columns;
    ``rows_of`` names a table whose rows are the choices, for whoever knows the tables.
    """

    kind: str
    unit: str = ""
    optional: bool = False
    choices: frozenset[str] | None = None
    item: Type | None = None
    fields: Mapping[str, Type] | None = None
    rows_of: str = ""

    def __str__(self) -> str:
        name = {"list": f"list of {self.item}", "flag": "true or false", "integer": "whole number"}.get(
            self.kind, self.kind
        )
        if self.choices is not None and len(self.choices) == 1:
            name = f"the text '{next(iter(self.choices))}'"
        elif self.choices is not None and len(self.choices) <= 8:
            name = "one of " + ", ".join(sorted(self.choices))
        return f"{name} or none" if self.optional else name


FLAG, INTEGER, NUMBER, TEXT, NONE, ANY = (Type(k) for k in ("flag", "integer", "number", "text", "none", "any"))


class Function(NamedTuple):
    """A pure function an expression may call: parameter types, result type, and its meaning for people."""

    params: tuple[Type, ...]
    result: Type
    says: str = ""
    variadic: bool = False  # the last parameter may repeat


def is_numeric(type_: Type) -> bool:
    """Whole numbers and numbers; ``any`` passes because nothing is known against it."""
    return type_.kind in ("integer", "number", "any")


def accepts(wanted: Type, given: Type) -> bool:
    """Whether a value of ``given`` may stand where ``wanted`` is expected."""
    if "any" in (wanted.kind, given.kind):
        return True
    if given.kind == "none":
        return wanted.optional or wanted.kind == "none"
    if wanted.kind == "number" and given.kind == "integer":
        return True
    if wanted.kind != given.kind:
        return False
    if wanted.kind == "list" and wanted.item and given.item:
        return accepts(wanted.item, given.item)
    return True


def join(a: Type, b: Type) -> Type | None:
    """The type of a value that is one or the other, or ``None`` when they do not belong together."""
    optional = a.optional or b.optional or "none" in (a.kind, b.kind)
    if a.kind == "none":
        return b._replace(optional=True)
    if b.kind == "none":
        return a._replace(optional=True)
    if not (accepts(a, b) or accepts(b, a)):
        return None
    wider = b if (a.kind == "integer" and b.kind == "number") or a.kind == "any" else a
    choices = a.choices | b.choices if a.choices is not None and b.choices is not None else None
    return wider._replace(optional=optional, choices=choices, unit=a.unit or b.unit)


def type_of(value: object) -> Type:
    """The type of a plain JSON constant."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return FLAG
    if isinstance(value, int):
        return INTEGER
    if isinstance(value, float):
        return NUMBER
    if isinstance(value, str):
        return Type("text", choices=frozenset((value,)))
    if isinstance(value, (list, tuple, frozenset)):
        return Type("list", item=_common(list(value)))
    if isinstance(value, dict):
        return Type("record", fields={key: type_of(item) for key, item in value.items()})
    return ANY


def _common(values: list[object]) -> Type:
    result: Type | None = None
    for value in values:
        result = type_of(value) if result is None else (join(result, type_of(value)) or ANY)
    return result or ANY


def table_type(rows: Mapping[str, object]) -> Type:
    """The type of a table: rows are records with all columns (a missing cell is none), or scalars."""
    columns: dict[str, Type] = {}
    scalar: Type | None = None
    for row in rows.values():
        if not isinstance(row, dict):
            scalar = type_of(row) if scalar is None else (join(scalar, type_of(row)) or ANY)
            continue
        for column, value in row.items():
            cell = _open(type_of(value))
            known = columns.get(column, cell)
            columns[column] = cell if known == cell else (join(known, cell) or ANY)
    if scalar is not None and not columns:
        return Type("table", item=_open(scalar), choices=frozenset(rows))
    for column, cell in columns.items():
        missing = any(isinstance(row, dict) and column not in row for row in rows.values())
        columns[column] = _open(cell)._replace(optional=cell.optional or missing)
    return Type("table", item=Type("record", fields=columns), choices=frozenset(rows))


def _open(type_: Type) -> Type:
    """A cell's words today do not bound its words tomorrow."""
    return type_._replace(choices=None) if type_.choices is not None else type_
