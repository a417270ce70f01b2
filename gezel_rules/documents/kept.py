"""YAML files read before: the same nodes with the same places, without the parser (whose import alone takes longer
than the rest of a warm plan). Kept as JSON under the digest of the file's text: a copy, never a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gezel_rules.cache import keep
from gezel_rules.checksum import checksum
from gezel_rules.documents.source import Node, Text, parse_yaml, read_text
from gezel_rules.owned import read_owned

FORMAT = 1


def load_kept(path: Path, name: str, cache: Path | None) -> Node:
    """The document of a file, as ``load_yaml`` gives it; ``cache`` is a directory (``None``: nothing is kept).

    Raises BadInput like ``load_yaml``.
    """
    text = read_text(path, name)
    if cache is None:
        return parse_yaml(text)
    kept = cache / f"yaml-{checksum([f'{FORMAT} {text.text}'.encode()]).hex()}.json"
    found = _thaw(kept, text)
    if found is None:
        found = parse_yaml(text)
        keep(kept, json.dumps(_plain(found), separators=(",", ":")).encode())
    return found


def _thaw(path: Path, text: Text) -> Node | None:
    data = read_owned(path)
    try:
        return _node(json.loads(data), text) if data else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None  # cut short or of another make: parse again


def _plain(node: Node) -> list[Any]:
    value = node.value
    if isinstance(value, dict):
        value = {key: [_plain(child.key), _plain(child)] for key, child in value.items() if child.key}
    elif isinstance(value, list):
        value = [_plain(child) for child in value]
    return [value, node.line, node.column, node.start, node.end]


def _node(row: list[Any], text: Text) -> Node:
    value, line, column, start, end = row
    if isinstance(value, dict):
        value = {key: _entry(pair, text) for key, pair in value.items()}
    elif isinstance(value, list):
        value = [_node(child, text) for child in value]
    return Node(value, text, line, column, start, end)


def _entry(pair: list[Any], text: Text) -> Node:
    node = _node(pair[1], text)
    node.key = _node(pair[0], text)
    return node
