"""A catalog directory looked at as a whole: every problem of every entry and every described host."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.errors import BadInput, Problem
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.planner.catalog_words import TablesOf
    from gezel_rules.session.session import Session


class Checked(NamedTuple):
    """What a check found, by file; and how many entries and described hosts it looked at."""

    problems: tuple[Problem, ...]
    entries: int
    hosts: int


def check_catalog(session: Session) -> Checked:
    """Check every file of the session's catalog against the session's policies. Raises BadInput for a directory that
    holds no catalog, and for policies that do not load."""
    models, hosts = (_files(session.catalog / kind) for kind in ("models", "hosts"))
    if not models and not hosts:
        raise BadInput(f"{session.catalog}: is no catalog (it has no files in 'models' or 'hosts')")
    tables_of = cache(session.tables)
    problems = [*_entries(models, tables_of), *_hosts(hosts, session)]
    return Checked(tuple(problems), len(models), len(hosts))


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*") if path.suffix in (".yaml", ".yml"))


def _entries(paths: list[Path], tables_of: TablesOf) -> Iterator[Problem]:
    from gezel_rules.catalog.names import id_fault
    from gezel_rules.catalog.read import load_entry
    from gezel_rules.places import shown
    from gezel_rules.planner.catalog_words import checks, header_faults

    named = [path for path in paths if path.suffix == ".yaml" and not id_fault(path.stem)]
    yield from (Problem(f"{shown(path)}: nothing reads this file: it must be named ID.yaml") for path in paths
                if path not in named)  # fmt: skip
    further = checks(tables_of, lambda: [path.stem for path in named])
    for path in named:
        try:
            yield from header_faults(load_entry(path, further=further).values)
        except BadInput as error:
            yield from error.problems


def _hosts(paths: list[Path], session: Session) -> Iterator[Problem]:
    from gezel_rules.facts.described_host import family_of, load_host
    from gezel_rules.planner.gather import host_words
    from gezel_rules.planner.policies import LANGUAGES

    words = cache(lambda name: host_words(session.policies_for(session.family(name))))
    for path in paths:
        try:
            family = family_of(path)
            load_host(path, words(family if family in LANGUAGES else DEFAULT_FAMILY))
        except BadInput as error:
            yield from error.problems
