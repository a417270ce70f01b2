"""``gezel-rules policy ACTION``: for those who maintain the rules. Each action has a module here, with its arguments.

Exit status of ``check``: 0 when everything loads, 2 when something is broken; of ``test``: 0 when all is as the tests
expect, 1 when something is not, 2 for a file that is at fault; of ``format --check``: 0, or 1 when a file would change;
of the others: 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

ACTIONS: Mapping[str, str] = {
    "check": "everything that is wrong with policies, each with its place",
    "test": "hold policies against the tests beside them",
    "diff": "which launches change between two sets of policies, and by which edit",
    "format": "files in the one layout; comments stay, and so does every meaning",
    "show": "a decision, flag, table, policy, fact, area, function or check, or all of a kind",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What comes first; the rest is the action's own."""
    said = "; ".join(f"{name}: {says}" for name, says in ACTIONS.items())
    parser.add_argument("action", metavar="ACTION", choices=tuple(ACTIONS), help=f"{said} (each has its own --help)")


def parse(parser: argparse.ArgumentParser, argv: list[str], chosen: argparse.Namespace) -> argparse.Namespace:
    """The action decides which arguments there are, so it is read first."""
    asking = {"-h", "--help"}
    words = [word for word in argv if word not in asking]
    if not words:
        return parser.parse_args(argv, chosen)
    action = parser.parse_known_args(words, argparse.Namespace(**vars(chosen)))[0].action
    parser.prog, parser.description = f"{parser.prog} {action}", ACTIONS[action]
    module = _module(action)
    module.add_arguments(parser)
    found: argparse.Namespace = getattr(module, "parse", argparse.ArgumentParser.parse_intermixed_args)(
        parser, argv, chosen
    )
    return found


def run(args: argparse.Namespace) -> int:
    """Do what the action does. Raises GezelError."""
    status: int = _module(args.action).run(args)
    return status


def _module(action: str) -> ModuleType:
    return import_module(f"{__name__}.{action}")
