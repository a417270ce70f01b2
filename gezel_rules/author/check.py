"""A policy directory looked at as a whole: every problem of every file, and what is merely out of date."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Any

from gezel_rules.author.checks import ERROR, severity, unsilenced
from gezel_rules.author.idle import idle
from gezel_rules.author.together import together
from gezel_rules.documents.node import Node
from gezel_rules.errors import BadInput, Problem
from gezel_rules.logs.load import read_logs
from gezel_rules.policy.causes import in_order
from gezel_rules.policy.check import check_drafts
from gezel_rules.policy.files import LOGS, all_paths
from gezel_rules.policy.language import Language, Languages, Needs
from gezel_rules.policy.load import Drafts, load_drafts
from gezel_rules.policy.model import Decision
from gezel_rules.policy.needs import absent, is_part, unlike
from gezel_rules.policy.sources import Source, Sources, read_sources
from gezel_rules.policy.whole import faults_of
from gezel_rules.record import NamedTuple


class Against(NamedTuple):
    """What a directory is held against: the ``languages`` of the engine families, the JSON Schemas for editors, and the
    day it is (``today``)."""

    languages: Languages
    schema: Path
    log_schema: Path
    today: date


class Report(NamedTuple):
    """What a check found, in file order. ``problems`` keep the set from loading; ``warnings`` do not, and are looked
    for where there are no problems."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    files: int
    decisions: int
    tables: int


class Library(NamedTuple):
    """The policies one engine family is judged by, as written (``drafts``) and as checked (``decisions``, in dependency
    order)."""

    drafts: Drafts
    decisions: Mapping[str, Decision]


def read_library(directory: Path, family: str, languages: Languages, layers: Sequence[Path] = ()) -> Library:
    """Read and check what a family is judged by, with ``layers`` laid over it; problems stay in ``drafts.problems``.
    Raises BadInput when the directory holds no policies."""
    return _library(read_sources(all_paths(directory), directory, languages, layers), family, languages[family]())


def _library(sources: Sources, family: str, language: Language) -> Library:
    drafts = load_drafts(sources, family)
    return Library(drafts, check_drafts(drafts, language.facts, language.functions))


def check_directory(directory: Path, against: Against, layers: Sequence[Path] = ()) -> Report:
    """Check everything, for every family that has files there, as it is with ``layers`` laid over it. Raises BadInput
    when there is nothing to check."""
    sources = read_sources(all_paths(directory), directory, against.languages, layers)
    problems: list[Problem] = []
    read: list[Drafts] = []
    warnings: dict[Problem, None] = {}
    named: set[tuple[str, str, str]] = set()
    needs = [language().needs() for language in against.languages.values()]
    elsewhere = {name for need in needs for name in (*need.tables, *need.decisions)}
    for family in _families(sources, against.languages):
        language = against.languages[family]()
        drafts, decisions = _library(sources, family, language)
        found, doubts = _faults(drafts, language.needs(), directory.name)
        if not found:
            found += [] if doubts else idle(drafts, decisions, language, elsewhere)
            doubts += [*together(drafts, decisions, language), *stale(drafts, against.today)]
        problems += found
        read.append(drafts)
        warnings |= dict.fromkeys(doubts)
        named |= {("decision", name, draft.decision.file) for name, draft in drafts.decisions.items()}
        named |= {("table", name, table.node.text.name) for name, table in drafts.tables.items()}
    problems += _second_opinion(sources.files, against, problems)
    counts = [sum(kind == what for kind, _, _ in named) for what in ("decision", "table")]
    texts = [source.root.text for source in (*sources.files, *sources.layers)]
    found = [*unsilenced([*problems, *warnings], texts)]
    problems = [problem for problem in found if severity(problem) == ERROR]
    doubts = sorted((problem for problem in found if severity(problem) != ERROR), key=attrgetter("place"))
    return Report(
        tuple(in_order(problems, read)), () if problems else tuple(doubts), len(all_paths(directory)) + len(layers),
        *counts,
    )  # fmt: skip


def _families(sources: Sources, languages: Languages) -> list[str]:
    """The families that have files here; where none has, everything is for all of them."""
    return [name for name in languages if any(source.engine == name for source in sources.files)] or list(languages)


def _log_faults(drafts: Drafts) -> tuple[Problem, ...]:
    """What is wrong with the log policies of a set."""
    try:
        if drafts.logs:
            read_logs(drafts.logs, drafts.gpu_backends, whole=not any(f"/{LOGS}/" in name for name in drafts.unread))
    except BadInput as error:
        return error.problems
    return ()


def _faults(drafts: Drafts, needs: Needs, directory: str) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with a family's set, and a warning where it is a mere part of one."""
    lacking, whole = absent(drafts, needs, directory), len(needs.decisions) + len(needs.tables)
    logs = _log_faults(drafts)
    if not is_part(lacking, needs) or drafts.problems or logs:
        return faults_of(drafts, needs, directory, logs), []
    said = f"{directory}: part of a set: {len(lacking)} of {whole} decisions and tables that a plan needs are not here"
    return unlike(drafts, needs), [Problem(said, check="part-of-a-set")]


def _second_opinion(files: Iterable[Source], against: Against, known: list[Problem]) -> Iterator[Problem]:
    """What a schema refuses in files the loader is content with: one of the two is wrong."""
    from jsonschema import Draft202012Validator

    schemas = {False: against.schema, True: against.log_schema}
    validators = {
        log: Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))) for log, schema in schemas.items()
    }
    at_fault = {problem.span.file for problem in known if problem.span}
    for source in files:
        if source.root.text.name not in at_fault:
            for error in validators[source.is_log].iter_errors(source.root.plain()):
                said = f"{schemas[source.is_log].name} refuses this: {error.message}"
                yield _at(source.root, error.absolute_path).problem(said, 1)._replace(check="second-opinion")


def _at(root: Node, path: Any) -> Node:
    for step in path:
        root = root.value[step]
    return root


def stale(drafts: Drafts, today: date) -> Iterator[Problem]:
    """Evidence that has expired: the rule still holds, but somebody should measure again."""
    for name, draft in drafts.decisions.items():
        for rule, node in _rule_nodes(draft.node):
            expires = node.value.get("evidence") and node.value["evidence"].value.get("expires")
            if expires and expires.value < today.isoformat():
                said = f"evidence of rule '{rule}' in '{name}'" if rule else f"evidence of '{name}'"
                found = expires.problem(f"{said} expired on {expires.value}: measure again")
                yield found._replace(check="stale-evidence")


def _rule_nodes(decision: Node) -> Iterator[tuple[str, Node]]:
    if "rules" not in decision.value:
        yield "", decision
        return
    for node in decision.value["rules"].value:
        if isinstance(node.value, dict):
            yield node.value["id"].value if "id" in node.value else "", node
