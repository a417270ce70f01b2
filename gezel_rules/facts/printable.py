"""Text from outside, made fit for one line of a terminal."""

from __future__ import annotations

LONGEST = 200  # characters: more of an unknown text helps nobody


def printable(text: str, longest: int = LONGEST) -> str:
    """The text without control characters (they could drive the terminal), cut to ``longest`` characters."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"
