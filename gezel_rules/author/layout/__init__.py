"""The one layout of a policy file, its tests beside it, or a layer: comments stay, and so does every meaning."""

from __future__ import annotations

import re

from gezel_rules.author.layout.indent import indented
from gezel_rules.author.layout.lines import parsed, tidy
from gezel_rules.author.layout.order import ordered
from gezel_rules.author.layout.rows import aligned
from gezel_rules.documents.declare import Shape
from gezel_rules.documents.node import Node
from gezel_rules.errors import BadInput
from gezel_rules.policy.file import POLICY
from gezel_rules.policy.layer_file import LAYER

_ODD = re.compile("[\r\x85\u2028\u2029]")
"""What YAML may take for the end of a line, and editors do not."""


def formatted(name: str, text: str) -> str:
    """The text as it should stand: keys of heads, tables, decisions and rules in their declared order, two blanks for a
    level, rows aligned, no blanks at ends, one empty line at most, LF. Keys of tests, of what a log policy holds, and
    between brackets stay in the order they are written in.

    Raises BadInput for what is no YAML, and for the few texts that cannot be laid out without a change of meaning.
    """
    root = parsed(text, name)
    if odd := _ODD.search(text.replace("\r\n", "\n")):
        raise BadInput(f"{name}: left as it is: lines end with U+{ord(odd[0]):04X} (expected LF)")
    found = tidy(text.replace("\r\n", "\n"))
    if shape := _shape(root):
        found = ordered(found, shape)
    found = tidy(aligned(indented(name, found)))
    if parsed(found, name).plain() != root.plain():
        raise BadInput(f"{name}: left as it is: its layout is part of what it says (a text that ends the file?)")
    return found


def _shape(root: Node) -> Shape | None:
    """The declaration of a policy or layer; none of any other file."""
    keys = root.value if isinstance(root.value, dict) else {}
    if "policy" in keys:
        return POLICY
    return LAYER if keys.keys() & {"tables", "decisions"} and "tests" not in keys else None
