"""What ``policy check`` looks for: each check by its id, how grave it is, what it means and what to do.

A finding is silenced where it stands, by a comment on its line or right above it that says why:

    # allow unasked-word: the next build reads it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gezel_rules.documents.node import Text, did_you_mean
from gezel_rules.errors import Problem
from gezel_rules.record import NamedTuple

ERROR, WARNING = "error", "warning"
_ALLOW = re.compile(r"#\s*allow ([\w-]+)(?::\s*(.*))?$")


class Check(NamedTuple):
    """One check: ``severity`` is ``error`` (the set is refused) or ``warning``; ``says`` what it finds, ``remedy`` what
    to do about it."""

    severity: str
    says: str
    remedy: str


CHECKS: Mapping[str, Check] = {
    "broken": Check(
        ERROR, "A file that cannot be read as it is meant: no YAML, an unknown name or word, a wrong type, a circle.",
        "Mend it at the caret. Nothing is planned by a set that has one; it cannot be silenced.",
    ),
    "unused-decision": Check(
        ERROR, "A decision that no other decision reads, that is no flag, and that the program does not ask for.",
        "Remove it, or read it where it was meant to count. One whose name begins with show., warn. or note. is shown.",
    ),
    "unused-table": Check(
        ERROR, "A table that no decision, no other table and not this program looks anything up in.",
        "Remove it, or look it up where it was meant to count: table['row'].column.",
    ),
    "unused-failure-class": Check(
        ERROR, "A failure class of a log policy that no pattern and no exit status speaks for.",
        "Remove it, or name it under 'failure' in the pattern that should.",
    ),
    "unasked-word": Check(
        ERROR, "A word that a column may hold, where rules ask for other words of that column and never for this one.",
        "A row with this word is treated as if it had none: ask for it, or take it from the column's words.",
    ),
    "unknown-option": Check(
        ERROR, "An option that no engine of the family has, by the table engine_options.",
        "Mend its spelling. A new option goes into that table first.",
    ),
    "overlap": Check(
        ERROR, "Two rules under 'hit: unique' that fire together on the facts that are shown.",
        "Make their conditions exclude each other, or choose 'hit: first' and put the more particular one first.",
    ),
    "gap": Check(
        WARNING, "Facts on which no rule of a decision under 'hit: unique' fires, so that it has no value.",
        "Add a rule for them. Where no value is meant, say so with a rule whose 'then' is none.",
    ),
    "never-decides": Check(
        ERROR, "A rule that fires only where rules above it fire too, so that it never decides.",
        "Remove it, or put it above them.",
    ),
    "second-opinion": Check(
        ERROR, "What the JSON Schema for editors refuses in a file that loads.",
        "One of the two is wrong: python -m gezel_rules.author.schemas writes the schemas anew.",
    ),
    "part-of-a-set": Check(
        WARNING, "A directory that lacks decisions or tables which a plan needs.",
        "It can be checked, and cannot be planned by: --policies takes a whole set. Small changes are better a layer.",
    ),
    "stale-evidence": Check(
        WARNING, "Evidence that has expired: the rule still holds, on a figure that nobody has measured lately.",
        "Measure again, and move 'measured' and 'expires'.",
    ),
    "allows-nothing": Check(
        WARNING, "A comment that silences a check which finds nothing there, that is none, or that gives no reason.",
        "Remove it, or mend it: # allow CHECK: why it may stand.",
    ),
}  # fmt: skip


def severity(problem: Problem) -> str:
    """How grave a finding is."""
    return CHECKS[problem.check or "broken"].severity


def unsilenced(found: Iterable[Problem], texts: Sequence[Text]) -> Iterator[Problem]:
    """The findings that no comment in these files silences, and comments that silence nothing."""
    allowed = {(text.name, line): (check, why) for text in texts for line, check, why in _comments(text)}
    by_name, used = {text.name: text for text in texts}, set()
    for problem in found:
        place = _allowing(problem, by_name, allowed)
        if place is None:
            yield problem
        used.add(place)
    for (name, line), (check, why) in allowed.items():
        if (name, line) not in used:
            yield _idle(by_name[name], line, check, why)


def _comments(text: Text) -> Iterator[tuple[int, str, str]]:
    """Line, check and reason of every such comment."""
    for number, line in enumerate(text.text.split("\n"), 1):
        if "# allow " in line and (found := _ALLOW.search(line.rstrip())):
            yield number, found[1], (found[2] or "").strip()


def _allowing(
    problem: Problem, texts: Mapping[str, Text], allowed: Mapping[tuple[str, int], tuple[str, str]]
) -> tuple[str, int] | None:
    """Where a finding is silenced: on its line, or in the comments right above it."""
    if problem.span is None or problem.span.file not in texts or not problem.check:
        return None
    text, line = texts[problem.span.file], problem.span.line
    places = [line]
    while text.line(line - 1).lstrip().startswith("#"):
        line -= 1
        places.append(line)
    for number in places:
        check, why = allowed.get((text.name, number), ("", ""))
        if check == problem.check and why:
            return text.name, number
    return None


def _idle(text: Text, line: int, check: str, why: str) -> Problem:
    said = f"nothing here is found by '{check}'"
    if check not in CHECKS or check == "broken":
        said = f"no check '{check}' that can be silenced{did_you_mean(check, CHECKS)}"
    elif not why:
        said = f"a reason is missing: # allow {check}: why it may stand"
    return text.problem(said, line, text.line(line).index("# allow") + 1, 7)._replace(check="allows-nothing")
