"""A page about a kind of file: every key is there, with what it holds and what it means."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gezel_rules.author.reference import reference
from gezel_rules.author.schemas import FORMS, Form
from gezel_rules.documents.declare import (
    FLAG,
    TEXT,
    Anything,
    Block,
    Either,
    Kind,
    List,
    Map,
    Name,
    Shape,
    Text,
    Variants,
    Word,
    optional,
    required,
    whole,
)

SIZE = Text("a size", ("24 GiB",), pattern="[0-9]+ GiB")
SHARD = Shape("a shard", {"name": required(TEXT, "Its name.")})
FILE = Variants("a file", {
    "shards": Shape("a file in shards", {"shards": required(List(Either((TEXT, SHARD)), least=2), "The parts.")}),
    "url": Shape("a URL", {"url": required(TEXT, "Where | how.")}, "Somewhere else."),
})  # fmt: skip
ENTRY = Shape(
    "an entry",
    {
        "files": required(List(FILE), "The files."),
        "first": optional(SHARD, "A shard by itself."),
        "role": required(Word(("model", "draft"), "role"), "What for."),
        "free": optional(SIZE, "How much."),
        "slots": optional(whole(least=1, unit="slots"), "How many.", 2),
        "chat": optional(FLAG, "Whether.", False),
        "by": optional(Map(whole(), keys=Name("spec_types", "type")), "By type."),
        "header": optional(Block("header"), "Its header."),
        "more": optional(Block("elsewhere"), "Who knows."),
    },
    "One entry.",
    one_of=(("free", "slots"), "needs either"),
)
HEADER = Shape("'header'", {}, others=Anything(("text", "number"), "a single value"))
PAGE = """\
# Entry

One entry.

It needs either.

| key | holds | meaning |
| --- | --- | --- |
| `files` (required) | list of mapping with one of `shards`, `url` | The files. |
| `first` | mapping: `first` | A shard by itself. |
| `role` (required) | one of `model`, `draft` | What for. |
| `free` | a size such as `24 GiB` | How much. |
| `slots` | whole number, at least 1 slot; `2` when left out | How many. |
| `chat` | true or false; `false` when left out | Whether. |
| `by` | one of the spec types → whole number | By type. |
| `header` | mapping: `header` | Its header. |
| `more` | mapping | Who knows. |

## `files[]` with `shards`

| key | holds | meaning |
| --- | --- | --- |
| `shards` (required) | list of text or mapping: `first` (at least 2) | The parts. |

## `files[]` with `url`

Somewhere else.

| key | holds | meaning |
| --- | --- | --- |
| `url` (required) | text | Where \\| how. |

## `first`

| key | holds | meaning |
| --- | --- | --- |
| `name` (required) | text | Its name. |

## `header`

| key | holds | meaning |
| --- | --- | --- |
| any other | a single value | |
"""


def test_a_page() -> None:
    assert reference("Entry", ENTRY, {"header": HEADER}) == PAGE


def test_a_shape_that_holds_itself_is_told_about_once() -> None:
    fields = {"of": optional(TEXT, "One thing.")}
    condition = Shape("a condition", fields)
    fields["all"] = optional(List(Either((TEXT, condition))), "All of these.")
    page = reference("Rule", Shape("a rule", {"when": required(condition, "When.")}))
    assert page.count("\n## ") == 1
    assert "| `all` | list of text or mapping: `when` | All of these. |" in page


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_pages_of_all_files_hold_every_key(form: Form) -> None:
    page = reference(form.title, form.shape, form.blocks)
    keys = {key for shape in _shapes(form.shape, form.blocks, []) for key in shape.fields}
    assert [key for key in sorted(keys) if f"\n| `{key}`" not in page] == []
    assert all(line.count(" | ") == 2 for line in page.splitlines() if line.startswith("| `"))


def _shapes(kind: Kind, blocks: Mapping[str, Kind], found: list[Shape]) -> list[Shape]:
    """Every shape that a kind is made of, each once."""
    if any(kind is shape for shape in found):
        return found
    if isinstance(kind, Shape):
        found.append(kind)
    below = [field.kind for field in getattr(kind, "fields", {}).values()]
    below += [*getattr(kind, "by", {}).values(), getattr(kind, "others", None), getattr(kind, "of", None)]
    below += kind.kinds if isinstance(kind, Either) else ()
    below += [blocks.get(kind.name)] if isinstance(kind, Block) else []
    for each in below:
        if each is not None and not isinstance(each, str):
            _shapes(each, blocks, found)
    return found
