"""``gezel-rules policy format [FILE|DIR …]``: files in the one layout, or which are not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from gezel_rules.author.layout import formatted
from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import count, json_text
from gezel_rules.documents.source import read_text
from gezel_rules.errors import BadInput, Problem, why
from gezel_rules.store.durable import replace_durably


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action's own arguments."""
    parser.add_argument(
        "what", metavar="FILE|DIR", nargs="*", help="files, or folders with all below them (default: the policies)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when a file would change")


def run(args: argparse.Namespace) -> int:
    """Format; 0, or 1 under ``--check`` when something would change. Raises BadInput when a file is at fault, and
    nothing is written then."""
    paths = list(_files([Path(name) for name in args.what] or [session_of(args).policies]))
    changed = _changed(paths)
    for path, text in () if args.check else changed.items():
        _write(path, text)
    if args.json:
        print(json_text({"files": len(paths), "changed": [str(path) for path in changed]}))
    else:
        for path in changed:
            print(f"{'would change' if args.check else 'formatted'}: {path}")
        print(f"{count(len(paths), 'file')}: {len(changed)} {'to format' if args.check else 'formatted'}")
    return int(args.check and bool(changed))


def _files(named: Sequence[Path]) -> Iterator[Path]:
    """Each file once, those of a folder in name order."""
    seen: set[Path] = set()
    for name in named:
        found = sorted(path for path in name.rglob("*.yaml") if path.is_file()) if name.is_dir() else [name]
        if not found:
            raise BadInput(f"{name}: no .yaml files")
        for path in found:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def _changed(paths: Sequence[Path]) -> dict[Path, str]:
    """The new text of every file that is not as it should stand."""
    found: dict[Path, str] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            before = read_text(path).text
            if (after := formatted(str(path), before)) != before:
                found[path] = after
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(problems)
    return found


def _write(path: Path, text: str) -> None:
    place = path.resolve()  # a link stays a link
    try:
        mode = place.stat().st_mode
        replace_durably(place, text.encode())
        place.chmod(mode)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({why(error)})") from None
