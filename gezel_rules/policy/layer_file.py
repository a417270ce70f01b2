"""What a layer may hold: what one site, or one machine, changes in the policies without a copy of them."""

from __future__ import annotations

from gezel_rules.documents.declare import ANYTHING, TEXT, List, Map, Shape, optional
from gezel_rules.policy.file import JUDGEMENT, NAME, RULE
from gezel_rules.policy.head import HEAD, ID

CHANGED_RULE = Shape(
    "a rule",
    {
        **RULE.fields,
        "then": JUDGEMENT["then"],
        "before": optional(ID, "The id of the rule that this one stands before."),
        "after": optional(ID, "The id of the rule that this one stands behind."),
    },
    "A rule whose id is there already gets the keys that stand here, and moves where 'before' or 'after' says so. Any "
    "other is added, and must say its place.",
)
CHANGED_DECISION = Shape(
    "the change of '{}'",
    {
        "rules": optional(List(CHANGED_RULE, least=1, noun="rule"), "Rules to change, and rules to add."),
        "without": optional(List(ID, least=1, noun="id"), "Ids of rules that do not hold here."),
        **JUDGEMENT,
    },
    "Of a decision with rules: 'rules' and 'without'. Of one with a single 'then': the keys to replace.",
)
CHANGED_TABLE = Shape(
    "the change of '{}'",
    {
        "rows": optional(
            ANYTHING,
            "Rows by name: of a row that is there, the columns that stand here are replaced; any other is added at the "
            "end. Of a table that is a list: the whole list.",
        ),
        "without": optional(List(TEXT, least=1, noun="row"), "Rows that are not there here."),
    },
)
LAYER = Shape(
    "a layer",
    {
        **HEAD,
        "tables": optional(Map(CHANGED_TABLE, keys=NAME), "Table → what is different in it here."),
        "decisions": optional(Map(CHANGED_DECISION, keys=NAME), "Decision → what is different in it here."),
    },
    "Changes to policies, laid over them in order: one number, one rule. What is not named stands.",
)
