"""The command line: one module per command, loaded only when it is called."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from functools import cache
from importlib import import_module

from gezel_rules import __version__
from gezel_rules.errors import GezelError

TYPE_CHECKING = False  # type checkers know this name; what only they need is not imported
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, NoReturn

COMMANDS = {
    "plan": "the launch that policy decides for MODEL, with its memory; starts nothing",
    "explain": "why a flag is there, or not; why a decision fell",
    "run": "pull if needed, plan, launch, answer a prompt, stop",
    "serve": "pull if needed, plan, launch, and serve until Ctrl-C",
    "ps": "engines that are running",
    "stop": "stop a running engine",
    "pull": "fetch and verify a model",
    "ls": "models in the store",
    "rm": "remove a model from the store",
    "verify": "hash a stored model again and compare",
    "inspect": "what a model file says about itself",
    "memory": "the memory a launch takes, from the header alone",
    "log": "verdict and failure class of an engine log",
    "devices": "what this machine and its engine offer",
    "history": "past launches, and what they took against what was planned",
    "replay": "decide a recorded launch again, and say what differs",
    "doctor": "what keeps this machine from its hardware; leftovers in the store",
    "policy": "check, test, compare and show policies",
    "catalog": "list and check entries and described hosts; describe a model file for an entry",
}
ABOUT = """

MODEL is a catalog id, a model on disk, or user/repo[:quant].
Variables: GEZEL_POLICIES, GEZEL_CATALOG, GEZEL_STORE, GEZEL_CACHE, GEZEL_STATE and GEZEL_CONFIG name directories,
GEZEL_LLAMA_SERVER the engine; GEZEL_WINDOW=32k and the like are settings.
Exit status: 0 done, 1 the answer is no, 2 bad input, 3 the engine or a transfer failed."""
TRACE = "GEZEL_TRACEBACK"  # set: a fault of ours shows where it happened
BAD_INPUT, FAILED = 2, 3
HELP = {"-h", "--help"}
MAY_BE_EMPTY = ("prompt",)
LASTING = ("run", "serve", "pull")  # commands that live long enough to need the garbage collector


class OneLineParser(argparse.ArgumentParser):
    """Usage errors in one line, exit 2. Options are written out: a subject of ``explain`` may look like one."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_formatter, **more)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{in_one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Lines as written, as wide as the terminal."""
    return argparse.RawDescriptionHelpFormatter(prog, width=_width())


@cache
def _width() -> int:
    """Columns of the terminal, asked once: argparse wants a formatter for every argument, and would import half of
    shutil to learn this."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        columns = 80
    return max(40, columns - 2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0: done; 1: the answer is no; 2: bad input; 3: the engine or a transfer failed (or
    we did: a fault of ours is one line too, and must not read as an answer); 130: interrupted."""
    try:
        return _flushed(list(sys.argv[1:] if argv is None else argv))
    except GezelError as error:
        return _said(str(error), error.exit_status)
    except BrokenPipeError:
        _give_up_stdout()  # the reader has enough; nothing more can be said
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _fault(error)


def _flushed(argv: list[str]) -> int:
    """Everything written while errors can still be told. A name that is no text is shown escaped, not refused."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def in_one_line(text: str) -> str:
    """Text that may quote anything, without what breaks a line or drives a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _said(message: str, status: int) -> int:
    print(f"gezel-rules: {in_one_line(message)}", file=sys.stderr)
    return status


def _fault(error: Exception) -> int:
    if os.environ.get(TRACE):
        raise error
    if isinstance(error, OSError) and error.strerror:
        _give_up_stdout()
        status = BAD_INPUT if isinstance(error, PermissionError) else FAILED
        return _said(f"{os.fsdecode(error.filename or 'output')}: {error.strerror.lower()}", status)
    return _said(f"a fault of gezel-rules itself: {type(error).__name__}: {error} ({TRACE}=1 shows where)", FAILED)


def _give_up_stdout() -> None:
    """What is still buffered goes nowhere, so that the interpreter's last flush cannot fail again."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        return


def _run(argv: list[str]) -> int:
    outer = _outer_parser()
    at = argv.index("--") if "--" in argv else len(argv)
    known = outer.parse_args(argv[:at])  # which would drop the "--" that the command needs
    known.rest += argv[at:]
    if known.command is None:
        outer.print_help()
        return 2
    if known.command not in COMMANDS:
        from gezel_rules.documents.source import did_you_mean

        outer.error(f"no command '{known.command}'{did_you_mean(known.command, COMMANDS)}")
    if known.command in LASTING:
        return _command(known)
    gc.disable()  # what lives for some milliseconds leaves nothing worth collecting
    try:
        return _command(known)
    finally:
        gc.enable()


def _command(known: argparse.Namespace) -> int:
    module = import_module(f"gezel_rules.cli.{known.command}")
    parser = OneLineParser(prog=f"gezel-rules {known.command}", description=COMMANDS[known.command])
    module.add_arguments(parser)
    _add_places(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    if not HELP & set(known.rest):
        parser.usage = ""  # argparse would work it out for its errors, which are one line here
    # What stands behind "--" is no option; argparse forgets that where options and words are mixed.
    plain = argparse.ArgumentParser.parse_args if "--" in known.rest else argparse.ArgumentParser.parse_intermixed_args
    parse = getattr(module, "parse", plain)
    args = parse(parser, known.rest, argparse.Namespace(**_chosen(known)))
    _refuse_empty(parser, args)
    status: int = module.run(args)
    return status


def _refuse_empty(parser: OneLineParser, args: argparse.Namespace) -> None:
    """An empty word is a variable somebody forgot to set; it must not count as 'not given'."""
    for name, value in vars(args).items():
        if value == "" and name not in MAY_BE_EMPTY:
            parser.error(f"{name.replace('_', '-')} is empty")


def _chosen(known: argparse.Namespace) -> dict[str, Any]:
    """Directories named before COMMAND, else by a variable (the store's is read where its default is), and layers."""
    policies, catalog = (os.environ.get(variable) for variable in ("GEZEL_POLICIES", "GEZEL_CATALOG"))
    return {
        "policies": known.policies or (_path(policies) if policies else None),
        "catalog": known.catalog or (_path(catalog) if catalog else None),
        "store": known.store,
        "layer": known.layer,
    }


def _outer_parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="gezel-rules",
        usage="gezel-rules [--policies DIR] [--catalog DIR] [--store DIR] COMMAND …",
        description="Launch local models by rules: every flag explained, every byte accounted for.",
        epilog="commands (each has its own --help; each takes --json):\n"
        + "\n".join(f"  {name:9} {says}" for name, says in COMMANDS.items())
        + ABOUT,
    )
    parser.add_argument("--version", action="version", version=f"gezel-rules {__version__}")
    _add_places(parser)
    parser.set_defaults(policies=None, catalog=None, store=None, layer=None)
    parser.add_argument("command", metavar="COMMAND", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    """The same before and after COMMAND; the later one counts."""
    for name, what in (
        ("policies", "the rules (default: those that came with gezel-rules)"),
        ("catalog", "models/ and hosts/ (default: those that came with gezel-rules)"),
        ("store", "fetched models (default: in the user's data directory)"),
    ):
        parser.add_argument(f"--{name}", metavar="DIR", type=_path, default=argparse.SUPPRESS, help=what)
    parser.add_argument(
        "--layer", metavar="FILE", type=_path, action="append", default=argparse.SUPPRESS,
        help="changes to lay over the rules, above those of site and user; may be repeated",
    )  # fmt: skip


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    from pathlib import Path

    return Path(text)
