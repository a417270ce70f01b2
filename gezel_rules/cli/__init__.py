"""The command line: one module per command, loaded only when it is called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from gezel_rules import __version__
from gezel_rules.errors import GezelError

COMMANDS = {
    "plan": "the launch that policy decides for MODEL, with its memory; starts nothing",
    "explain": "why a flag is there, or not; why a decision fell",
    "run": "pull if needed, plan, launch, answer a prompt, stop",
    "serve": "the same, and keep serving until Ctrl-C",
    "ps": "engines that are running",
    "stop": "stop an engine",
    "pull": "fetch and verify a model",
    "ls": "models in the store",
    "rm": "remove a model from the store",
    "verify": "hash a stored model again",
    "inspect": "what a GGUF header says",
    "memory": "bytes a launch takes, from the header alone",
    "log": "verdict and failure class of an engine log",
    "devices": "what this machine and its engine offer",
    "policy": "check and show policies",
}


class OneLineParser(argparse.ArgumentParser):
    """Usage errors in one line, exit 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0: done; 1: the answer is no; 2: bad input; 3: the engine or a transfer failed."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except GezelError as error:
        print(f"gezel-rules: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        sys.stderr.close()  # the reader has enough; nothing more can be said
        return 0
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    outer = _outer_parser()
    known = outer.parse_args(argv)
    if known.command is None:
        outer.print_help()
        return 2
    module = import_module(f"gezel_rules.cli.{known.command}")
    parser = OneLineParser(prog=f"gezel-rules {known.command}", description=COMMANDS[known.command])
    module.add_arguments(parser)
    _add_places(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parse = getattr(module, "parse", argparse.ArgumentParser.parse_intermixed_args)
    status: int = module.run(parse(parser, known.rest, argparse.Namespace(**_chosen(known))))
    return status


def _chosen(known: argparse.Namespace) -> dict[str, Path | None]:
    return {"policies": known.policies, "catalog": known.catalog, "store": known.store}


def _outer_parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="gezel-rules",
        description="Launch local models by rules: every flag explained, every byte accounted for.",
        epilog="commands:\n" + "\n".join(f"  {name:9} {says}" for name, says in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gezel-rules {__version__}")
    _add_places(parser)
    parser.set_defaults(policies=None, catalog=None, store=None)
    parser.add_argument("command", metavar="COMMAND", nargs="?", choices=COMMANDS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    """The same before and after COMMAND; the later one counts."""
    for name, what in (("policies", "policies"), ("catalog", "catalog"), ("store", "models")):
        parser.add_argument(
            f"--{name}", metavar="DIR", type=Path, default=argparse.SUPPRESS, help=f"directory of the {what}"
        )
