"""Coverage and mutation of a run in lines: a row for each policy file, and below it what no case shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gezel_rules.author.testing.coverage import Covered, totals
from gezel_rules.author.testing.mutation import Mutated, Survivor


def coverage_lines(files: Sequence[Covered]) -> Iterator[str]:
    """Every file with how many outcomes of its rules and conditions some case shows, and every one that none does."""
    wide = max((len(file.file) for file in files), default=0)
    yield f"{'covered by cases':{wide}}  {'rules':>22}  {'conditions':>22}"
    for file in files:
        yield f"{file.file:{wide}}  {_share(file.rules):>22}  {_share(file.conditions):>22}"
    of_rules, of_conditions = totals(files)
    yield f"{'together':{wide}}  {_share(of_rules):>22}  {_share(of_conditions):>22}"
    gaps = [gap for file in files for gap in file.gaps]
    if gaps:
        yield ""
        yield "no case shows it:"
    yield from (f"  {gap.place}: {gap.decision}, rule {gap.rule}: {gap.says}" for gap in gaps)


def mutation_lines(files: Sequence[Mutated]) -> Iterator[str]:
    """Every file with how many changes to it some case notices, and every one that none does."""
    wide = max((len(file.file) for file in files), default=0)
    yield f"{'changes that a case notices':{wide}}"
    for file in files:
        yield f"{file.file:{wide}}  {_share((file.mutants - len(file.survivors), file.mutants)):>22}"
    every = sum(file.mutants for file in files)
    survivors = [each for file in files for each in file.survivors]
    yield f"{'together':{wide}}  {_share((every - len(survivors), every)):>22}"
    yield from _listed("no case notices:", [each for each in survivors if not each.reason])
    yield from _listed("no case can notice, says the policy:", [each for each in survivors if each.reason])
    idle = [each for file in files for each in file.idle]
    if idle:
        yield from ("", "nothing of the kind survives, and a comment says it does:")
    yield from (f"  {place}: survives {kind}" for place, kind in idle)


def _listed(heading: str, survivors: Sequence[Survivor]) -> Iterator[str]:
    if survivors:
        yield from ("", heading)
    for each in survivors:
        reason = f" ({each.reason})" if each.reason else ""
        yield f"  {each.place}: {each.of}, {each.part}: {each.kind}: {each.says}{reason}"


def _share(counted: tuple[int, int]) -> str:
    some, all_ = counted
    return f"{some:,} of {all_:,} ({100 * some // all_ if all_ else 100:>3} %)"


def plain(found: Covered | Mutated) -> dict[str, Any]:
    """The same of one file as data."""
    if isinstance(found, Covered):
        rules, conditions = _counted(found.rules), _counted(found.conditions)
        gaps = [gap._asdict() for gap in found.gaps]
        return {"file": found.file, "rules": rules, "conditions": conditions, "gaps": gaps}
    survivors = [each._asdict() for each in found.survivors]
    idle = [{"place": place, "kind": kind} for place, kind in found.idle]
    return {"file": found.file, "mutants": found.mutants, "survivors": survivors, "idle": idle}


def _counted(counted: tuple[int, int]) -> dict[str, int]:
    return {"shown": counted[0], "all": counted[1]}
