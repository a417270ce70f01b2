"""What a test file beside a policy may hold: what is given, and what is expected of decisions, launches and logs."""

from __future__ import annotations

from gezel_rules.documents.declare import (
    ANYTHING,
    FLAG,
    TEXT,
    Either,
    List,
    Map,
    Shape,
    Text,
    Word,
    optional,
    required,
    whole,
)
from gezel_rules.logs.model import GPU_VERDICTS

NOT_SET, UNKNOWN_WORD = "not set", "unknown"
"""How a file says that nobody gave a value, and that nobody knows it."""
ENDING = "_test.yaml"

GIVEN = Map(ANYTHING)
_GIVEN = (
    "Facts, decisions, answers of functions as `fits(8192, ...): true`, cells of tables as `windows[floor].tokens: 1`. "
    "A value may be 'not set' or 'unknown'. What is nowhere given is not set where it may be (settings, the catalog "
    "entry) and unknown elsewhere; a decision that is not given is decided."
)
CASE = Shape(
    "a case",
    {
        "given": optional(GIVEN, "What is otherwise than above."),
        "each": optional(Map(List(ANYTHING, least=1, noun="value")), "As given, once with each of these values."),
        "expect": required(ANYTHING, "The decision's value. Of a record, the parts that are to be held against it."),
        "rule": optional(TEXT, "The rule that decides."),
        "rejects": optional(Map(TEXT), "Of a search: candidates turned down, in this order, each with the rule."),
    },
    "What one decision makes of given facts. Its key is a sentence that says what is so.",
)
DECISION_TESTS = Shape(
    "the tests of a decision",
    {"given": optional(GIVEN, "What is given in each of its cases.")},
    "Cases by what they show.",
    others=CASE,
)
_LAUNCH_EXPECTED = Shape(
    "'expect'",
    {
        "refused": optional(TEXT, "The word of the refusal; without it, the launch must not be refused."),
        "flags": optional(Map(ANYTHING), "Arguments by name, each with its value; true: bare; not set: left out."),
        "env": optional(Map(ANYTHING), "Variables of the environment the engine gets; not set: left out."),
        "decisions": optional(GIVEN, "Values of decisions."),
        "facts": optional(GIVEN, "Values of facts: what the memory arithmetic makes of the host, for one."),
    },
    "What the launch must be; what is not named may be anything.",
)
LAUNCH = Shape(
    "a launch",
    {
        "model": required(TEXT, "A model of the catalog, by its id."),
        "host": required(TEXT, "A described host of the catalog, by its name."),
        "settings": optional(Map(ANYTHING), "What the operator sets, as in 'window: 32k'."),
        "expect": required(_LAUNCH_EXPECTED, "What the launch must be."),
    },
    "A whole launch: a model of the catalog on a described host.",
)
_LOG_EXPECTED = Shape(
    "'expect'",
    {
        "gpu": optional(Word(GPU_VERDICTS, "verdict"), "The verdict on the GPU."),
        "detail": optional(TEXT, "What the verdict adds, or 'not set'."),
        "failure": optional(TEXT, "The failure class, or 'not set' where nothing failed."),
        "fatal": optional(FLAG, "Whether the failure ended the start."),
        "rule": optional(TEXT, "What decided: the id of a pattern, an exit status, a class or a rule."),
        "gpu_rule": optional(TEXT, "The rule that gave the verdict on the GPU."),
    },
    "What the log must mean; what is not named may be anything.",
)
LOG = Shape(
    "a log",
    {
        "lines": required(Either((TEXT, List(TEXT))), "What the engine wrote."),
        "backend": optional(TEXT, "The backend of the build that wrote it."),
        "engine": optional(Text(), "The version of the engine."),
        "exit": optional(whole(), "The exit status it ended with, as Python gives it."),
        "expect": required(_LOG_EXPECTED, "What it must mean."),
    },
    "An engine's log and what it means.",
)
TESTS = Shape(
    "a test file",
    {
        "tests": required(TEXT, "The policy that is tested: the file beside this one, without .yaml."),
        "given": optional(GIVEN, f"What is given in every case of a decision. {_GIVEN}"),
        "decisions": optional(Map(DECISION_TESTS), "Decisions of the policy, each with its cases."),
        "launches": optional(Map(LAUNCH), "Whole launches, by what they show."),
        "logs": optional(Map(LOG), "Logs, by what they show."),
    },
    "Cases for the policy beside it, as 'gezel-rules policy test' runs them.",
)
