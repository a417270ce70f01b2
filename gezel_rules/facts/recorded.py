"""What the record of a launch holds (``schemas/record.schema.json``), and facts as it keeps them.

A record is written in steps: before the engine starts all that was known and decided, then what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gezel_rules.documents import kinds as yaml
from gezel_rules.documents.declare import (
    ANYTHING,
    FLAG,
    TEXT,
    WORDING,
    Anything,
    List,
    Map,
    Number,
    Shape,
    optional,
    required,
    whole,
)
from gezel_rules.facts.fact import UNKNOWN, Fact

FORMAT = 2
"""Of the records written now. Those of format 1 had no number, and less in them; ``planner.record`` reads both."""

_OR_NOTHING = Anything((yaml.TEXT, yaml.NOTHING), "text or nothing")
_STATUS = Anything((yaml.INTEGER, yaml.NOTHING), "an exit status or nothing")
_SECONDS = Number(least=0, most=1 << 40, unit="seconds")
_BYTES = whole(least=0, unit="bytes")
_OBJECT = Anything((yaml.MAP,), "a mapping")

_UNKNOWN = optional(FLAG, "Nobody could tell; the value is nothing then.", False)
_BEATEN = Shape(
    "a value that was beaten",
    {
        "level": required(TEXT, "The precedence level that set it."),
        "value": required(ANYTHING, "What it was."),
        "source": required(TEXT, "Where it came from."),
    },
)
FACT = Shape(
    "a fact",
    {
        "value": required(ANYTHING, "What was true."),
        "unknown": _UNKNOWN,
        "source": required(TEXT, "Where it came from."),
        "level": optional(TEXT, "The precedence level that set it."),
        "beaten": optional(List(_BEATEN), "Values of lower levels, the highest first."),
        "settle": optional(TEXT, "What would have made an unknown known."),
    },
)
_PLACE = Shape("a place", {"file": required(TEXT, "Of the policies."), "line": required(whole(least=0), "From 1.")})
_DECISION = Shape(
    "a decision",
    {
        "value": required(ANYTHING, "What was decided."),
        "unknown": _UNKNOWN,
        "rule": optional(_OR_NOTHING, "The rule that won; nothing when none fired."),
        "level": optional(TEXT, "The precedence level that won."),
        "because": optional(TEXT, "The rule's reason, with its figures."),
        "source": optional(_PLACE, "Where the rule stood."),
        "passes_on": optional(TEXT, "The decision whose value the rule passes on as it is."),
    },
)
_DRAFT = Shape(
    "a drafter",
    {
        "name": required(TEXT, "The name of its file, or its catalog id."),
        "path": required(TEXT, "Where it was."),
        "here": required(FLAG, "Whether it was installed."),
        "resident_bytes": required(Anything((yaml.INTEGER, yaml.NOTHING), "bytes or nothing"), "What it takes."),
        "source": required(TEXT, "Where that figure is from."),
        "measured": required(FLAG, "It was measured in a running engine."),
        "header": optional(TEXT, "Its file in short, as catalog entries describe one."),
    },
)
_SUBJECT = Shape(
    "'subject'",
    {
        "source": required(TEXT, "What the model's facts rest on."),
        "path": required(TEXT, "Where the model was."),
        "header": optional(TEXT, "Its file in short, as catalog entries describe one: enough to plan it again."),
        "draft": optional(_DRAFT, "The drafter that belongs to it."),
    },
)
_POLICY = Shape(
    "'policy'",
    {
        "digest": required(TEXT, "Of the whole set."),
        "files": optional(
            List(
                Shape(
                    "a policy file",
                    {"policy": required(TEXT, "Its name."), "version": required(TEXT, "Its version.")},
                )
            ),
            "Every file of the set.",
        ),
    },
)
_FLAG = Shape(
    "a flag",
    {
        "tokens": required(List(TEXT), "As they stand in argv."),
        "decision": required(TEXT, "The decision that gave them."),
    },
)
_LAUNCH = Shape(
    "'launch'",
    {
        "engine": required(List(TEXT), "The engine's command."),
        "build": optional(TEXT, "Which build that was."),
        "argv": required(List(TEXT), "What it was given."),
        "started": required(_SECONDS, "When, in seconds since 1970."),
        "model": optional(TEXT, "The model's name."),
        "recovery": optional(List(TEXT), "Steps that were taken before, after starts that failed."),
    },
)
_VERDICT = {
    "gpu": optional(_OR_NOTHING, "The verdict on the GPU."),
    "detail": optional(_OR_NOTHING, "The engine's words for it."),
    "failure": optional(_OR_NOTHING, "The failure class."),
    "advice": optional(_OR_NOTHING, "What a person can do."),
}
_OUTCOME = Shape(
    "'outcome'",
    {
        "ready": required(FLAG, "Whether it answered."),
        "seconds": required(_SECONDS, "Until it was ready, or was given up."),
        **_VERDICT,
        "exit_status": optional(_STATUS, "Of an engine that did not become ready."),
    },
)
_ENDED = Shape(
    "'ended'",
    {
        "exit_status": required(_STATUS, "As Python gives it: negative is a signal."),
        "time": required(_SECONDS, "When, in seconds since 1970."),
    },
)
_BUFFER = Shape(
    "a buffer",
    {
        "pool": required(TEXT, "The pool of the plan it lies in: a device, or host."),
        "part": required(TEXT, "The part of the plan it belongs to: weights, context, compute."),
        "name": required(TEXT, "The engine's name for it."),
        "bytes": required(_BYTES, "What the engine says it takes."),
    },
)
_FIGURES = Shape(
    "'figures'",
    {
        "buffers": required(List(_BUFFER), "Memory, as the engine's log has it."),
        "drafts": optional(
            Shape(
                "'drafts'",
                {
                    "accepted": required(whole(least=0), "Drafted tokens the model accepted."),
                    "drafted": required(whole(least=0), "Tokens that were drafted."),
                },
            ),
            "How the drafter did over all requests, where the engine says it.",
        ),
    },
)
_TAKEN = Shape(
    "a pool",
    {
        "pool": required(TEXT, "Its name: a device, or host."),
        "bytes": required(_BYTES, "What the launch takes of it, by the plan."),
        "usable_bytes": required(Anything((yaml.INTEGER, yaml.NOTHING), "bytes or nothing"), "What it might take."),
        "parts": optional(Map(_BYTES), "The bytes by what they are for."),
    },
)
_MEMORY = Shape(
    "'memory'",
    {"taken": optional(List(_TAKEN), "Every pool of the machine.")},
    "The plan's memory: the family's own account, and what is taken of each pool.",
    others=ANYTHING,
)
RECORD = Shape(
    "a record",
    {
        "format": required(whole(least=FORMAT, most=FORMAT), "The number of this form."),
        "model": required(WORDING, "Catalog id, or the name of the model's file."),
        "model_path": optional(TEXT, "The file that its engine holds."),
        "family": required(WORDING, "The engine family."),
        "facts": required(Map(FACT), "Everything the plan was decided on."),
        "held": optional(Map(_BYTES), "Bytes that other launches had reserved, by pool."),
        "share": optional(Number(above=0, most=1), "How much of each device was counted on, after it ran out.", 1),
        "subject": optional(_SUBJECT, "The model, so that it can be planned without its files."),
        "policy": required(_POLICY, "The policies it was decided by."),
        "decisions": required(Map(_DECISION), "Every decision."),
        "flags": optional(List(_FLAG), "Every flag that was passed."),
        "summary": optional(_OBJECT, "The launch in a few figures."),
        "memory": optional(_MEMORY, "What it was expected to take."),
        "launch": optional(_LAUNCH, "The start of the engine."),
        "outcome": optional(_OUTCOME, "How the start went."),
        "figures": optional(_FIGURES, "What the engine says of itself."),
        "death": optional(Shape("'death'", _VERDICT), "Why it ended on its own."),
        "ended": optional(_ENDED, "Its end."),
    },
    "One launch: what was known, what was decided, what the engine did. Written by the program, never by hand.",
)


def fact_json(fact: Fact) -> dict[str, Any]:
    """A fact as a record keeps it; what is empty is left out."""
    unknown = fact.value is UNKNOWN
    beaten = [{"level": level, "value": value, "source": source} for level, value, source in fact.beaten]
    more = {"unknown": unknown, "level": fact.level, "beaten": beaten, "settle": fact.settle}
    return {
        "value": None if unknown else fact.value,
        "source": fact.source,
        **{key: value for key, value in more.items() if value},
    }


def fact_of(said: Mapping[str, Any]) -> Fact:
    """The fact of a record."""
    beaten = tuple((each["level"], each["value"], each["source"]) for each in said.get("beaten", ()))
    value = UNKNOWN if said.get("unknown") else said["value"]
    return Fact(value, said["source"], said.get("level", ""), beaten, said.get("settle", ""))
