"""The JSON Schema of a declaration, for editors: the same keys, kinds, words and bounds that the reader goes by.

A schema accepts all that the reader does, and what only a function can judge (``Text.fault``, names of things declared
elsewhere, rules between keys) besides. Shapes that stand in more than one place become ``$defs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gezel_rules.documents import declare
from gezel_rules.documents.declare import Kind, Shape
from gezel_rules.documents.kinds import FLAG, INTEGER, LIST, MAP, NOTHING, NUMBER, TEXT

Schema = dict[str, Any]

_TYPES = {
    TEXT: "string", INTEGER: "integer", NUMBER: "number", FLAG: "boolean", LIST: "array", MAP: "object",
    NOTHING: "null",
}  # fmt: skip


def json_schema(file: str, title: str, shape: Shape, blocks: Mapping[str, Kind] = {}) -> Schema:
    """The schema that is kept as ``file``. ``blocks`` declare what ``shape`` leaves to others, by name."""
    writer = _Writer(shape, blocks)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://gezel-rules.invalid/schemas/{file}",
        "title": title,
        **writer.whole(shape),
        **({"$defs": writer.definitions()} if writer.shared else {}),
    }


def definition_name(what: str) -> str:
    """``one-device`` for ``one device``, ``header`` for ``'header'``."""
    words = what.replace("'{}'", "").replace("'", "").split()
    return "-".join(words[1:] if words[0] in ("a", "an") else words)


class _Writer:
    """Writes schemas that point to the shapes shared within one declaration."""

    def __init__(self, root: Kind, blocks: Mapping[str, Kind]) -> None:
        self.blocks = blocks
        self.shared: dict[int, Shape] = {}
        seen: set[int] = set()
        self._find_shared(root, seen)

    def _find_shared(self, kind: Kind, seen: set[int]) -> None:
        if isinstance(kind, Shape):
            if id(kind) in seen:
                self.shared[id(kind)] = kind
                return
            seen.add(id(kind))
        for child in self._parts(kind):
            self._find_shared(child, seen)

    def _parts(self, kind: Kind) -> Iterator[Kind]:
        if isinstance(kind, Shape):
            yield from (field.kind for field in kind.fields.values())
            yield from [kind.others] if kind.others else ()
        elif isinstance(kind, declare.Variants):
            yield from _variants_of(kind)
        elif isinstance(kind, declare.Either):
            yield from kind.kinds
        elif isinstance(kind, (declare.List, declare.Map)):
            yield kind.of
        elif isinstance(kind, declare.Block) and kind.name in self.blocks:
            yield self.blocks[kind.name]

    def definitions(self) -> Schema:
        """Every shared shape by its name."""
        return {definition_name(shape.what): self.whole(shape) for shape in self.shared.values()}

    def schema(self, kind: Kind) -> Schema:
        """Of a kind; of a shared shape only where it is."""
        if id(kind) in self.shared:
            return {"$ref": f"#/$defs/{definition_name(self.shared[id(kind)].what)}"}
        return _WRITERS[type(kind)](self, kind)

    def whole(self, shape: Shape) -> Schema:
        """Of a shape, whether it is shared or not."""
        fields = shape.fields.items()
        return _present(
            type="object",
            description=shape.says,
            additionalProperties=False if shape.others is None else self.schema(shape.others),
            required=[key for key, field in fields if field.required],
            properties={key: self._field(field) for key, field in fields},
            oneOf=[{"required": [key]} for key in shape.one_of[0]] if shape.one_of else [],
            **shape.editors,
        )

    def _field(self, field: declare.Field) -> Schema:
        default = {} if field.default is None else {"default": field.default}
        return {**self.schema(field.kind), "description": field.says, **default}


def _present(**keywords: Any) -> Schema:
    """Without what is empty; False is said."""
    return {keyword: value for keyword, value in keywords.items() if value or value is False}


def _text(writer: _Writer, kind: declare.Text) -> Schema:
    body = f"(?:{kind.pattern})" if "|" in kind.pattern else kind.pattern
    pattern = f"^{body}$" if body else ""
    return _present(type="string", minLength=kind.least, pattern=pattern, examples=list(kind.examples))


def _number(writer: _Writer, kind: declare.Number) -> Schema:
    ends = {"minimum": kind.least, "exclusiveMinimum": kind.above, "maximum": kind.most}
    bounds = {keyword: end for keyword, end in ends.items() if end is not None}
    return {"type": "integer" if kind.whole else "number", **bounds}


def _anything(writer: _Writer, kind: declare.Anything) -> Schema:
    return _of_types(kind.kinds)


def _of_types(kinds: tuple[str, ...]) -> Schema:
    types = [_TYPES[word] for word in kinds]
    return {} if len(types) == len(_TYPES) else {"type": types[0] if len(types) == 1 else types}


def _block(writer: _Writer, kind: declare.Block) -> Schema:
    return writer.schema(writer.blocks[kind.name]) if kind.name in writer.blocks else _of_types(kind.kinds)


def _list(writer: _Writer, kind: declare.List) -> Schema:
    key, word = kind.one_with or ("", "")
    one = {"properties": {key: {"const": word}}, "required": [key]} if key else {}
    return _present(type="array", items=writer.schema(kind.of), minItems=kind.least, contains=one)


def _map(writer: _Writer, kind: declare.Map) -> Schema:
    return _present(
        type="object",
        propertyNames=_present(**{key: value for key, value in writer.schema(kind.keys).items() if key != "type"}),
        additionalProperties=writer.schema(kind.of),
    )


def _variants_of(kind: declare.Variants) -> list[Shape]:
    """Each of them once: several keys may tell of one shape."""
    shapes = [*kind.by.values(), *([kind.otherwise] if kind.otherwise is not None else [])]
    return list({id(shape): shape for shape in shapes}.values())


def _variants(writer: _Writer, kind: declare.Variants) -> Schema:
    """Shapes with known keys tell themselves apart; one that takes any key must be asked for last."""
    open_ended = kind.otherwise is not None and kind.otherwise.others is not None
    closed = [writer.schema(shape) for shape in _variants_of(kind) if not open_ended or shape is not kind.otherwise]
    variants = {"oneOf": closed} if len(closed) > 1 else closed[0]
    if kind.otherwise is None or not open_ended:
        return _present(description=kind.says, **variants)
    keys = [{"required": [key]} for key in kind.by]
    return _present(
        description=kind.says, **{"if": {"anyOf": keys}, "then": variants, "else": writer.schema(kind.otherwise)}
    )


_WRITERS: dict[type, Callable[[_Writer, Any], Schema]] = {
    declare.Text: _text,
    declare.Word: lambda writer, kind: {"enum": list(kind.words)},
    declare.Name: lambda writer, kind: _text(writer, kind.like),
    declare.Number: _number,
    declare.Flag: lambda writer, kind: {"type": "boolean"},
    declare.Anything: _anything,
    declare.Block: _block,
    declare.List: _list,
    declare.Map: _map,
    declare.Shape: _Writer.whole,
    declare.Variants: _variants,
    declare.Either: lambda writer, kind: {"anyOf": [writer.schema(each) for each in kind.kinds]},
}
