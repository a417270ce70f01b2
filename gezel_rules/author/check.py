"""A policy directory looked at as a whole: every problem of every file, and what is merely out of date."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from gezel_rules.documents.source import Node, load_yaml
from gezel_rules.errors import BadInput, Problem
from gezel_rules.lang.types import Function, Type
from gezel_rules.policy.check import check_drafts
from gezel_rules.policy.load import Drafts, load_drafts, shown_name
from gezel_rules.policy.model import Decision
from gezel_rules.policy.needs import Needs, absent, unlike
from gezel_rules.policy.seal import in_order, log_policy_paths, policy_paths
from gezel_rules.record import NamedTuple


class Against(NamedTuple):
    """What a directory is held against: the vocabulary (``facts``), ``functions`` and what the program ``needs``; the
    JSON Schemas for editors; ``read_logs``, which reads the log policies of a directory and raises BadInput; and the
    day it is (``today``)."""

    facts: Mapping[str, Type]
    functions: Mapping[str, Function]
    needs: Needs
    schema: Path
    log_schema: Path
    read_logs: Callable[[Path], object]
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
    """All policies of a directory, as written (``drafts``) and as checked (``decisions``, in dependency order)."""

    drafts: Drafts
    decisions: Mapping[str, Decision]


def read_library(directory: Path, facts: Mapping[str, Type], functions: Mapping[str, Function]) -> Library:
    """Read and check a directory; problems stay in ``drafts.problems``. Raises BadInput when it holds no policies."""
    drafts = load_drafts(policy_paths(directory), directory)
    return Library(drafts, check_drafts(drafts, facts, functions))


def check_directory(directory: Path, against: Against) -> Report:
    """Check everything. Raises BadInput when there is nothing to check."""
    library = read_library(directory, against.facts, against.functions)
    missing, warnings = _missing(library.drafts, against.needs, directory.name)
    logs = log_policy_paths(directory)
    problems = [*library.drafts.problems, *missing, *(_faults(against.read_logs, directory) if logs else ())]
    problems += _second_opinion(directory, policy_paths(directory), against.schema, problems)
    problems += _second_opinion(directory, logs, against.log_schema, problems)
    return Report(
        tuple(in_order(library.drafts, problems)),
        () if problems else (*warnings, *sorted(stale(library.drafts, against.today), key=_in_file_order)),
        len(policy_paths(directory)) + len(logs),
        len(library.drafts.decisions),
        len(library.drafts.tables),
    )


def _missing(drafts: Drafts, needs: Needs, directory: str) -> tuple[list[Problem], list[Problem]]:
    """What the program reads and does not find: problems; of a mere part of a set, one warning."""
    if drafts.problems:
        return [], []
    lacking, whole = absent(drafts, needs, directory), len(needs.decisions) + len(needs.tables)
    if 2 * len(lacking) <= whole:
        return [*lacking, *unlike(drafts, needs)], []
    said = f"{directory}: part of a set: {len(lacking)} of {whole} decisions and tables that a plan needs are not here"
    return unlike(drafts, needs), [Problem(said)]


def _in_file_order(problem: Problem) -> tuple[str, int, int]:
    return problem.span[:3] if problem.span else ("", 0, 0)


def _faults(read: Callable[[Path], object], directory: Path) -> tuple[Problem, ...]:
    try:
        read(directory)
    except BadInput as error:
        return error.problems
    return ()


def _second_opinion(directory: Path, paths: Iterable[Path], schema: Path, known: list[Problem]) -> Iterator[Problem]:
    """What the schema refuses in files the loader is content with: one of the two is wrong."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    at_fault = {problem.span.file for problem in known if problem.span}
    for path in paths:
        name = shown_name(path, directory)
        if name not in at_fault:
            root = load_yaml(path, name)
            for error in validator.iter_errors(root.plain()):
                yield _at(root, error.absolute_path).problem(f"{schema.name} refuses this: {error.message}", 1)


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
                yield expires.problem(f"{said} expired on {expires.value}: measure again")


def _rule_nodes(decision: Node) -> Iterator[tuple[str, Node]]:
    if "rules" not in decision.value:
        yield "", decision
        return
    for node in decision.value["rules"].value:
        if isinstance(node.value, dict):
            yield node.value["id"].value if "id" in node.value else "", node
