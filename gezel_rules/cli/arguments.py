"""What commands have in common: MODEL and what a plan depends on, and the session they are for."""

from __future__ import annotations

import argparse

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.session import Conditions, Session, session_for

MODEL = "catalog id, a model on disk, or user/repo[:quant]"
ENGINE = "the program to use, or 'embedded' for the engine in this package (default: the one found)"


def add_model(parser: argparse.ArgumentParser, says: str = MODEL) -> None:
    """MODEL alone; ``says``: what it may be."""
    parser.add_argument("model", metavar="MODEL", help=says)


def add_arguments(parser: argparse.ArgumentParser, says: str = MODEL) -> None:
    """MODEL and what a plan depends on."""
    add_model(parser, says)
    add_conditions(parser)
    parser.add_argument("--host", metavar="FILE", help="plan for a described host (a file, or a name in catalog/hosts)")


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Settings and engine."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting, as window=32k (policy show settings lists them)",
    )
    add_engine(parser)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The program alone."""
    parser.add_argument("--engine", metavar="PATH", help=ENGINE)


def add_family(parser: argparse.ArgumentParser) -> None:
    """The engine family, for commands that are not about a model."""
    parser.add_argument("--family", metavar="NAME", help=f"the engine family (default: {DEFAULT_FAMILY})")


def conditions_of(args: argparse.Namespace) -> Conditions:
    """What the arguments say a plan depends on."""
    return Conditions(tuple(args.set), getattr(args, "host", None), args.engine)


def session_of(args: argparse.Namespace) -> Session:
    """The session of a command's directories (``--policies``, else ``GEZEL_POLICIES``, and so on: ``main`` knows
    both). Raises BadInput for a store that is a file."""
    return session_for(args.policies, args.catalog, args.store, args.layer or ())
