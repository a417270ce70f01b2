"""Text from outside, made fit for one line of a terminal."""

from __future__ import annotations

LONGEST = 200  # characters: more of an unknown text helps nobody


def printable(text: str, longest: int = LONGEST) -> str:
    """The text without control characters (they could drive the terminal), cut to ``longest`` characters."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


HARMLESS = "\n\t\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Control characters that move nothing but what follows; joiners make one emoji, or one letter, of several."""


def visible(text: str) -> str:
    """The text with control characters shown as escapes, but for the harmless ones: read, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in HARMLESS else ascii(c)[1:-1] for c in text)
