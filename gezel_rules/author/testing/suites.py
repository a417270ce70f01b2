"""The test files of a policy directory, found and read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.author.testing.cases import Cases, read_cases
from gezel_rules.author.testing.form import ENDING
from gezel_rules.author.testing.given import Words
from gezel_rules.documents.kept import load_kept
from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.errors import BadInput, Problem
from gezel_rules.policy.files import all_paths, shown_name
from gezel_rules.record import NamedTuple


class Suite(NamedTuple):
    """One test file: the ``policy`` beside it and its engine ``family``, the ``root`` of that policy, and the cases.
    ``words``: what they may speak of."""

    policy: str
    family: str
    root: Node
    words: Words
    cases: Cases


class _File(NamedTuple):
    """A test file before its cases are read: ``root`` is what stands in it, ``beside`` what stands in the policy."""

    policy: str
    family: str
    root: Node
    beside: Node


def read_suites(
    directory: Path, words_of: Callable[[str], Words], cache: Path | None, only: Sequence[str] = ()
) -> list[Suite]:
    """Every test file of a directory, in name order; with ``only``, those that somebody named: by policy, file, folder,
    decision or flag. ``words_of``: what cases may speak of, by family.

    Raises BadInput with every problem of every file, and for a name that means nothing.
    """
    problems: list[Problem] = []
    suites = []
    for file in _files(directory, cache, problems):
        words = words_of(file.family)
        cases = read_cases(file.root, file.policy, words, problems)
        suites.append(Suite(file.policy, file.family, file.beside, words, cases))
    if problems:
        raise BadInput(problems)
    return [*_only(only, suites)] if only else suites


def _files(directory: Path, cache: Path | None, problems: list[Problem]) -> Iterator[_File]:
    all_paths(directory)  # says when there is no such directory
    for path in sorted(directory.rglob(f"*{ENDING}")):
        beside, name = path.with_name(path.name.removesuffix(ENDING) + ".yaml"), shown_name(path, directory)
        if not beside.is_file():
            problems.append(Problem(f"{name}: tests nothing: there is no '{beside.name}' beside it"))
            continue
        try:
            root, policy = load_kept(path, name, cache), load_kept(beside, shown_name(beside, directory), cache)
        except BadInput as error:
            problems.extend(error.problems)
            continue
        yield _File(beside.relative_to(directory).as_posix().removesuffix(".yaml"), _family(policy), root, policy)


def _family(policy: Node) -> str:
    """The family a policy is for; one for every family is tested with the usual one."""
    engine = policy.value.get("engine") if isinstance(policy.value, dict) else None
    return str(engine.value) if engine is not None else DEFAULT_FAMILY


def _only(names: Sequence[str], suites: Sequence[Suite]) -> Iterator[Suite]:
    """The suites that are named, each with the cases that are. Raises BadInput for a name that means nothing."""
    chosen: dict[str, list[str]] = {}
    for name in names:
        found = [(suite.policy, decision) for suite in suites for decision in _meant(name, suite)]
        if not found:
            known = [word for suite in suites for word in (suite.policy, *suite.cases.decisions)]
            raise BadInput(f"no test file, policy or tested decision '{name}'{did_you_mean(name, known)}")
        for policy, decision in found:
            chosen.setdefault(policy, []).append(decision)
    for suite in suites:
        if wanted := chosen.get(suite.policy):
            yield suite if "" in wanted else suite._replace(cases=_of_decisions(suite.cases, wanted))


def _meant(name: str, suite: Suite) -> list[str]:
    """What a name means in a suite: all of it (""), or one of its decisions, by its own name or its flag's."""
    path = name.removesuffix(".yaml").removesuffix("_test").rstrip("/")
    if f"/{path}/" in f"/{suite.policy}/" or f"/{path}".endswith(f"/{suite.policy}"):
        return [""]
    flags = {suite.words.policies.decisions[decision].flag: decision for decision in suite.cases.decisions}
    decision = flags.get(name, name)
    return [decision] if decision in suite.cases.decisions else []


def _of_decisions(cases: Cases, wanted: Collection[str]) -> Cases:
    return Cases(cases.tests, tuple(case for case in cases.cases if case.decision in wanted))
