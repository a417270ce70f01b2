"""What a log policy file may hold: how lines are unwrapped, what they are evidence of, which verdict follows."""

from __future__ import annotations

from gezel_rules.documents.declare import (
    FLAG,
    TEXT,
    Either,
    List,
    Map,
    Shape,
    Text,
    Variants,
    Word,
    optional,
    required,
    whole,
)
from gezel_rules.logs.model import GPU_VERDICTS, range_of
from gezel_rules.policy.head import EVIDENCE, HEAD, ID

SHORTEST = 4  # characters of a literal: shorter ones stand in every other line
LEVELS = {"debug": "D", "info": "I", "warning": "W", "error": "E"}


def _literal_fault(text: str) -> str:
    if len(text) < SHORTEST:
        return f"must have at least {SHORTEST} characters: literals are looked for first"
    if not text.isascii() or '"' in text or "\\" in text:
        return "may hold no double quotes, backslashes or non-ASCII: JSON logs write them otherwise"
    return ""


LITERAL = Text(least=SHORTEST, fault=_literal_fault)
EXPRESSION = Text(least=1)
TEXTS = List(TEXT)
IDS = List(ID)
VERDICT = Word(GPU_VERDICTS, "verdict")
VERSIONS = Text("a range", (">=0.4", "<b5400", ">=b4000, <0.1.0"), means=range_of)

_ID = {"id": required(ID, "Its name in reports; all kinds of entries share one space.")}
_SAYS = {"says": optional(TEXT, "What it means, for people.")}
_BECAUSE = {"because": optional(TEXT, "Why, for those who maintain it.")}
_LITERALS = required(
    Either((LITERAL, List(LITERAL, least=1, noun="literal"))),
    "Literals one of which stands in every match; they are looked for before any expression.",
)
_DETAIL = {"detail": optional(TEXT, "What a report adds; {part} stands for a named group of the expression.")}

_condition = {"backend": optional(TEXT, "The backend the caller named.")}
PART = Either((TEXT, Shape("a condition", _condition, "A condition within a condition, or a backend.")))
"""The id of a pattern, an exit or a group; or more conditions."""
CONDITION = {
    "all": optional(List(PART), "Evidence that must be there, every piece of it."),
    "any": optional(List(PART), "Evidence of which one piece must be there."),
    "none": optional(List(PART), "Evidence that must not be there."),
}
_condition |= CONDITION

BARE = Shape(
    "an entry",
    {
        **_ID,
        **_SAYS,
        "match": required(EXPRESSION, "The expression."),
        "example": required(TEXT, "A text it matches."),
    },
)
PREFIX = Shape(
    "a prefix",
    {
        **_ID,
        **_SAYS,
        "match": required(
            EXPRESSION,
            "Named groups: 'level' gives the level of the line; 'words' is where the engine's words begin, for an "
            "expression that looks further than the prefix.",
        ),
        "but_not": optional(EXPRESSION, "What such a line must not hold besides."),
        "stamp": optional(FLAG, "The engine itself writes it on each of its lines."),
        "example": required(TEXT, "A line that begins with it."),
    },
)
OBJECTS = Shape(
    "objects",
    {
        "text": required(TEXTS, "Keys that hold the text."),
        "level": optional(TEXTS, "Keys that hold its level."),
    },
)
QUOTE = Shape(
    "a quotation",
    {
        **_ID,
        **_SAYS,
        "needs": _LITERALS,
        "opens": required(EXPRESSION, "How the line looks that opens one."),
        "but_not": optional(EXPRESSION, "What such a line must not hold besides: the end of what it quotes."),
        "closes": optional(EXPRESSION, "How the last line of the quotation ends."),
        "then": required(EXPRESSION, "How the engine's next line looks."),
        "lines": required(whole(least=1), "How far the end may be."),
        "example": required(TEXT, "A line that opens one."),
    },
)
PATTERN = Shape(
    "a pattern",
    {
        **_ID,
        **_SAYS,
        "gpu": optional(VERDICT, "The verdict it speaks for; rules decide."),
        "failure": optional(ID, "The failure class it supports."),
        "needs": _LITERALS,
        "match": required(EXPRESSION, "Searched in the unwrapped line; ^ is its start."),
        "but_not": optional(EXPRESSION, "What such a line must not hold besides."),
        **_DETAIL,
        "backends": optional(TEXTS, "Whom it speaks of, when the caller names the build's backend."),
        "engine": optional(VERSIONS, "Versions that print it."),
        "levels": optional(List(Word(tuple(LEVELS), "level")), "Levels it is printed at; without them any."),
        "raw": optional(FLAG, "Printed without the engine's own stamp."),
        "fatal": optional(FLAG, "Whether this line ends the start; without it, as its class."),
        "until": optional(TEXTS, "Patterns that take it back when they come later."),
        "matches": required(List(TEXT, least=1, noun="line"), "Lines it must match."),
        "ignores": optional(TEXTS, "Lines it must not match."),
        **_BECAUSE,
        "evidence": optional(Either((TEXT, EVIDENCE)), "Where the lines come from."),
    },
)
EXIT = Shape(
    "an exit",
    {
        **_ID,
        "status": required(
            List(whole()),
            "Statuses, as Python and a shell give them; of Windows' codes the signed or the unsigned form.",
        ),
        "failure": optional(ID, "The failure class it supports; without one the process was asked to end."),
        **_BECAUSE,
    },
)
RULE = Shape(
    "a rule",
    {
        **_ID,
        "gpu": required(VERDICT, "The verdict."),
        **CONDITION,
        **_DETAIL,
        "advice": optional(TEXT, "What a person can do."),
        **_BECAUSE,
    },
)
_CLASS = Shape(
    "a failure class",
    {
        **_ID,
        "says": required(TEXT, "What it means, to follow a colon."),
        "advice": required(TEXT, "What a person can do."),
        "fatal": optional(FLAG, "It ends the start; false: the engine goes on.", True),
        **CONDITION,
        **_BECAUSE,
    },
)
_MENTION = Shape("a failure class", {**_ID}, "A class that is written elsewhere, and is tried here.")
FAILURE = Variants("a failure class", {"says": _CLASS, "advice": _CLASS, "id": _MENTION}, otherwise=_CLASS)
SECTIONS = {
    "words": optional(Map(TEXT), "Named pieces of expressions, used as {{name}}."),
    "backends": optional(TEXTS, "Backend names the caller may give beside the rows of the table 'backends'."),
    "without_gpu": optional(TEXTS, "Those of them of which nobody expects a GPU in use."),
    "strip": optional(List(BARE), "Removed anywhere in a line."),
    "prefixes": optional(List(PREFIX), "Removed at the start of a line, again and again, in this order of preference."),
    "objects": optional(OBJECTS, "Keys of JSON lines that hold the text, and the level."),
    "quotes": optional(
        List(QUOTE), "Messages that print somebody else's text over several lines: no evidence within them counts."
    ),
    "ignored": optional(List(BARE), "Lines that only repeat names and paths."),
    "patterns": optional(List(PATTERN), "Lines, and what they are evidence of."),
    "exits": optional(List(EXIT), "Exit statuses that are evidence in themselves."),
    "groups": optional(Map(TEXTS), "One name for several pieces of evidence."),
    "rules": optional(List(RULE), "Verdicts on the GPU; the first whose condition holds."),
    "failures": optional(
        List(FAILURE),
        "Failure classes; the first that has evidence. Without a condition any pattern or exit that supports it will "
        "do.",
    ),
    "settled_by": optional(TEXTS, "Patterns after which a fatal failure printed before was not final."),
}
LOG_POLICY = Shape(
    "a log policy file",
    {
        "policy": required(
            Text(pattern=r"([a-z][a-z0-9_-]*/)*logs/[a-z][a-z0-9-]*"), "Where the file is, without .yaml."
        ),
        **HEAD,
        **SECTIONS,
    },
    "How an engine's log lines are unwrapped, what they are evidence of, and which verdict follows.",
)
