"""``gezel-rules inspect FILE``: what a model file says about itself."""

from __future__ import annotations

import argparse

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("file", metavar="FILE", help="a model on disk")


def run(args: argparse.Namespace) -> int:
    """Print the summary; 0. Raises BadInput."""
    from gezel_rules.engines import registry

    session, family = session_of(args), registry.of_file(args.file)
    return show(family.inspect(args.file, session.policies_for(family).tables), args.json)
