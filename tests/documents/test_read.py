"""Reading by declaration: what fits is kept with its place, everything else is a problem, all at once."""

from __future__ import annotations

import pytest

from gezel_rules.documents.declare import (
    FLAG,
    TEXT,
    WORDING,
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
from gezel_rules.documents.read import Value, in_file_order, read, unknown_names
from gezel_rules.documents.source import Node, parse_yaml
from gezel_rules.documents.source import Text as Source
from gezel_rules.errors import Problem

TAG = Text("a tag", ("Q4_K_M", "F16"), pattern="[A-Z][A-Z0-9_]*")


def node(text: str) -> Node:
    return parse_yaml(Source("x.yaml", text))


def taken(kind: Kind, text: str) -> tuple[Value | None, list[str]]:
    """What becomes of ``key: TEXT`` where ``key`` is of the kind."""
    problems: list[Problem] = []
    got = read(node(f"key: {text}"), Shape("a case", {"key": required(kind, "A key.")}), problems)
    return got.value.get("key"), [str(problem).removeprefix("x.yaml:") for problem in problems]


def test_everything_wrong_is_said_at_once_and_the_rest_is_kept() -> None:
    entry = Shape("an entry", {
        "name": required(TEXT, "A name."), "size": required(Number(), "A size."), "place": required(TEXT, "A place."),
        "kind": optional(Either((TEXT, FLAG)), "A kind."),
    })  # fmt: skip
    problems: list[Problem] = []
    got = read(node("name: 3\nsise: 1\nsize: 4\nkind:\n  - x\n"), entry, problems)
    assert {key: child.value for key, child in got.value.items()} == {"size": 4}
    assert [str(problem) for problem in in_file_order(problems)] == [
        "x.yaml:1:1: an entry has no 'place'",
        "x.yaml:1:7: 'name' must be text, not whole number",
        "x.yaml:2:1: an entry has no key 'sise'; did you mean 'size'?",
        "x.yaml:5:3: 'kind' must be text or true or false, not list",
    ]


@pytest.mark.parametrize(("text", "kind"), [("", "nothing"), ("[]", "list"), ("text", "text"), ("3", "whole number")])
def test_what_is_no_mapping(text: str, kind: str) -> None:
    problems: list[Problem] = []
    assert read(node(text), Shape("an entry", {"name": required(TEXT, "A name.")}), problems).value == {}
    assert [problem.message for problem in problems] == [f"an entry must be a mapping, not {kind}"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Shape("an entry", {}), r"an entry has no key '\x1b[31mred'"),
        (Shape("an entry", {}, others=FLAG), r"'\x1b[31mred' must be true or false, not whole number"),
        (Map(FLAG), r"'\x1b[31mred' must be true or false, not whole number"),
        (Map(FLAG, keys=TAG), r"'\x1b[31mred' is not a tag such as Q4_K_M or F16"),
        (Map(Shape("row '{}'", {})), r"row '\x1b[31mred' must be a mapping, not whole number"),
    ],
)
def test_a_key_cannot_drive_the_terminal(kind: Kind, said: str) -> None:
    assert [problem.split(": ", 1)[1] for problem in taken(kind, '{"\\e[31mred": 1}')[1]] == [said]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (TAG, "q4", "'key' must be a tag such as Q4_K_M or F16"),
        (TAG, "3", "'key' must be text, not whole number"),
        (WORDING, '""', "'key' must not be empty"),
        (Text(least=4), "abc", "'key' must have at least 4 characters"),
        (Text(fault=lambda text: "is bad" * (text == "x"), noun="name"), "x", "name 'x' is bad"),
        (Text(fault=lambda text: "is bad", otherwise="leave it out"), "x", "'key' is bad; leave it out"),
        (Word(("model", "draft"), "role"), "modle", "unknown role 'modle'; did you mean 'model'?"),
        (Word(("model", "draft"), "role"), "x", "unknown role 'x'; it is one of: model, draft"),
        (whole(least=1), "0", "'key' must be at least 1"),
        (whole(above=0, unit="bytes", otherwise="leave it out"), "0", "'key' must be more than 0 bytes; leave it out"),
        (whole(least=1), "1.5", "'key' must be whole number, not number"),
        (whole(), "true", "'key' must be whole number, not true or false"),
        (Number(least=0, most=10), "10.5", "'key' must be from 0 to 10"),
        (Number(most=1), "2", "'key' must be at most 1"),
        (FLAG, "1", "'key' must be true or false, not whole number"),
        (Anything(("text", "nothing")), "[]", "'key' must be text or nothing, not list"),
        (Block("header"), "x", "'key' must be mapping, not text"),
        (List(TAG, least=2), "[Q4]", "'key' must name at least two"),
        (List(TEXT, least=1, noun="tag", otherwise="or none"), "[]", "'key' must name at least one tag; or none"),
        (Map(FLAG), "{a: 1}", "'a' must be true or false, not whole number"),
        (Map(FLAG, keys=TAG), "{a: true}", "'a' is not a tag such as Q4_K_M or F16"),
        (Map(Shape("a row", {})), "{a: 1}", "a row must be a mapping, not whole number"),
        (Map(Shape("row '{}'", {})), "{a: 1}", "row 'a' must be a mapping, not whole number"),
        (Block("table", ("list", "mapping")), "x", "'key' must be list or mapping, not text"),
        (Text("a figure", ("1",), means=lambda text: {"one": 1}.get(text)), "two", "'key' must be a figure such as 1"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_and_left_out(kind: Kind, text: str, said: str) -> None:
    value, problems = taken(kind, text)
    assert [problem.split(": ", 1)[1] for problem in problems] == [said]
    assert value is None or (not isinstance(kind, (Text, Word, Number, Anything, Block)) and len(value.value) < 2)


def test_every_item_of_a_list_is_judged_at_its_place() -> None:
    value, problems = taken(List(TAG), "[Q4, q5, 3, Q6]")
    assert value is not None and [item.value for item in value.value] == ["Q4", "Q6"]
    assert problems == [
        "1:11: 'q5' is not a tag such as Q4_K_M or F16",
        "1:15: 'key': expected text, not whole number",
    ]


FILES = List(Shape("a file", {"role": required(Word(("model", "draft"), "role"), "What it is.")}),
             one_with=("role", "model"))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{role: draft}]", ["1:6: 'key' has none of role model"]),
        ("[]", ["1:6: 'key' has none of role model"]),
        ("[{role: draft}, {role: model}]", []),
        ("[{role: modle}]", ["1:14: unknown role 'modle'; did you mean 'model'?"]),
    ],
)
def test_one_item_may_have_to_be_there(text: str, said: list[str]) -> None:
    assert taken(FILES, text)[1] == said


SOURCE = Variants("a source", {
    "hub": Shape("a hub source", {"hub": required(TEXT, "The repository."), "file": required(TEXT, "The file.")}),
    "url": Shape("a URL", {"url": required(TEXT, "The URL.")}),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{url: x}", []),
        ("{hub: x}", ["1:6: a hub source has no 'file'"]),
        ("{hub: x, file: y, url: z}", ["1:24: a hub source has no key 'url'"]),
        ("{ftp: x}", ["1:6: a source needs one of: hub, url"]),
    ],
)
def test_a_key_tells_which_shape_is_meant(text: str, said: list[str]) -> None:
    assert taken(SOURCE, text)[1] == said
    plain = SOURCE._replace(otherwise=SOURCE.by["url"])
    assert taken(plain, "{ftp: x}")[1] == ["1:7: a URL has no key 'ftp'; 'url' is missing"]


@pytest.mark.parametrize(("text", "fits"), [("{a: 1}", True), ("{b: 1}", True), ("{}", False), ("{a: 1, b: 2}", False)])
def test_exactly_one_of_some_keys(text: str, fits: bool) -> None:
    one = Shape("a draft", {"a": optional(whole(), "One."), "b": optional(whole(), "Other.")},
                one_of=(("a", "b"), "needs either 'a' or 'b'"))  # fmt: skip
    value, problems = taken(one, text)
    assert value is not None
    assert problems == ([] if fits else ["1:6: a draft needs either 'a' or 'b'"])


def test_a_text_may_stand_for_something_else() -> None:
    value, problems = taken(Text(means=str.lower), "ABC")
    assert value is not None and (value.value, value.node.value, value.place) == ("abc", "ABC", "x.yaml:1")
    assert problems == []


def test_a_shape_is_complete_when_all_it_requires_is_there_and_fits() -> None:
    shape = Shape("an entry", {"id": required(TAG, "A tag."), "note": optional(TEXT, "A note.")})
    assert [read(node(text), shape, []).complete for text in ("id: Q4", "{}", "id: q4", "{id: Q4, note: 1}")] == [
        True, False, False, True,
    ]  # fmt: skip


def test_what_is_left_out_has_its_default() -> None:
    shape = Shape("an entry", {"engine": optional(TEXT, "Whose.", default="some"), "note": optional(TEXT, "A note.")})
    got = read(node("{}"), shape, [])
    assert (got.at("engine"), got.at("note")) == ("some", None)
    assert read(node("engine: other"), shape, []).at("engine") == "other"


def test_names_are_held_against_what_there_is() -> None:
    backend = Name("backends", "backend")
    spec = Shape("spec", {"type": optional(Name("types", "type"), "A type."), "on": optional(List(backend), "Where.")})
    shape = Shape("an entry", {"spec": optional(spec, "It."), "by": optional(Map(spec, keys=backend), "Overlays.")})
    problems: list[Problem] = []
    text = "spec: {type: mtp, on: [cuda, cudda]}\nby:\n  rocmm: {type: mpt}\n  rocm: {type: strange}\n"
    got = read(node(text), shape, problems)
    assert problems == []
    assert [
        str(problem) for problem in unknown_names(got, {"backends": ["cuda", "rocm"], "types": ["mtp", "none"]})
    ] == [
        "x.yaml:1:30: unknown backend 'cudda'; did you mean 'cuda'?",
        "x.yaml:3:3: unknown backend 'rocmm'; did you mean 'rocm'?",
        "x.yaml:3:17: unknown type 'mpt'; did you mean 'mtp'?",
        "x.yaml:4:16: unknown type 'strange'; it is one of: mtp, none",
    ]
    assert [problem.message for problem in unknown_names(got, {"types": [str(n) for n in range(20)]})] == [
        "unknown type 'mtp'", "unknown type 'mpt'", "unknown type 'strange'",
    ]  # fmt: skip
