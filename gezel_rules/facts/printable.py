"""Text from outside, made fit for one line of a terminal."""

from __future__ import annotations

LONGEST = 200  # characters: more of an unknown text helps nobody


def printable(text: str, longest: int = LONGEST) -> str:
    """The text without control characters (they could drive the terminal), cut to ``longest`` characters."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def visible(text: str) -> str:
    """The text with control characters shown as escapes, but for line feeds and tabs: read, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
