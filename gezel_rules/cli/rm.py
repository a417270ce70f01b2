"""``gezel-rules rm MODEL``: remove a model from the store; a file that another model links to stays with that one."""

from __future__ import annotations

import argparse
import json

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.stored import installed_id, size_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="as 'ls' shows it")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises BadInput when it is not installed."""
    from gezel_rules.store.shelf import remove

    model_id = installed_id(args.model)
    freed = remove(session_of(args).store, model_id)
    if args.json:
        print(json.dumps({"model": model_id, "freed": freed}))
    else:
        print(f"{model_id} removed, {size_words(freed)} freed")
    return 0
