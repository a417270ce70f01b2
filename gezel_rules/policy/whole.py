"""A set as a whole: everything that is wrong with it, each mistake once."""

from __future__ import annotations

from collections.abc import Iterable

from gezel_rules.errors import Problem
from gezel_rules.policy.causes import UNSPOKEN, blamed, by_cause
from gezel_rules.policy.language import Needs
from gezel_rules.policy.load import Drafts
from gezel_rules.policy.needs import absent, is_part, unlike

MANY_NEEDED, MANY = 2, 3  # names that nothing defines (read by the program, or by files): too many to be misspelt
SHOWN = 6  # names of a message


def faults_of(drafts: Drafts, needs: Needs, directory: str, beside: Iterable[Problem] = ()) -> list[Problem]:
    """What was found so far, what was found ``beside`` it (in log policies), and what the program misses.

    Of a set that is only a part of one, what the program misses is said when nothing else is wrong.
    """
    lacking = absent(drafts, needs, directory)
    part = is_part(lacking, needs)
    found = by_cause([*drafts.problems, *beside, *([] if part else lacking)], drafts)
    if not part:
        found = _of_a_missing_file(found, lacking, drafts, directory)
    elif found:
        return found
    else:
        found = list(lacking)
    at_fault = drafts.broken.union(*(blamed(found, source.root) for source in drafts.sources))
    return [*found, *unlike(drafts, needs, at_fault)]


def _of_a_missing_file(found: list[Problem], lacking: list[Problem], drafts: Drafts, directory: str) -> list[Problem]:
    """Where several names that the program reads are nowhere, or many that files speak of, a file is missing: that is
    said once, and not what else the file would have given."""
    needed = {problem.misses for problem in lacking}
    lost = [problem for problem in found if problem.misses in needed and not problem.message.startswith(UNSPOKEN)]
    unlike_any = [problem for problem in found if problem.misses and "did you mean" not in problem.message]
    if len(lost) < MANY_NEEDED and len(unlike_any) < MANY:
        return found
    there = {_area(name) for name in (*drafts.decisions, *drafts.tables)}
    gone = {_area(problem.misses) for problem in lost} - there
    many = len(unlike_any) >= MANY
    rest = [p for p in found if p not in lost and not (p.misses and (many or _area(p.misses) in gone))]
    names = sorted({problem.misses for problem in (found if many else lost) if problem.misses})
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    said = f"{directory}: nothing here defines {', '.join(names[:SHOWN])}{more}, which are needed: is a file missing?"
    return [Problem(said), *rest]


def _area(name: str) -> str:
    """What stands before the first dot."""
    return name.partition(".")[0]
