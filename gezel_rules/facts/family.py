"""Which engine family a catalog entry or a described host speaks of."""

from __future__ import annotations

from gezel_rules.documents.declare import Name, optional

ENGINE_FAMILY = optional(
    Name("engine_families", "engine family"), "The engine family that runs it.", default="llama-cpp"
)
"""Any text here: which families there are, ``engines`` knows."""
