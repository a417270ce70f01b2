"""The commands with a plan made by hand: ``python drive.py run|serve ENGINE MODEL PROMPT ARGV…``.

Stands in for the planner, so that launch, answer and stop are tested with argvs no plan would make.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gezel_rules import places
from gezel_rules.cli import run as run_command
from gezel_rules.cli import serve as serve_command
from gezel_rules.engines.llama_cpp.find import find_engine
from gezel_rules.errors import GezelError
from gezel_rules.logs.sealed import log_policy
from gezel_rules.logs.watch import classify
from gezel_rules.planner.policies import read_policies
from gezel_rules.runtime.launch import Guide, Order


def prepare(args: argparse.Namespace, ground: run_command.Ground) -> run_command.Prepared:
    engine = find_engine(args.engine, os.environ)
    policy = log_policy(read_policies(places.policies_dir(), None))

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if args.phase_file:  # tells the test that preparing begins, so that it can interrupt it
        Path(args.phase_file).touch()
    order = Order(engine, ("-lv", "4", "-m", args.model, *args.argv), {}, "hand-made", record={"plan": list(args.argv)})
    guide = Guide(lambda lines, status: classify(lines, policy, None, status), say=say)
    return run_command.Prepared(order, args.endpoint, guide)


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
    args, args.argv = parser.parse_known_args()
    try:
        command = serve_command if args.command == "serve" else run_command
        return command.run(args, prepare)
    except GezelError as error:
        print(f"gezel-rules: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
