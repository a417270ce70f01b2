"""The JSON Schema of a declaration accepts what the reader accepts, and nothing else it can see."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

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
    Number,
    Shape,
    Text,
    Variants,
    Word,
    optional,
    required,
    whole,
)
from gezel_rules.documents.json_schema import definition_name, json_schema
from gezel_rules.documents.read import read
from gezel_rules.documents.source import Text as Source
from gezel_rules.documents.source import parse_yaml
from gezel_rules.errors import Problem

KEYS = ("a", "b", "c")
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.integers(-3, 9).map(lambda n: n + 0.5),
    st.sampled_from(["a", "b", "ab", "abc", "", "x y"]),
)  # fmt: skip
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
few = st.none() | st.integers(0, 5)
leaves: st.SearchStrategy[Kind] = st.one_of(
    st.integers(0, 2).map(lambda least: Text(least=least)),
    st.sampled_from(["[a-b]+", "a|ab", "a(b|c)*"]).map(lambda pattern: Text(pattern=pattern)),
    st.just(Word(("a", "ab"), "word")),
    st.just(Name("things", "thing")),
    st.tuples(few, few, few, st.booleans()).map(lambda said: Number(*said[:3], whole=said[3])),
    st.just(FLAG),
    st.lists(st.sampled_from(["text", "number", "nothing", "list", "mapping"]), min_size=1, unique=True).map(
        lambda kinds: Anything(tuple(kinds))
    ),
    st.just(Block("elsewhere")),
)


def _shape(kinds: dict[str, tuple[Kind, bool]], one_of: bool, others: Kind | None) -> Shape:
    fields = {key: (required if must else optional)(kind, "A key.") for key, (kind, must) in kinds.items()}
    return Shape("a shape", fields, one_of=(("a", "b"), "needs one") if one_of else None, others=others)


def _variants(first: Kind, second: Kind, others: Kind | None) -> Variants:
    by = {
        key: Shape("one of them", {key: required(kind, "The key."), "c": optional(TEXT, "More.")})
        for key, kind in (("a", first), ("b", second))
    }
    return Variants("a variant", by, otherwise=Shape("a shape", {}, others=others) if others else None)


def _compound(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    fields = st.dictionaries(st.sampled_from(KEYS), st.tuples(inner, st.booleans()), max_size=3)
    shapes = st.tuples(fields, st.booleans(), st.none() | inner).map(lambda said: _shape(*said))
    sources = st.tuples(inner, inner, st.none() | inner).map(lambda said: _variants(*said))
    return st.one_of(
        st.tuples(inner, st.integers(0, 2)).map(lambda said: List(*said)),
        st.tuples(inner, st.sampled_from([TEXT, Text("a key", ("a",), pattern="a|b")])).map(lambda said: Map(*said)),
        st.tuples(st.sampled_from([TEXT, whole(), FLAG]), inner.map(Map)).map(Either),
        shapes,
        sources,
    )


kinds = st.recursive(leaves, _compound, max_leaves=5)
ELSEWHERE = Shape("a block", {"a": optional(TEXT, "A text.")})


@settings(max_examples=400)
@given(kinds, documents)
def test_reader_and_schema_agree(kind: Kind, document: Any) -> None:
    shape = Shape("a file", {"key": required(kind, "The key.")})
    file = {"key": document}
    schema = json_schema("case.schema.json", "Case", shape)
    Draft202012Validator.check_schema(schema)
    problems: list[Problem] = []
    read(parse_yaml(Source("case.yaml", json.dumps(file))), shape, problems)
    assert Draft202012Validator(schema).is_valid(file) is not bool(problems), problems


@given(documents)
def test_a_block_is_what_its_owner_declares(document: Any) -> None:
    shape = Shape("a file", {"key": required(Block("elsewhere"), "The key.")})
    there = Shape("a file", {"key": required(ELSEWHERE, "The key.")})
    schema = json_schema("case.schema.json", "Case", shape, {"elsewhere": ELSEWHERE})
    assert schema == json_schema("case.schema.json", "Case", there)
    assert Draft202012Validator(schema).is_valid({"key": document}) is Draft202012Validator(
        json_schema("case.schema.json", "Case", there)
    ).is_valid({"key": document})


def test_what_editors_are_told() -> None:
    size = Text("a size", ("24 GiB",), pattern="[0-9]+ GiB")
    device = Shape("a device", {"free": required(size, "Free memory."), "slow": optional(FLAG, "Slow.", False)}, "One.")
    host = Shape("a host", {
        "first": required(device, "The first."), "more": optional(List(device, least=1), "The others."),
        "os": required(Word(("linux", "macos"), "system"), "Operating system."),
    }, "A machine.")  # fmt: skip
    assert json_schema("host.schema.json", "Host", host) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://gezel-rules.invalid/schemas/host.schema.json",
        "title": "Host",
        "type": "object",
        "description": "A machine.",
        "additionalProperties": False,
        "required": ["first", "os"],
        "properties": {
            "first": {"$ref": "#/$defs/device", "description": "The first."},
            "more": {
                "type": "array",
                "items": {"$ref": "#/$defs/device"},
                "minItems": 1,
                "description": "The others.",
            },
            "os": {"enum": ["linux", "macos"], "description": "Operating system."},
        },
        "$defs": {
            "device": {
                "type": "object",
                "description": "One.",
                "additionalProperties": False,
                "required": ["free"],
                "properties": {
                    "free": {
                        "type": "string",
                        "pattern": "^[0-9]+ GiB$",
                        "examples": ["24 GiB"],
                        "description": "Free memory.",
                    },
                    "slow": {"type": "boolean", "description": "Slow.", "default": False},
                },
            }
        },
    }


def test_a_shape_may_hold_itself() -> None:
    condition = Shape("a condition", {"of": optional(TEXT, "One thing.")})
    parts = List(Either((TEXT, condition)))
    condition.fields["all"] = optional(parts, "All of these.")  # type: ignore[index]
    schema = json_schema("case.schema.json", "Case", Shape("a file", {"when": required(condition, "When.")}))
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"when": {"all": ["a", {"all": [{"of": "b"}]}]}})
    assert not validator.is_valid({"when": {"all": ["a", {"all": [{"off": "b"}]}]}})


def test_names_of_definitions() -> None:
    assert [definition_name(what) for what in ("a file in shards", "an overlay", "'header'")] == [
        "file-in-shards", "overlay", "header",
    ]  # fmt: skip
