"""``gezel-rules rm MODEL``: remove a model from the store; a file that another model links to stays with that one."""

from __future__ import annotations

import argparse
import json

from gezel_rules.cli import request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="as 'ls' shows it")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises BadInput when it is not installed."""
    from gezel_rules.cli.ls import size_words
    from gezel_rules.store.shelf import remove

    model_id = installed_id(args)
    freed = remove(request.store_of(args), model_id)
    if args.json:
        print(json.dumps({"model": model_id, "freed": freed}))
    else:
        print(f"{model_id} removed, {size_words(freed)} freed")
    return 0


def installed_id(args: argparse.Namespace) -> str:
    """The id MODEL goes by in the store: as it is, or as a reference reads (``user/repo`` for ``hf://user/repo:…``)."""
    from gezel_rules.catalog.names import id_fault
    from gezel_rules.catalog.references import parse_reference
    from gezel_rules.store.reference_plan import reference_id

    model = str(args.model)
    return model if not id_fault(model) else reference_id(parse_reference(model))
