"""``gezel-rules memory MODEL``: the bytes a launch takes, pool by pool, from the model's header alone."""

from __future__ import annotations

import argparse
import os

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.cli.arguments import MODEL, add_family, session_of
from gezel_rules.cli.shown import show
from gezel_rules.engines import registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL; what else there is, its engine family says."""
    parser.add_argument("file", metavar="MODEL", help=f"{MODEL}; a header is enough")
    add_family(parser)


def parse(parser: argparse.ArgumentParser, argv: list[str], chosen: argparse.Namespace) -> argparse.Namespace:
    """The family decides which flags there are, so it is read first. Raises BadInput for one that there is not."""
    registry.family(_named(argv) or DEFAULT_FAMILY).memory.add_arguments(parser)
    return parser.parse_args(argv, chosen)


def _named(argv: list[str]) -> str | None:
    if not any(word.startswith("--family") for word in argv):
        return None
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_family(first)
    named: str | None = first.parse_known_args(argv)[0].family
    return named


def run(args: argparse.Namespace) -> int:
    """Print the memory of the launch the arguments describe; 0. Raises BadInput."""
    session = session_of(args)
    family, args.model = session.family(args.family), None
    if not _path_that_is_there(args.file):
        from gezel_rules.planner.known import Entries
        from gezel_rules.planner.subject import find_subject, is_file

        if not is_file(args.file, session.catalog):
            subject = find_subject(args.file, session.places(), Entries(session.catalog, session.cache))
            family, args.model = subject.family, subject.model
    return show(family.memory.report(args, session.policies_for(family), session.cache), args.json)


def _path_that_is_there(model: str) -> bool:
    """A file by what MODEL means, without the code that tells other readings apart: catalog ids have no separator."""
    return os.sep in model and "://" not in model and os.path.isfile(model)  # noqa: PTH113
