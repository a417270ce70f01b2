"""``gezel-rules policy show [NAME]``: what a name means, or everything there is."""

from __future__ import annotations

import argparse
import shutil

from gezel_rules.author.check import read_library
from gezel_rules.cli.arguments import add_family, session_of
from gezel_rules.cli.policy.directory import named_directory
from gezel_rules.cli.shown import json_text
from gezel_rules.engines import plain_functions
from gezel_rules.errors import BadInput
from gezel_rules.planner.policies import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action's own arguments."""
    parser.add_argument(
        "what", metavar="NAME", nargs="?",
        help="a decision, flag, table, policy, fact, area, function or check (default: all policies), or all of a "
        "kind: facts, functions, tables, areas, logs, settings, checks",
    )  # fmt: skip
    parser.add_argument(
        "--effective", action="store_true", help="as they hold here, with what site and user lay over them"
    )
    add_family(parser)


def parse(parser: argparse.ArgumentParser, argv: list[str], chosen: argparse.Namespace) -> argparse.Namespace:
    """NAME may look like an option: what this command does not know as one is the name of a flag."""
    args, rest = parser.parse_known_intermixed_args(argv, chosen)
    if rest and (args.what is not None or len(rest) > 1):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.what = rest[0] if rest else args.what
    return args


def run(args: argparse.Namespace) -> int:
    """Show it; 0. Raises BadInput for what means nothing, and for policies that do not load."""
    from gezel_rules.author.listing import facts, functions
    from gezel_rules.author.page import overview, page
    from gezel_rules.author.show import Index

    session = session_of(args)
    family = session.family(args.family)
    layers = session.layers if args.effective else ()
    library = read_library(named_directory(session.policies), family.name, LANGUAGES, layers)
    if library.drafts.problems:
        raise BadInput(library.drafts.problems)
    called = functions(family.signatures(), plain_functions.SIGNATURES, family.name)
    index = Index(library, facts(family.vocabulary()), called)
    entry = index.find(args.what) if args.what else index.overview()
    if args.json:
        print(json_text(entry))
    else:
        width = min(shutil.get_terminal_size((110, 24)).columns, 110)
        print("\n".join(page(entry, width) if isinstance(entry, dict) else overview(entry, width)))
    return 0
