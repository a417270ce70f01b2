"""The commands with a plan made by hand: ``python drive.py run|serve ENGINE MODEL PROMPT ARGV…``.

Stands in for the planner, so that launch, answer and stop are tested with argvs no plan would make.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from shipped_rules import shipped_judge

from gezel_rules.cli import run as run_command
from gezel_rules.cli import serve as serve_command
from gezel_rules.engines.llama_cpp.contract import CONTRACT
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.find import find_engine
from gezel_rules.errors import GezelError
from gezel_rules.runtime.order import Guide, Order
from gezel_rules.session import Conditions, Prepared, Session


def hand_made(args: argparse.Namespace) -> Callable[..., Prepared]:
    """What takes the place of ``Session.prepare``."""

    def prepare(session: Session, model: str, conditions: Conditions, say: Callable[[str], None]) -> Prepared:
        engine = find_engine(conditions.engine, session.environ)
        if args.phase_file:  # tells the test that preparing begins, so that it can interrupt it
            Path(args.phase_file).touch()
        record = {"plan": list(args.argv)}
        order = Order(engine, CONTRACT, ("-lv", "4", "-m", model, *args.argv), {}, "hand-made", record=record)
        guide = Guide(shipped_judge(None), say=say)
        return Prepared(order, args.endpoint, guide, session.rules(FAMILY))

    return prepare


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("engine")
    parser.add_argument("model")
    parser.add_argument("prompt", nargs="?")
    parser.add_argument("--endpoint", default="completion")
    parser.add_argument("--phase-file")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(policies=None, catalog=None, store=None, layer=None, set=[])
    args, args.argv = parser.parse_known_args()
    Session.prepare = hand_made(args)
    try:
        command = serve_command if args.command == "serve" else run_command
        return command.run(args)
    except GezelError as error:
        print(f"gezel-rules: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
