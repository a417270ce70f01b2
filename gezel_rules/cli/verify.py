"""``gezel-rules verify MODEL``: hash a stored model again and hold it against the digests recorded at its install."""

from __future__ import annotations

import argparse
import json

from gezel_rules.cli import request
from gezel_rules.cli.rm import installed_id


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="as 'ls' shows it")


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 when a file is not what was installed. Raises BadInput when the model is not installed."""
    from gezel_rules.store.progress import progress_for
    from gezel_rules.store.shelf import verify

    model_id = installed_id(args)
    progress = progress_for()
    begun: set[str] = set()

    def moved(name: str, at: int, size: int) -> None:
        if name not in begun:
            begun.add(name)
            progress.begin(name, size)
        progress.move(name, at)

    try:
        verdicts = verify(request.store_of(args), model_id, moved)
    finally:
        progress.close()
    bad = [verdict for verdict in verdicts if verdict.problem]
    if args.json:
        files = [{"name": v.file.name, "sha256": v.file.sha256, "problem": v.problem or None} for v in verdicts]
        print(json.dumps({"model": model_id, "verified": not bad, "files": files}, indent=2))
    else:
        for verdict in verdicts:
            print(f"{verdict.file.name}: {verdict.problem or 'as recorded, sha256 ' + verdict.file.sha256}")
        if bad:
            print(f"fetch it again: gezel-rules pull {model_id}")
    return 1 if bad else 0
