"""What two sets differ in: what can matter to a launch, with its place; and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_set import FAMILY, TABLES, languages, policy_text, write_set

from gezel_rules.author.edits import Edit, Place, Sided, edits
from gezel_rules.policy.seal import compile_policies

DECISIONS = """
kv.type:
  rules:
    - id: layers
      when: model.layers > 40 and known(gpu.free)
      then: "'q8_0'"
      because: many layers
    - id: moe
      when: model.moe
      then: "'q4_0'"
    - id: else
      then: "'f16'"
kv.found:
  hit: search
  over: kv_types
  rules:
    - {id: coarse, when: not candidate.automatic, then: reject}
    - {id: fine, then: accept}
flag.ctx-size: {flag: --ctx-size, then: 1024}
flag.fit: {flag: --fit, then: "'off'"}
"""
FILE = "policies/kv/kv.yaml"


@pytest.fixture
def side(tmp_path: Path):
    """A set of one file, in a directory of its own."""

    def make(name: str, decisions: str = DECISIONS, tables: str = TABLES, comment: str = "") -> Sided:
        directory = write_set(tmp_path / name, {"kv/kv": policy_text("kv/kv", decisions, tables) + comment})
        return Sided(compile_policies(directory, FAMILY, languages()), directory)

    return make


def line(text: str, word: str) -> int:
    """The line of a word in the file that holds the text of decisions or tables."""
    whole = policy_text("kv/kv", *((DECISIONS, text) if text is not DECISIONS else (text, TABLES)))
    return whole.partition(word)[0].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("because: many layers", "because: there are many"),
        ("model.layers > 40 and known(gpu.free)", "(model.layers > 40)   and (known(gpu.free))"),
        ("- id: moe", "- id: experts"),
        ("      because: many layers\n", "      because: many layers\n      evidence: {note: measured}\n"),
        ("kv.type:\n", "kv.type:\n  says: The precision.\n"),
    ],
    ids=["words", "brackets", "id", "evidence", "meaning"],
)
def test_what_decides_nothing_is_no_edit(side, old, new):
    assert DECISIONS.count(old) == 1
    assert edits(side("a"), side("b", DECISIONS.replace(old, new))) == []


def test_comments_are_no_edit(side):
    assert edits(side("a"), side("b", comment="# a comment\n")) == []


def changed(side, old: str, new: str) -> list[tuple[str, str, str, str]]:
    assert DECISIONS.count(old) == 1
    found = edits(side("a"), side("b", DECISIONS.replace(old, new)))
    return [(edit.kind, edit.name, edit.part, edit.what) for edit in found]


def test_edits_of_rules(side):
    assert changed(side, "> 40", "> 41") == [("rule", "kv.type", "layers", "changed")]
    assert changed(side, "'q4_0'", "'q8_0'") == [("rule", "kv.type", "moe", "changed")]
    rule = "    - id: moe\n      when: model.moe\n      then: \"'q4_0'\"\n"
    assert changed(side, rule, "") == [("rule", "kv.type", "moe", "removed")]
    assert changed(side, rule, rule + rule.replace("moe\n      when: ", "more\n      when: not ")) == [
        ("rule", "kv.type", "more", "added")
    ]
    assert changed(side, "{id: coarse, when: not", "{id: coarse, when:") == [("rule", "kv.found", "coarse", "changed")]


def test_rules_that_stand_elsewhere(side):
    first, second = DECISIONS.index("    - id: layers"), DECISIONS.index("    - id: moe")
    last = DECISIONS.index("    - id: else")
    swapped = DECISIONS[:first] + DECISIONS[second:last] + DECISIONS[first:second] + DECISIONS[last:]
    found = edits(side("a"), side("b", swapped))
    assert [(edit.name, edit.part) for edit in found] == [("kv.type", "layers"), ("kv.type", "moe")]


def test_edits_of_decisions_and_of_their_order(side):
    assert changed(side, "over: kv_types", "over: kv_types\n  unit: bytes") == []
    assert changed(side, "flag.fit: {flag: --fit, then: \"'off'\"}", "") == [("decision", "flag.fit", "", "removed")]
    size, fit = "flag.ctx-size: {flag: --ctx-size, then: 1024}\n", "flag.fit: {flag: --fit, then: \"'off'\"}\n"
    assert changed(side, size + fit, fit + size) == [("order of flags", "argv", "", "added")]


def test_edits_of_tables_have_the_place_of_their_row(side):
    tables = TABLES.replace("bytes: 34", "bytes: 36")
    (edit,) = edits(side("a"), side("b", tables=tables))
    place = Place(FILE, line(TABLES, "q8_0"))
    assert edit == Edit("table", "kv_types", "q8_0", place, place)
    more = TABLES + "  q5_0: {bytes: 22, automatic: false}\n"
    (edit,) = edits(side("a"), side("c", tables=more))
    assert (edit.part, edit.what, edit.before) == ("q5_0", "added", None)
    assert str(edit.after) == f"{FILE}:{line(more, 'q5_0')}"


def test_the_order_of_rows_counts(side):
    rows = TABLES.strip().splitlines()
    found = edits(side("a"), side("b", tables="\n".join([rows[0], rows[2], rows[1], rows[3]])))
    assert [(edit.kind, edit.name, edit.part) for edit in found] == [("table", "kv_types", "")]
