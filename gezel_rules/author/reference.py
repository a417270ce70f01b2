"""A page about one kind of file, in Markdown: every key, what it holds, what it means, made from the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gezel_rules.documents import declare
from gezel_rules.documents.declare import Field, Kind, Shape
from gezel_rules.documents.wording import accepts, as_yaml, bounds
from gezel_rules.record import NamedTuple

Headings = dict[int | str, str]
"""Of shapes, by identity, and of blocks, by name."""


class _Section(NamedTuple):
    """One mapping and where it stands; ``variant`` is the key that tells it from others there."""

    path: str
    variant: str
    shape: Shape

    @property
    def heading(self) -> str:
        """``files[]`` with ``shards``."""
        return f"`{self.path}`" + (f" with `{self.variant}`" if self.variant else "")


def reference(title: str, shape: Shape, blocks: Mapping[str, Kind] = {}) -> str:
    """The page. ``blocks`` declare what the shape leaves to others, by name. A mapping that stands in several places is
    told about once, where the fewest keys lead to it."""
    whole, *sections = _sections(shape, blocks)
    headings: Headings = {id(section.shape): section.heading for section in sections}
    headings |= {name: headings[id(kind)] for name, kind in blocks.items() if id(kind) in headings}
    lines = [f"# {title}", "", *_about(whole.shape, headings)]
    for section in sections:
        lines += [f"## {section.heading}", "", *_about(section.shape, headings)]
    return "\n".join(lines)


def _sections(shape: Shape, blocks: Mapping[str, Kind]) -> Iterator[_Section]:
    """Every mapping once, those of fewer steps first."""
    waiting, seen = [_Section("", "", shape)], {id(shape)}
    while waiting:
        section = waiting.pop(0)
        yield section
        below = [(key, field.kind) for key, field in section.shape.fields.items()]
        below += [("*", section.shape.others)] if section.shape.others else []
        found = [part for key, kind in below for part in _parts(f"{section.path}.{key}".lstrip("."), "", kind, blocks)]
        for part in found:
            if id(part.shape) not in seen:
                seen.add(id(part.shape))
                waiting.append(part)


def _parts(path: str, variant: str, kind: Kind, blocks: Mapping[str, Kind]) -> Iterator[_Section]:
    """The mappings that a kind is made of, not those below them."""
    if isinstance(kind, Shape):
        yield _Section(path, variant, kind)
    elif isinstance(kind, declare.Variants):
        for key, shape in kind.by.items():
            yield from _parts(path, key, shape, blocks)
        if kind.otherwise is not None:
            yield from _parts(path, "", kind.otherwise, blocks)
    elif isinstance(kind, declare.Either):
        for each in kind.kinds:
            yield from _parts(path, variant, each, blocks)
    elif isinstance(kind, (declare.List, declare.Map)):
        yield from _parts(path + ("[]" if isinstance(kind, declare.List) else ".*"), variant, kind.of, blocks)
    elif isinstance(kind, declare.Block) and kind.name in blocks:
        yield from _parts(path, variant, blocks[kind.name], blocks)


def _about(shape: Shape, headings: Headings) -> Iterator[str]:
    """What it is, and its keys in a table."""
    if shape.says:
        yield from (shape.says, "")
    if shape.one_of:
        yield from (f"It {shape.one_of[1]}.", "")
    yield from ("| key | holds | meaning |", "| --- | --- | --- |")
    yield from (_row(key, field, headings) for key, field in shape.fields.items())
    if shape.others is not None:
        yield f"| any other | {_cell(_phrase(shape.others, headings))} | |"
    yield ""


def _row(key: str, field: Field, headings: Headings) -> str:
    must = " (required)" if field.required else ""
    default = "" if field.default is None else f"; `{as_yaml(field.default)}` when left out"
    return f"| `{key}`{must} | {_cell(_phrase(field.kind, headings) + default)} | {_cell(field.says)} |"


def _phrase(kind: Kind, headings: Headings) -> str:
    """What a kind holds, in words."""
    if isinstance(kind, Shape):
        return f"mapping: {headings[id(kind)]}"
    if isinstance(kind, declare.Block) and kind.name in headings:
        return f"mapping: {headings[kind.name]}"
    if isinstance(kind, declare.Variants):
        return f"mapping with one of {_words(kind.by)}" if kind.otherwise is None else "mapping"
    if isinstance(kind, declare.Either):
        return " or ".join(dict.fromkeys(_phrase(each, headings) for each in kind.kinds))
    if isinstance(kind, declare.List):
        return f"list of {_phrase(kind.of, headings)}" + (f" (at least {kind.least})" if kind.least else "")
    if isinstance(kind, declare.Map):
        return f"{_phrase(kind.keys, headings)} → {_phrase(kind.of, headings)}"
    return _single(kind)


def _single(kind: Kind) -> str:
    """A kind that holds no others."""
    if isinstance(kind, declare.Word):
        return f"one of {_words(kind.words)}"
    if isinstance(kind, declare.Name):
        return f"one of the {kind.of.replace('_', ' ')}"
    if isinstance(kind, declare.Text):
        examples = f" such as {' or '.join(f'`{example}`' for example in kind.examples)}" if kind.examples else ""
        return f"{kind.a or 'text'}{examples}"
    if isinstance(kind, declare.Number):
        return ", ".join(filter(None, (accepts(kind)[0], bounds(kind) or kind.unit)))
    return kind.a if isinstance(kind, declare.Anything) and kind.a else " or ".join(accepts(kind))


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
