"""Patterns of policies: one language, nothing in it that runs away, and a fault is said with its place."""

from __future__ import annotations

import ast
import re
import time
from pathlib import Path

import pytest
from exploding_patterns import EXPLODING

from gezel_rules import regex
from gezel_rules.regex import LENGTH, STEPS, Regex, faults

CODE = Path(regex.__file__).parent


@pytest.mark.parametrize("pattern", EXPLODING)
def test_what_explodes_elsewhere_grows_with_the_text_here(pattern: str) -> None:
    """Four times the text takes about four times as long; 16, since RE2 may change its way of working once."""
    assert faults(pattern) == []
    expression = Regex(pattern)

    def seconds(length: int) -> float:
        texts = [f"{piece * (length // len(piece))}\x00" for piece in ("a", "x", "ab", " ", "a1,", "word ", "é")]
        found = []
        for _ in range(5):
            begun = time.thread_time()
            for text in texts:
                expression.search(text)
            found.append(time.thread_time() - begun)
        return min(found)

    assert seconds(32 << 10) < 16 * seconds(8 << 10) + 0.001


@pytest.mark.parametrize(
    ("pattern", "at", "said"),
    [
        (r"a(?=b)", 1, "invalid perl operator '(?='; there is no looking ahead or behind: write what may stand there"),
        (r"\(?!a(?!b)", 5, "'(?!'; there is no looking ahead or behind"),
        (r"(?<=a)b", 0, "there is no looking ahead or behind"),
        (r"(?<!a)b", 0, "there is no looking ahead or behind"),
        (r"(\w)x\1", 5, r"invalid escape sequence '\1'"),
        (r"(?P<n>a)(?P=n)", 8, "nothing refers back to a group"),
        (r"a(?>b)", 1, "leave it out"),
        (r"ba*+", 2, "leave it out"),
        (r"a(?#b)", 1, "put it into a comment of the file"),
        (r"a\Z", 1, r"write \z"),
        (r"a\u203a", 1, r"write \x{…} or the character itself"),
        (r"a{,5}", 1, "write {0,5}"),
        (r"(?P<n>a)|(?P<n>b)", 9, "a second group is called 'n'"),
        (r"x(a(b)", 1, "missing )"),
        (r"\([(](a", 5, "missing )"),
        (r"x[a", 1, "missing ]"),
        (r"a{2000}", 1, "invalid repetition size '{2000}'"),
        (r"(a{100}){100}", 8, "invalid repetition size '{100}'"),
        ("a.{999}", 0, f"steps, at most {STEPS:,}: write + or * for a long repeat"),
        ("(" * 100_000, 0, f"has 100,000 characters, at most {LENGTH:,}"),
        ("a\ud800", 1, "half a character"),
    ],
)
def test_what_is_not_in_the_language_is_said_with_its_place(pattern: str, at: int, said: str) -> None:
    ((message, offset),) = faults(pattern)
    assert said in message
    assert offset == at


def test_groups_that_must_be_named() -> None:
    assert faults(r"on (?P<host>\S+)", ("host", "port")) == [("must name (?P<port>…)", 0)]
    assert faults(r"on (?P<host>\S+):(?P<port>\d+)", ("host", "port")) == []


def test_an_expression_reads_any_text() -> None:
    found = Regex(r"(?P<what>\w+) é(?P<then>x)?").search("€ one é")
    assert found
    assert found.groupdict() == {"what": "one", "then": None}
    assert found.end() == 7
    assert Regex("a").search("\ud800a")
    assert Regex("A", ignore_case=True).match("abc")
    assert Regex("A").match("abc") is None
    assert Regex(r"\d+").remove("1a22b") == "ab"


def test_no_other_module_compiles_what_a_policy_says() -> None:
    """Every expression that another module gives to ``re`` is written in that module, or quoted by ``re.escape``.

    ``documents.read`` has the patterns of declarations, which are Python; ``memory.offload`` those of an operator.
    """
    elsewhere = {"documents/read.py", "engines/llama_cpp/memory/offload.py", "gguf/strings.py"}
    found = {
        path.relative_to(CODE).as_posix()
        for path in CODE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and _is_re(call.func) and not _written_here(call.args[0], path)
    }
    assert found == elsewhere


def _is_re(function: ast.expr) -> bool:
    known = ("compile", "match", "search", "fullmatch", "sub", "split", "findall", "finditer")
    return isinstance(function, ast.Attribute) and ast.unparse(function) in {f"re.{name}" for name in known}


def _written_here(pattern: ast.expr, path: Path) -> bool:
    if isinstance(pattern, ast.Name):
        return bool(re.search(rf"^{pattern.id} = |import .*\b{pattern.id}\b", path.read_text(), re.MULTILINE))
    return isinstance(pattern, ast.Constant | ast.JoinedStr) or ast.unparse(pattern).startswith("re.escape(")
