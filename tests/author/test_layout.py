"""The layout of policy files: the shipped ones have it, and whatever is laid out otherwise comes to the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gezel_rules.author.layout import formatted
from gezel_rules.cli import main
from gezel_rules.documents.node import Text
from gezel_rules.documents.source import parse_yaml
from gezel_rules.engines import registry
from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

SHIPPED = sorted(policies_dir().rglob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(policies_dir()).as_posix())
def test_shipped_files_have_the_layout(path: Path) -> None:
    text = path.read_text()
    assert formatted(path.name, text) == text


def wider(text: str, chance: Random) -> str:
    """Four blanks for each level, or three."""
    times = chance.choice([1.5, 2])
    found = [line.lstrip(" ") for line in text.split("\n")]
    deep = [" " * int((len(line) - len(bare)) * times) for line, bare in zip(text.split("\n"), found, strict=True)]
    dash = "-" + " " * int(2 * times - 1)
    return "\n".join(
        left + (dash + bare[2:] if bare.startswith("- ") else bare) for left, bare in zip(deep, found, strict=True)
    )


def blanks(text: str, chance: Random) -> str:
    return "\n".join(line + " " * chance.choice([0, 0, 1, 3]) for line in text.split("\n"))


def empty_lines(text: str, chance: Random) -> str:
    lines = text.split("\n")
    return "\n".join(line or "\n" * chance.choice([0, 1, 2]) for line in lines[:-1]) + "\n\n"


def crlf(text: str, _: Random) -> str:
    return text.replace("\n", "\r\n")


def loose_rows(text: str, chance: Random) -> str:
    """More blanks than one before brackets."""
    return "\n".join(
        line.replace(": {", ":" + " " * chance.choice([1, 2, 5]) + "{", 1) if line.endswith("}") else line
        for line in text.split("\n")
    )


def other_order(text: str, chance: Random) -> str:
    """The reason of a rule before its value, where each takes one line."""
    lines = text.split("\n")
    for number in range(len(lines) - 1):
        first, second = (line.lstrip() for line in lines[number : number + 2])
        plain = not second.endswith((">-", "|-"))
        if first.startswith("then: ") and second.startswith("because: ") and plain and chance.random() < 0.5:
            lines[number : number + 2] = lines[number + 1], lines[number]
    return "\n".join(lines)


_WAYS: list[Callable[[str, Random], str]] = [wider, blanks, empty_lines, crlf, loose_rows, other_order]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(SHIPPED), st.lists(st.sampled_from(_WAYS), min_size=1, max_size=3, unique=True), st.randoms())
def test_what_is_laid_out_otherwise_comes_to_the_same(
    path: Path, ways: list[Callable[[str, Random], str]], chance: Random
) -> None:
    text = path.read_text()
    before = parse_yaml(Text(path.name, text)).plain()
    other = text
    for way in sorted(ways, key=_WAYS.index):
        tried = way(other, chance)
        with suppress(BadInput):
            if parse_yaml(Text(path.name, tried)).plain() == before:  # not within a text of several lines
                other = tried
    found = formatted(path.name, other)
    assert parse_yaml(Text(path.name, found)).plain() == before
    assert formatted(path.name, found) == found
    assert _comments(found) == _comments(text)
    if loose_rows not in ways and not (wider in ways and ",\n" in text):  # within brackets lines keep their distance
        assert found == text


def _comments(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.split("\n") if line.strip().startswith("#"))


def test_a_set_means_the_same_laid_out_otherwise(tmp_path: Path) -> None:
    family, chance = registry.family("llama-cpp"), Random(1)
    for path in SHIPPED:
        text = other_order(loose_rows(path.read_text(), chance), chance)
        target = tmp_path / "policies" / path.relative_to(policies_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    assert main(["policy", "format", str(tmp_path / "policies")]) == 0
    changed = read_policies(tmp_path / "policies", family, None)
    assert changed.digest == read_policies(policies_dir(), family, None).digest


BEFORE = """\
# yaml-language-server: $schema=x
version: 1.0.0
policy: a/b{blanks}
# The question.
summary: >-
  What it answers,
  and why.


decisions:
    a.b:
        rules:
        # the first
        - because: it is so
          # when it holds
          when: >-
              host.cpus > 1
              and host.unified  # a text
          id: one
          then: 1

        -   id: two   # trailing
            then: 2
            # about its end
    # allow overlap: they are alike
    a.c: {then: 1, says: as it is written}
tables:
  t:
    rows:
      a: {x: 1,  y: [1, 2]}
      longer: {x: 100, y: []}    # why
      b: {}
""".replace("{blanks}", "   ")
AFTER = """\
# yaml-language-server: $schema=x
policy: a/b
version: 1.0.0
# The question.
summary: >-
  What it answers,
  and why.
tables:
  t:
    rows:
      a:      {x: 1, y: [1, 2]}
      longer: {x: 100, y: []}  # why
      b:      {}

decisions:
  a.b:
    rules:
      # the first
      - id: one
        # when it holds
        when: >-
          host.cpus > 1
          and host.unified  # a text
        then: 1
        because: it is so

      - id: two   # trailing
        then: 2
        # about its end
  # allow overlap: they are alike
  a.c: {then: 1, says: as it is written}
"""


def test_what_moves_and_what_stays() -> None:
    assert formatted("x.yaml", BEFORE) == AFTER
    assert formatted("x.yaml", AFTER) == AFTER


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a: |\n  x\n\n\n  y\nb: 1\n\n", "a: |\n  x\n\n\n  y\nb: 1\n"),
        ("a: |\n  x \n   y\n", "a: |\n  x \n   y\n"),
        ("a: |2\n    x\nb:\n   c: 1\n", "a: |2\n    x\nb:\n  c: 1\n"),
        ("a: |+\n  x\n\n\nb: 1\n", "a: |+\n  x\n\n\nb: 1\n"),
        ("a:\n    - - 1\n      -   2\n    -\n        b: 1\n", "a:\n  - - 1\n    - 2\n  -\n    b: 1\n"),
        ('a:\n      "one\n\n\n       two"\n', 'a:\n  "one\n\n\n  two"\n'),
        ("a:\n    [1,\n     2]   \n", "a:\n  [1,\n   2]\n"),
        ("a:\n  -    # nothing\n  - 1\n", "a:\n  - # nothing\n  - 1\n"),
        ("a: 1", "a: 1\n"),
        ("", "\n"),
        ("a:\n- 1\n# end\n", "a:\n  - 1\n  # end\n"),
    ],
)
def test_what_is_hard_to_lay_out(text: str, after: str) -> None:
    assert formatted("x.yaml", text) == after


@pytest.mark.parametrize("text", ["a: [", "? a\n: 1\n", "a: b\x85\n", "a: |\n  x"])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="x"):
        formatted("x.yaml", text)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(AFTER)
    (tmp_path / "x.yaml").write_bytes(BEFORE.encode())
    assert main(["policy", "format", "--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"would change: {tmp_path}/x.yaml\n2 files: 1 to format\n"
    assert (tmp_path / "x.yaml").read_text() == BEFORE
    bad.write_text("a: [")
    assert main(["policy", "format", str(tmp_path)]) == 2
    assert f"{bad}:2:" in capsys.readouterr().err
    assert (tmp_path / "x.yaml").read_text() == BEFORE, "nothing is written where a file is at fault"
    bad.unlink()
    assert main(["policy", "format", str(tmp_path), str(good)]) == 0
    assert (tmp_path / "x.yaml").read_text() == AFTER
    assert main(["policy", "format", "--check", str(tmp_path)]) == 0
    assert main(["policy", "format", str(tmp_path / "none.yaml")]) == 2
