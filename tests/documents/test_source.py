"""YAML with places: plain data only, every value at its line and column, every fault a problem with a place."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gezel_rules.documents.source import MAX_DEPTH, MAX_FILE_BYTES, Node, Text, did_you_mean, load_yaml, parse_yaml
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir, policies_dir

YAML_SOUP = st.lists(
    st.sampled_from(
        ["a", "b: ", "- ", "\n", "  ", "'", '"', "{", "}", "[", "]", ",", ": ", "? ", "| ", ">-", "&x ", "*x", "!!str ",
         "!t ", "<<: ", "---", "...", "#c", "%YAML 1.2", "é", "\t", "\u0007", "\ufeff", "\u2028", "1e9", "~", "null"]
    ),
    max_size=14,
).map("".join)  # fmt: skip
WRITABLE = st.characters(exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"], exclude_characters="\ufeff")
WORD = st.text(WRITABLE, max_size=8)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | WORD | st.sampled_from([1.5, -2e30]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORD.filter(bool), inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str) -> Node:
    return parse_yaml(Text("x.yaml", text))


def problems(text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        parsed(text)
    return [str(problem) for problem in caught.value.problems]


@given(st.text(max_size=60) | YAML_SOUP)
@settings(max_examples=500)
def test_nothing_but_bad_input(text: str) -> None:
    try:
        node = parsed(text)
    except BadInput as error:
        for problem in error.problems:
            assert problem.span is not None
            assert "\n" not in str(problem)
            assert problem.with_caret()
    else:
        json.dumps(node.plain())  # plain data, whatever was written


@given(DATA)
def test_json_means_what_it_says(data: Any) -> None:
    assert parsed(json.dumps(data, ensure_ascii=False)).plain() == data


@given(st.lists(st.sampled_from(["word", "12", "'quo ted'", '"é"', "[x, y]", "{k: v}"]), min_size=1, max_size=6))
def test_every_value_knows_its_place(values: list[str]) -> None:
    text = "# é\n" + "".join(f"key{n}:\n  - {value}\n" for n, value in enumerate(values))
    root = parsed(text)
    lines = text.split("\n")
    for n, value in enumerate(values):
        entry = root.value[f"key{n}"]
        item = entry.value[0]
        assert lines[item.line - 1][item.column - 1 :] == value
        assert text[item.start : item.start + len(value)] == value
        assert (entry.key.line, entry.key.column) == (2 + 2 * n, 1)


SHIPPED = sorted([*policies_dir().rglob("*.yaml"), *catalog_dir().glob("*/*.yaml")])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_without_the_c_parser_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = list(_places(load_yaml(path)))
    monkeypatch.setattr(builtins, "__import__", _without("_ruamel_yaml"))
    assert list(_places(load_yaml(path))) == quick


def _places(node: Node) -> Iterator[tuple[int, int, int, Any]]:
    children = (
        node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    )
    yield node.line, node.column, node.start, None if isinstance(node.value, (dict, list)) else node.value
    for child in children:
        yield from _places(child)


def _without(name: str) -> Any:
    real = builtins.__import__

    def imported(wanted: str, *rest: Any) -> Any:
        if wanted == name:
            raise ImportError(wanted)
        return real(wanted, *rest)

    return imported


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", "Null"), ("true", True), ("True", "True"), ("yes", "yes"),
        ("no", "no"), ("off", "off"), ("12", 12), ("-12", -12), ("+3", 3), ("012", "012"),
        ("0x1f", "0x1f"), ("0o7", "0o7"), ("1_000", "1_000"), ("1.5", 1.5), ("1e3", 1000.0), ("1E-3", 0.001),
        (".5", ".5"),
        ("1.", "1."),
        (".inf", ".inf"), (".nan", ".nan"), ("1e999", "1e999"), ("2026-08-03", "2026-08-03"), ("1.0.0", "1.0.0"),
        ("12:30:00", "12:30:00"),
        ("'12'", "12"), ('"true"', "true"), ("9" * 41, "9" * 41), ("=", "="), ("0", 0), ("-0", 0),
    ],
)  # fmt: skip
def test_scalars(written: str, value: object) -> None:
    found = parsed(f"a: {written}\n").plain()["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1\nb: *x\n", ["x.yaml:1:4: anchors are not allowed: write the value where it is used",
                               "x.yaml:2:4: aliases are not allowed: write the value where it is used"]),
        ("a: !!python/name:os.system x\n", ["x.yaml:1:4: unknown tag 'tag:yaml.org,2002:python/name:os.system'"]),
        ("a: ! x\n", ["x.yaml:1:4: unknown tag '!'"]),
        ("a: 1\nb: 2\na: 3\n", ["x.yaml:3:1: duplicate key 'a' (first on line 1)"]),
        ("1: a\n'1': b\n", ["x.yaml:2:1: duplicate key '1' (first on line 1)"]),
        ("? [a]\n: b\n", ["x.yaml:1:3: a key must be a word"]),
        ("<<: {a: 1}\n", ["x.yaml:1:1: merge keys are not allowed: write the entries where they are used"]),
        ("a: 1\n--- \nb: 2\n", ["x.yaml:2:1: only one YAML document per file"]),
        ("a: 1\n b: 2\n", ["x.yaml:2:3: not valid YAML: mapping values are not allowed in this context"]),
        ("a: [1, 2\n", ["x.yaml:2:1: not valid YAML: did not find expected ',' or ']', "
                        "while parsing a flow sequence (line 1)"]),
        ("a: &x 1\na: 2\nb: [\n", ["x.yaml:1:4: anchors are not allowed: write the value where it is used",
                                   "x.yaml:2:1: duplicate key 'a' (first on line 1)",
                                   "x.yaml:4:1: not valid YAML: did not find expected node content, "
                                   "while parsing a flow node (line 4)"]),
    ],
)  # fmt: skip
def test_what_a_file_may_not_hold(text: str, said: list[str]) -> None:
    assert problems(text) == said


def test_quoted_merge_key_is_a_word() -> None:
    assert parsed("'<<': 1\n").plain() == {"<<": 1}


def test_depth_is_bounded() -> None:
    assert parsed("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert problems("[" * 5000) == [f"x.yaml:1:{MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH} levels"]


def test_many_aliases_do_not_blow_up() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert len(problems(bomb)) > 16


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks(tmp_path: Path, end: str, mark: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes((mark + end.join(["a: 1", "b: 'é'", "c: |", "  one", "  two", ""])).encode())
    root = load_yaml(path, "x.yaml")
    assert root.plain() == {"a": 1, "b": "é", "c": "one\ntwo\n"}
    assert root.value["b"].problem("here").with_caret() == "x.yaml:2:4: here\n    b: 'é'\n       ^^^"
    assert str(root.value["c"].problem_within("here", 4)) == "x.yaml:5:3: here"


def test_the_caret_stays_under_its_character_behind_tabs() -> None:
    root = parsed("a:\t'x'\n")
    assert root.value["a"].problem("here").with_caret() == "x.yaml:1:4: here\n    a:\t'x'\n      \t^^^"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^nowhere\.yaml: no such file or directory$"):
        load_yaml(tmp_path / "nowhere", "nowhere.yaml")
    with pytest.raises(BadInput, match=r"is a directory, not a file$"):
        load_yaml(tmp_path)
    (tmp_path / "big").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(BadInput, match="larger than 4 MiB"):
        load_yaml(tmp_path / "big")
    (tmp_path / "latin").write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(BadInput, match=r"^latin:2:1: not UTF-8 text \(byte 11\)$"):
        load_yaml(tmp_path / "latin", "latin")


def test_did_you_mean() -> None:
    assert did_you_mean("kv.typ", ["kv.type", "window"]) == "; did you mean 'kv.type'?"
    assert did_you_mean("zebra", ["kv.type"]) == ""
