"""``gezel-rules verify [MODEL]``: hash a stored model again; without MODEL, look the whole store over for leftovers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import json_text
from gezel_rules.cli.stored import installed_id
from gezel_rules.errors import BadInput
from gezel_rules.facts.printable import printable

if TYPE_CHECKING:
    from gezel_rules.store.integrity import HashedFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="as 'ls' shows it; without it, the store as a whole")
    parser.add_argument(
        "--repair", action="store_true", help="without MODEL: delete what crashes left and nobody needs"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when something is not as it should be. Raises BadInput when the model is not installed."""
    if args.model is None:
        return _look_over(args)
    if args.repair:
        raise BadInput("--repair goes without MODEL; a damaged model is repaired by 'gezel-rules pull'")
    model_id = installed_id(args.model)
    verdicts = _hashed(args, model_id)
    bad = [verdict for verdict in verdicts if verdict.problem]
    if args.json:
        files = [{"name": v.file.name, "sha256": v.file.sha256, "problem": v.problem or None} for v in verdicts]
        print(json_text({"model": model_id, "verified": not bad, "files": files}))
    else:
        for verdict in verdicts:
            print(f"{verdict.file.name}: {verdict.problem or 'as recorded, sha256 ' + verdict.file.sha256}")
        if bad:
            print(f"fetch it again: gezel-rules pull {model_id}")
    return 1 if bad else 0


def _hashed(args: argparse.Namespace, model_id: str) -> list[HashedFile]:
    from gezel_rules.store.progress import progress_for
    from gezel_rules.store.shelf import verify

    progress = progress_for()
    begun: set[str] = set()

    def moved(name: str, at: int, size: int) -> None:
        if name not in begun:
            begun.add(name)
            progress.begin(name, size)
        progress.move(name, at)

    try:
        return verify(session_of(args).store, model_id, moved)
    finally:
        progress.close()


def _look_over(args: argparse.Namespace) -> int:
    """Names and stats only: no contents are read."""
    from gezel_rules.decisions.words import say_bytes
    from gezel_rules.store.leftovers import leftovers, repair

    store = session_of(args).store
    gone = repair(store) if args.repair else []
    found = leftovers(store)
    if args.json:
        told = [{**item._asdict(), "path": str(item.path)} for item in found]
        print(json_text({"leftovers": told, "deleted": [str(item.path) for item in gone]}))
        return 1 if found else 0
    for item in gone:
        print(f"deleted {printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}")
    for item in found:
        advice = item.advice or "harmless: 'gezel-rules verify --repair' deletes it"
        print(f"{printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}; {advice}")
    if not found and not gone:
        print(f"{printable(str(store))}: nothing left behind; 'gezel-rules verify MODEL' hashes a model again")
    return 1 if found else 0
