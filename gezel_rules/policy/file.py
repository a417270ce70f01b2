"""What a policy file may hold: its tables and its decisions.

What expressions mean, and whether the cells of a table are what its columns say, is checked after the reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.documents import kinds as yaml
from gezel_rules.documents.declare import (
    ANYTHING,
    FLAG,
    TEXT,
    Anything,
    Block,
    Either,
    Kind,
    List,
    Map,
    Number,
    Shape,
    Text,
    Variants,
    Word,
    optional,
    required,
)
from gezel_rules.policy.cells import KINDS
from gezel_rules.policy.head import EVIDENCE, HEAD, ID
from gezel_rules.policy.model import HIT_POLICIES

LEVELS = ("environment", "operator", "machine", "catalog", "gguf", "policy")
VERDICTS = ("accept", "reject")
NAME = Text("a name: lower case words joined by '_' or '.'", pattern=r"[a-z][a-z0-9_]*(?:[.-][a-z0-9_]+)*")
"""Of a decision or a table; one with a '-' cannot be read by an expression."""
JUDGEMENT = {
    "when": optional(
        Anything((yaml.TEXT, yaml.FLAG)),
        "The condition; without one the rule always fires. What is unknown never makes a rule fire.",
    ),
    "then": optional(
        Anything((yaml.TEXT, yaml.INTEGER, yaml.NUMBER, yaml.FLAG, yaml.NOTHING)),
        "The value: an expression, or a number, true, false or none. A word needs quotes inside the text: \"'word'\".",
    ),
    "because": optional(TEXT, "The reason, for people; {expression} is replaced by its value with its unit."),
    "level": optional(
        Word(LEVELS, "level"),
        "The precedence level the rule speaks for; without it, that of the fact or decision it passes on.",
    ),
    "evidence": optional(EVIDENCE, "Where a figure comes from."),
}
RULE = Shape(
    "a rule",
    {
        "id": required(ID, "Its name in traces, once per decision."),
        **JUDGEMENT,
        "then": JUDGEMENT["then"]._replace(required=True),
    },
)
_VERDICT = {"properties": {"then": {"enum": list(VERDICTS)}}}
DECISION = Shape(
    "decision '{}'",
    {
        "says": optional(TEXT, "What the decision answers, for people."),
        "hit": optional(
            Word(HIT_POLICIES, "hit policy"),
            "How rules are combined. first: the first that fires wins. unique: at most one may fire. collect: the "
            "values of all that fire. search: the first candidate of 'over' that a rule accepts before another "
            "rejects it.",
            "first",
        ),
        "over": optional(
            TEXT,
            "Under 'hit: search': the table or list whose rows are tried in order; rules read the row as 'candidate'.",
        ),
        "flag": optional(
            TEXT,
            "The engine argument this decision becomes: true gives the bare flag, nothing leaves it out, anything "
            "else is its value. '*' passes a list of arguments as they are. Two rules stand before its own without "
            "being written: a build that does not know the flag never gets it, and where the operator passes it, it "
            "stands down.",
        ),
        "unit": optional(TEXT, "How people read the value: bytes, tokens, seconds, percent."),
        "rules": optional(List(RULE, least=1, noun="rule"), "The rules, in the order they are tried."),
        **JUDGEMENT,
    },
    one_of=(("rules", "then"), "needs either 'rules' or a single 'then'"),
    editors={
        "if": {"required": ["hit"], "properties": {"hit": {"const": "search"}}},
        "then": {"required": ["over"], "properties": {**_VERDICT["properties"], "rules": {"items": _VERDICT}}},
        "else": {"not": {"required": ["over"]}},
    },
)


def _only_for(kinds: tuple[str, ...], *keys: str) -> dict[str, Any]:
    """For editors: these keys go with columns of these kinds alone."""
    of_these = {"required": ["kind"], "properties": {"kind": {"enum": list(kinds)}}}
    return {"if": of_these, "else": {"not": {"anyOf": [{"required": [key]} for key in keys]}}}


_VALUE = {
    "says": optional(TEXT, "What it means, for people."),
    "kind": optional(
        Word(tuple(KINDS), "kind"),
        "What a cell is. pattern: a regular expression. table: the name of a table. any: a single value of whatever "
        "kind.",
    ),
    "words": optional(List(TEXT, least=1, noun="word"), "The words a cell may be."),
    "rows_of": optional(TEXT, "The table whose rows are the words a cell may be."),
    "unit": optional(TEXT, "How people read the number: bytes, tokens, seconds, percent."),
    "minimum": optional(Number(), "The least a number may be."),
    "maximum": optional(Number(), "The most a number may be."),
    "of": optional(Block("value", ANYTHING.kinds), "Of a list: what it holds."),
}
_LIST = {"required": ["kind"], "properties": {"kind": {"const": "list"}}}
_COLUMN_RULES = {
    "allOf": [
        {"if": _LIST, "then": {"required": ["of"]}},
        _only_for(("list",), "of"),
        _only_for(("integer", "number"), "unit", "minimum", "maximum"),
    ]
}
_ONE_OF = (("kind", "words", "rows_of"), "needs one of 'kind', 'words' and 'rows_of'")
VALUE = Shape("a value", _VALUE, "What a cell may be.", one_of=_ONE_OF, editors=_COLUMN_RULES)
COLUMN = Shape(
    "column '{}'",
    {
        **_VALUE,
        "optional": optional(FLAG, "Whether a row may go without it: none then stands there."),
        "default": optional(ANYTHING, "What stands in a row that does not say otherwise."),
    },
    one_of=_ONE_OF,
    editors={**_COLUMN_RULES, "not": {"required": ["optional", "default"]}},
)
DECLARED_TABLE = Shape(
    "a table",
    {
        "says": required(TEXT, "What the table tells, for people."),
        "columns": optional(Map(Block("column", ANYTHING.kinds)), "The columns of its rows."),
        "of": optional(
            Block("value", ANYTHING.kinds), "What a row (or an item of a list) is, where it has no columns."
        ),
        "same_rows_as": optional(TEXT, "A table that must have exactly the same rows."),
        "rows": required(
            Anything((yaml.MAP, yaml.LIST)),
            "The rows by name, in the order in which they are tried; or a list.",
        ),
    },
    "A table that says what its columns hold; every row is held against that, and gets the defaults.",
    editors={
        "not": {"required": ["columns", "of"]},
        "if": {"required": ["same_rows_as"]},
        "then": {"properties": {"rows": {"type": "object"}}},
    },
)
_ROW = {"type": "object"}
PLAIN_TABLE = Shape(
    "a table",
    {},
    "Rows with columns, or rows of one value each, plain: a missing column is none, and no column is checked.",
    others=ANYTHING,
    editors={"anyOf": [{"additionalProperties": _ROW}, {"additionalProperties": {"not": _ROW}}]},
)
TABLE = Either((
    List(ANYTHING),
    Variants("a table", dict.fromkeys(("rows", "columns", "of"), DECLARED_TABLE), otherwise=PLAIN_TABLE),
))  # fmt: skip
BLOCKS: Mapping[str, Kind] = {"table": TABLE, "column": COLUMN, "value": VALUE}
"""What ``policy.tables`` reads, piece by piece."""

POLICY = Shape(
    "a policy file",
    {
        "policy": required(TEXT, "Where the file is, without .yaml, such as memory/capacity."),
        **HEAD,
        "note": optional(TEXT, "What a maintainer should know before changing anything here."),
        "tables": optional(
            Map(Block("table", ANYTHING.kinds), keys=NAME),
            "Data that rules look up: table['row'].column. Rows keep their order: a search tries them in it.",
        ),
        "decisions": optional(
            Map(DECISION, keys=NAME),
            "Named questions with their rules. A decision may read facts, tables and other decisions; circles are "
            "refused.",
        ),
    },
    "Tables and decisions of one subject. Expressions are checked by 'gezel-rules policy check'; this says their "
    "shape only.",
)
