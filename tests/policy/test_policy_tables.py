"""Declared tables: what is declared holds for every row, and what code and rules see of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_set import compile_set, decided, drafts_of

from gezel_rules.cli import main
from gezel_rules.documents.source import Node
from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import policy_paths
from gezel_rules.policy.needs import annotation_of
from gezel_rules.policy.tables import TableDraft
from gezel_rules.record import NamedTuple

DRAFTS = drafts_of(policy_paths(policies_dir()), policies_dir())
NEEDS = LANGUAGES["llama-cpp"]().needs()

TYPES = """
kinds:
  says: Kinds of something.
  columns:
    label: {kind: text, says: its name}
    share: {kind: number, default: 1.0, minimum: 0, maximum: 1, unit: percent}
    words: {kind: list, of: {rows_of: others}, default: []}
    like: {rows_of: others, optional: true}
    size: {words: [small, large], default: small}
  rows:
    a: {label: A, share: 0.5, words: [x], like: y}
    b: {label: B, size: large}
others: {says: More., same_rows_as: more, rows: {x: {}, y: {}}}
more: {says: Patterns., of: {kind: pattern}, rows: {x: "a+", y: "b(c)"}}
steps: {says: An order., columns: {step: {kind: text}, times: {kind: integer, default: 1}}, rows: [{step: one}]}
"""


class Kind(NamedTuple):
    label: str
    share: float
    words: tuple[str, ...]
    like: str | None
    size: str


class Step(NamedTuple):
    times: int
    step: str


# ---------------------------------------------------------------- what is seen of a table


def test_code_reads_rows_as_records(tmp_path: Path) -> None:
    policies = compile_set(tmp_path, "a: {then: 1}", TYPES)
    rows = policies.rows("kinds", Kind)
    assert list(rows) == ["a", "b"]
    assert rows["a"] == Kind("A", 0.5, ("x",), "y", "small")
    assert policies.row("kinds", "b", Kind) == Kind("B", 1.0, (), None, "large")
    assert policies.unlisted("kinds", Kind) == (None, 1.0, (), None, "small")
    assert policies.listed("steps", Step) == (Step(1, "one"),)
    with pytest.raises(KeyError):
        policies.row("kinds", "c", Kind)


def test_rules_see_the_same_rows(tmp_path: Path) -> None:
    trace = decided(
        tmp_path,
        """
share: {then: "kinds['b'].share"}
words: {then: "'x' in kinds['a'].words and 'x' not in kinds['b'].words"}
unset: {then: "kinds['b'].like is none"}
large:
  hit: search
  over: kinds
  rules: [{id: large, when: candidate.size == 'large', then: accept}]
""",
        TYPES,
    )
    assert [trace.value(name) for name in ("share", "words", "unset", "large")] == [1.0, True, True, "b"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("kinds['a'].shares", "no column 'shares'; did you mean 'share'?"),
        ("kinds['a'].size == 'lagre'", "'lagre' is not one of its values; did you mean 'large'?"),
        ("kinds['a'].like == 'z'", "'z' is not one of its values (known: x, y)"),
        ("kinds['a'].label + 1", "must be a number, not text"),
        ("kinds['a'].label is none", "is never none here: text"),
        ("kinds['c'].share", "'c' is not one of its values (known: a, b)"),
    ],
)
def test_rules_are_held_against_the_declaration(tmp_path: Path, expression: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        compile_set(tmp_path, f'x: {{then: "{expression}"}}', TYPES)
    assert [problem.message for problem in caught.value.problems] == [said]


def test_the_unit_of_a_column_is_that_of_what_reads_it(tmp_path: Path) -> None:
    assert compile_set(tmp_path, "a: {then: \"kinds['a'].share\"}", TYPES).decisions["a"].unit == "percent"


# ---------------------------------------------------------------- what is shipped


def test_every_shipped_table_is_declared() -> None:
    assert DRAFTS.problems == []
    assert len(DRAFTS.tables) > 50
    assert [name for name, table in DRAFTS.tables.items() if table.declared is None] == []
    assert [name for name, table in DRAFTS.tables.items() if table.declared and not table.declared.says] == []


def _columns() -> Iterator[tuple[str, str]]:
    for name, table in DRAFTS.tables.items():
        yield from ((name, column) for column in (table.declared.columns if table.declared else {}))


def test_every_column_says_what_it_means() -> None:
    meant = {(name, column): DRAFTS.tables[name].declared.columns[column].says for name, column in _columns()}
    assert [place for place, says in meant.items() if not says] == []


def test_records_and_shipped_tables_have_the_same_columns() -> None:
    """Columns for people, and those that only rules read, are no fields; every other one is."""
    whens = " ".join(str(draft.decision) for draft in DRAFTS.decisions.values())
    for name, need in NEEDS.tables.items():
        if need.record is None:
            continue
        columns = {column: annotation_of(found) for column, found in DRAFTS.tables[name].declared.columns.items()}
        fields = dict(need.record.__annotations__)
        others = columns.keys() - fields.keys() - {"says", "why"}
        assert [column for column in others if f".{column}" not in whens] == [], name
        assert {column: columns[column] for column in fields} == fields, name


def _first_cells(table: TableDraft) -> dict[str, Node]:
    """The first cell of every column that some row has."""
    rows: Any = table.body.value.values() if isinstance(table.body.value, dict) else table.body.value
    found: dict[str, Node] = {}
    for row in rows:
        if isinstance(row.value, dict):
            found = {**row.value, **found}
    return found if table.declared and table.declared.of is None else {}


def test_a_misspelt_column_is_found_in_every_shipped_table(tmp_path: Path) -> None:
    """Each column of each table, once, in the first row that has it: a problem at the very word."""
    tried = 0
    for path in policy_paths(policies_dir()):
        text, copy = path.read_text(), tmp_path / path.relative_to(policies_dir())
        copy.parent.mkdir(parents=True, exist_ok=True)
        for table in drafts_of([path], policies_dir()).tables.values():
            for column, cell in _first_cells(table).items():
                assert cell.key is not None
                start = cell.key.start
                copy.write_text(f"{text[:start]}{column[:-1]}_{text[start + len(column) :]}")
                spans = [problem.span for problem in drafts_of([copy], tmp_path).problems]
                assert (cell.key.line, cell.key.column) in [(span.line, span.column) for span in spans if span], column
                tried += 1
    assert tried > 100


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    return tmp_path / "policies"


def _faults(directory: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (path,) = [path for path in policy_paths(directory) if old in path.read_text()]
    path.write_text(path.read_text().replace(old, new, 1))
    assert main(["policy", "check", str(directory)]) == 2
    return [line for line in capsys.readouterr().out.splitlines()[:-1] if not line.startswith(" ")]


def test_a_misspelt_column_of_an_architecture(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Taken for no column at all, it grew the cache of a 4B model from 2.8 to 17 GiB."""
    (said,) = _faults(copy, "gemma3: {window_every: 6,", "gemma3: {window_evry: 6,", capsys)
    assert said.endswith("table 'architectures' has no column 'window_evry'; did you mean 'window_every'?")


def test_a_backend_that_does_not_exist_in_a_list(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = _faults(copy, "slow_on: [cuda, rocm]", "slow_on: [cudda, rocm]", capsys)
    assert said.endswith("table 'backends' has no row 'cudda'; did you mean 'cuda'?")


def test_a_failure_class_that_does_not_exist(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = _faults(copy, "failures: [cuda-oom,", "failures: [cuda-oom-x,", capsys)
    assert said.endswith("table 'logs.failures' has no row 'cuda-oom-x'; did you mean 'cuda-oom'?")


def test_a_speculative_type_without_a_price(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Taken for one that costs nothing, its second context had no bytes."""
    (said,) = _faults(copy, "      draft-eagle3:  {n_max: 3,", "      draft-eagle4:  {n_max: 3,", capsys)
    assert "nothing speaks of this; did you mean 'draft-eagle3', of which policies/llama-cpp/speculation.yaml:" in said
