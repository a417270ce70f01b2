"""How a running llama-server is spoken to (0.6.0-dev, run)."""

from __future__ import annotations

from gezel_rules.engines.family import Contract
from gezel_rules.engines.openai_http import Address, chat, complete, status

HEALTH, GUARDED = "/health", "/v1/models"


def ready(address: Address, key: str, seconds: float) -> bool:
    """Whether the model is loaded (``/health`` answers 200 then, and 503 before), and the server takes this key and no
    other: health is public, the list of models is not."""
    if status(address, HEALTH, None, seconds) != 200:
        return False
    return status(address, GUARDED, key, seconds) == 200 and status(address, GUARDED, "wrong", seconds) == 401


CONTRACT = Contract(
    key_variable="LLAMA_API_KEY",
    key_tail="-key",  # the server prints the last four characters of a key: let them say nothing
    ready=ready,
    requests={"completion": complete, "chat": chat},
)
