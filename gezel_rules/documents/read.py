"""Reading a YAML node by its declaration: every value with its place, and everything that is wrong, all at once.

What fits is kept, what does not is left out and among the problems; so whatever a ``Value`` holds is as declared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gezel_rules.documents import declare
from gezel_rules.documents.declare import Kind, Shape
from gezel_rules.documents.kinds import INTEGER, NUMBER, kind_of, not_what
from gezel_rules.documents.node import Node, did_you_mean, misspelt
from gezel_rules.documents.wording import accepts, bounds, wanted
from gezel_rules.errors import Problem

Problems = list[Problem]

_MOST_WORDS = 12  # more in a message help nobody
_COUNTS = {1: "one", 2: "two", 3: "three"}


class Value:
    """What stands at ``node``, as ``kind`` declares it. ``value`` is what is meant there (a number of bytes for
    ``24 GiB``), a ``list[Value]`` or a ``dict[str, Value]``."""

    __slots__ = ("kind", "node", "value")

    def __init__(self, value: Any, node: Node, kind: Kind) -> None:
        self.value, self.node, self.kind = value, node, kind

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def __getitem__(self, key: str) -> Value:
        found: Value = self.value[key]
        return found

    def at(self, key: str) -> Any:
        """What is meant under a key of a shape; where it is left out, the declared default."""
        if key in self.value:
            return self.value[key].value
        return self.kind.fields[key].default if isinstance(self.kind, Shape) else None

    @property
    def complete(self) -> bool:
        """Whether every key that a shape requires is there and fits."""
        fields = self.kind.fields.items() if isinstance(self.kind, Shape) else ()
        return all(key in self.value for key, field in fields if field.required)

    def problem(self, message: str, width: int | None = None) -> Problem:
        """A problem with this value, at its place."""
        return self.node.problem(message, width)

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.node.text.name}:{self.node.line}"


def read(node: Node, shape: Shape, problems: Problems) -> Value:
    """What ``node`` says, read as ``shape``; everything missing, unknown or unfit is added to ``problems``."""
    if isinstance(node.value, dict):
        return _shape(node, shape, "", problems)
    problems.append(node.problem(f"{shape.what} must be a mapping, not {kind_of(node.value)}"))
    return Value({}, node, shape)


def in_file_order(problems: Collection[Problem]) -> list[Problem]:
    """Those at one place stay as they were found."""
    return sorted(problems, key=lambda problem: problem.span or ())


def unknown(node: Node, word: str, noun: str, known: Collection[str]) -> Problem:
    """That ``word``, which stands at ``node``, is none of the ``known``: with the nearest, or all if they are few."""
    hint = did_you_mean(word, known)
    if not hint and len(known) <= _MOST_WORDS:
        hint = f"; it is one of: {', '.join(known)}"
    return node.problem(f"unknown {noun} {word!a}{hint}")


def unknown_names(value: Value, known: Mapping[str, Collection[str]]) -> list[Problem]:
    """Every ``Name`` in it that is none of the ``known`` ones; what a list is not given for is not checked."""
    return in_file_order([
        unknown(node, word, name.noun, known[name.of])
        for node, word, name in _names(value)
        if name.of in known and word not in known[name.of]
    ])  # fmt: skip


def _names(value: Value) -> Iterator[tuple[Node, str, declare.Name]]:
    """Every name in it, in no particular order: where it stands, the name, what it is of."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = value.kind
        if isinstance(kind, declare.Name):
            yield value.node, value.value, kind
        elif isinstance(kind, declare.List):
            waiting += value.value
        elif isinstance(kind, (Shape, declare.Map)):
            waiting += value.value.values()
            if isinstance(kind, declare.Map) and isinstance(kind.keys, declare.Name):
                yield from ((child.node.key or child.node, key, kind.keys) for key, child in value.value.items())


def _fits(kind: Kind, value: object) -> bool:
    actual, fitting = kind_of(value), accepts(kind)
    return actual in fitting or (actual == INTEGER and NUMBER in fitting)


def _shape(node: Node, shape: Shape, called: str, problems: Problems) -> Value:
    entries = node.value
    lacking = [key for key, field in shape.fields.items() if field.required and key not in entries]
    one_of = shape.one_of[0] if shape.one_of else ()
    none_of = () if any(key in entries for key in one_of) else one_of
    strange = [key for key in entries if key not in shape.fields] if shape.others is None else []
    meant = misspelt(strange, [*lacking, *none_of], shape.fields) if strange else {}
    words = {word for word, _ in meant.values()}
    for key in lacking:
        if key not in words:
            problems.append(node.problem(f"{shape.what} has no '{key}'", 1))
    if shape.one_of and sum(key in entries or key in words for key in one_of) != 1:
        problems.append(node.problem(f"{shape.what} {shape.one_of[1]}", 1))
    said = {}
    for key, child in entries.items():
        kind = shape.fields[key].kind if key in shape.fields else shape.others
        if kind is None:
            said_of = f"{shape.what} has no key {_quoted(key)}{meant[key][1]}"
            problems.append((child.key or child).problem(said_of))
        elif (value := _child(child, kind, shape.prefix + key, problems)) is not None:
            said[key] = value
    return Value(said, node, shape)


def _child(node: Node, kind: Kind, called: str, problems: Problems) -> Value | None:
    """``called`` is the key that messages name; readers that are given none quote the value."""
    if _fits(kind, node.value):
        found: Value | None = _READERS[type(kind)](node, kind, called, problems)
        return found
    kinds = "|".join(accepts(kind))
    problems.append(node.problem(f"{_quoted(called)} must be {wanted(kind)}, not {not_what(kinds, node.value)}"))
    return None


def _quoted(key: str) -> str:
    """A key as messages show it: nothing in it can drive a terminal."""
    return f"{key!r:.80}"


def _variants(node: Node, kind: declare.Variants, called: str, problems: Problems) -> Value | None:
    meant = next((shape for key, shape in kind.by.items() if key in node.value), kind.otherwise)
    if meant is not None:
        return _shape(node, meant, called, problems)
    problems.append(node.problem(f"{kind.what} needs one of: {', '.join(kind.by)}", 1))
    return None


def _map(node: Node, kind: declare.Map, called: str, problems: Problems) -> Value:
    said = {}
    for key, child in node.value.items():
        like = kind.keys.like if isinstance(kind.keys, declare.Name) else kind.keys
        if wrong := _wrong_text(key, like, quoted=True):
            problems.append((child.key or child).problem(f"{_quoted(key)} {wrong}"))
        elif (value := _of_map(child, kind.of, key, problems)) is not None:
            said[key] = value
    return Value(said, node, kind)


def _of_map(node: Node, kind: Kind, key: str, problems: Problems) -> Value | None:
    if not isinstance(kind, Shape):
        return _child(node, kind, key, problems)
    value = read(node, kind._replace(what=kind.what.replace("'{}'", _quoted(key))), problems)
    return value if isinstance(node.value, dict) else None


def _list(node: Node, kind: declare.List, called: str, problems: Problems) -> Value:
    said = []
    for child in node.value:
        if not _fits(kind.of, child.value):
            problems.append(child.problem(f"{_quoted(called)}: expected {wanted(kind.of)}, not {kind_of(child.value)}"))
        elif (value := _READERS[type(kind.of)](child, kind.of, "", problems)) is not None:
            said.append(value)
    if len(node.value) < kind.least:
        least = _COUNTS.get(kind.least, str(kind.least))
        message = f"{_quoted(called)} must name at least {least} {kind.noun}".rstrip()
        problems.append(node.problem(_or(message, kind.otherwise)))
    if kind.one_with is not None and _none_with(*kind.one_with, node, said):
        problems.append(node.problem(f"{_quoted(called)} has none of {' '.join(kind.one_with)}", 1))
    return Value(said, node, kind)


def _none_with(key: str, word: str, node: Node, said: list[Value]) -> bool:
    """Whether no item has the word there; one that could not be read might have been meant to."""
    whole = len(said) == len(node.value) and all(key in item for item in said)
    return whole and not any(item[key].value == word for item in said)


def _either(node: Node, kind: declare.Either, called: str, problems: Problems) -> Value | None:
    return _child(node, next(each for each in kind.kinds if _fits(each, node.value)), called, problems)


def _text(node: Node, kind: declare.Text, called: str, problems: Problems) -> Value | None:
    text = node.value
    if kind is declare.TEXT:  # most of them
        return Value(text, node, kind)
    quoted = bool(kind.noun) or not called
    wrong = _wrong_text(text, kind, quoted)
    meant = text if wrong or kind.means is None else kind.means(text)
    if not wrong and meant is not None:
        return Value(meant, node, kind)
    named = f"{kind.noun} {text!a:.120}".lstrip() if quoted else _quoted(called)
    problems.append(node.problem(_or(f"{named} {wrong or _other(kind, quoted)}", kind.otherwise)))
    return None


def _wrong_text(text: str, kind: declare.Text, quoted: bool) -> str:
    """What is wrong, as the end of a sentence about a key, or about the text itself where that is ``quoted``."""
    if kind.fault is not None:
        return kind.fault(text)
    if len(text) < kind.least:
        return "must not be empty" if kind.least == 1 else f"must have at least {kind.least} characters"
    return _other(kind, quoted) if kind.pattern and not re.fullmatch(kind.pattern, text) else ""


def _other(kind: declare.Text, quoted: bool) -> str:
    """That it is something else than the kind says."""
    such = f" such as {' or '.join(kind.examples)}" if kind.examples else ""
    return f"{'is not' if quoted else 'must be'} {kind.a}{such}"


def _word(node: Node, kind: declare.Word, called: str, problems: Problems) -> Value | None:
    if node.value in kind.words:
        return Value(node.value, node, kind)
    problems.append(unknown(node, node.value, kind.noun, kind.words))
    return None


def _name(node: Node, kind: declare.Name, called: str, problems: Problems) -> Value | None:
    found = _text(node, kind.like, called, problems)
    return None if found is None else Value(found.value, node, kind)


def _number(node: Node, kind: declare.Number, called: str, problems: Problems) -> Value | None:
    value, (least, most, above) = node.value, kind[:3]
    low = (least is not None and value < least) or (above is not None and value <= above)
    if low or (most is not None and value > most):
        named = _quoted(called) if called else value
        problems.append(node.problem(_or(f"{named} must be {bounds(kind)}", kind.otherwise)))
        return None
    return Value(value, node, kind)


def _or(message: str, otherwise: str) -> str:
    return f"{message}; {otherwise}" if otherwise else message


def _as_it_is(node: Node, kind: Kind, called: str, problems: Problems) -> Value:
    return Value(node.value, node, kind)


_READERS: dict[type, Any] = {
    declare.Text: _text,
    declare.Word: _word,
    declare.Name: _name,
    declare.Number: _number,
    declare.Flag: _as_it_is,
    declare.Anything: _as_it_is,
    declare.Block: _as_it_is,
    declare.List: _list,
    declare.Map: _map,
    declare.Shape: _shape,
    declare.Variants: _variants,
    declare.Either: _either,
}
