"""``gezel-rules policy test [DIR|NAME …]``: what came of the tests, for people and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.author.testing.given import Words
from gezel_rules.author.testing.held import coverage_of, mutation_of
from gezel_rules.author.testing.launches import Launched
from gezel_rules.author.testing.run import Results, benches_of, run_suites, words_of
from gezel_rules.author.testing.suites import Suite, read_suites
from gezel_rules.author.testing.summed import coverage_lines, mutation_lines, plain
from gezel_rules.author.testing.told import as_json, failures
from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import count, json_text, tell
from gezel_rules.errors import BadInput
from gezel_rules.session import Conditions, Session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from gezel_rules.author.testing.coverage import Covered
    from gezel_rules.author.testing.mutation import Mutated


def add_arguments(parser: ArgumentParser) -> None:
    """The action's own arguments."""
    parser.add_argument(
        "what", metavar="DIR|NAME", nargs="*", help="the directory; files, policies or decisions (default: all tests)"
    )
    parser.add_argument("--coverage", action="store_true", help="also what no case shows of rules and conditions")
    parser.add_argument(
        "--mutation", "--mutate", action="store_true", help="also changes to the policies that no case notices"
    )


def parse(parser: ArgumentParser, argv: list[str], chosen: Namespace) -> Namespace:
    """NAME may look like an option: it is a flag's then."""
    args, rest = parser.parse_known_intermixed_args(argv, chosen)
    args.what += rest
    return args


def run(args: Namespace) -> int:
    """Run the tests of the session's policies, or those that are named: 0 when all is as expected, 1 when something is
    not. Raises BadInput for what is wrong with the files themselves."""
    session, names = _place(session_of(args), args.what)
    suites = _suites(session, names)
    benches = benches_of(suites)
    results = run_suites(suites, lambda *asked: _plan(session, *asked), benches)
    covered = coverage_of(results, benches, not names) if args.coverage else None
    mutated = mutation_of(results, benches) if args.mutation else None
    if args.json:
        print(json_text(_json(results, covered, mutated)))
    else:
        tell(_lines(results, covered, mutated))
    unnoticed = [each for file in mutated or () for each in (*file.unexplained, *file.idle)]
    return int(bool(unnoticed) or any(each.failed for each in results))


def _place(session: Session, names: Sequence[str]) -> tuple[Session, Sequence[str]]:
    """A directory that is named is the policies' own, unless it lies within them."""
    first = Path(os.path.abspath(names[0])) if names else session.policies  # noqa: PTH100 - links keep their names
    base = Path(os.path.abspath(session.policies))  # noqa: PTH100
    if names and first.is_dir() and not first.is_relative_to(base):
        return session._replace(policies=first), names[1:]
    below = [_below(name, base) for name in names]
    return session._replace(policies=base), [name for name in below if name != "."]


def _below(name: str, base: Path) -> str:
    """The name of a file or folder within the policies; any other name as it is."""
    path = Path(os.path.abspath(name))  # noqa: PTH100
    return path.relative_to(base).as_posix() if path.exists() and path.is_relative_to(base) else name


def _suites(session: Session, names: Sequence[str]) -> list[Suite]:
    @cache
    def words(name: str) -> Words:
        family = session.family(name)
        return words_of(family.vocabulary(), family.signatures(), session.policies_for(family))

    found = read_suites(session.policies, words, session.cache, names)
    if not found:
        raise BadInput(f"{session.policies}: no tests (expected NAME_test.yaml beside NAME.yaml)")
    return found


def _plan(session: Session, model: str, host: str, settings: Sequence[str]) -> Launched:
    plan = session.plan(model, Conditions(tuple(settings), host))
    return Launched([flag.tokens for flag in plan.flags], {}, plan.trace)


def _lines(
    results: Sequence[Results], files: Sequence[Covered] | None, mutants: Sequence[Mutated] | None
) -> Iterator[str]:
    for each in results:
        for lines in failures(each):
            yield from (*lines, "")
    if files is not None:
        yield from (*coverage_lines(files), "")
    if mutants is not None:
        yield from (*mutation_lines(mutants), "")
    cases, failed = (sum(len(of) for of in every) for every in ([r.all for r in results], [r.failed for r in results]))
    said = f"{failed} failed" if failed else "all as expected"
    yield f"tested {count(len(results), 'policy file')} with {count(cases, 'case')}: {said}"


def _json(
    results: Sequence[Results], files: Sequence[Covered] | None, mutants: Sequence[Mutated] | None
) -> dict[str, Any]:
    ran = [as_json(each) for result in results for each in result.all]
    return {
        "files": len(results), "cases": ran, "failed": sum(not each["passed"] for each in ran),
        **({"coverage": [plain(each) for each in files]} if files is not None else {}),
        **({"mutation": [plain(each) for each in mutants]} if mutants is not None else {}),
    }  # fmt: skip
