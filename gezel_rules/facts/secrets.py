"""Which options and settings carry secrets: these are shown as set, their value never."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_SECRET = frozenset({"key", "keys", "token", "password", "passphrase", "secret", "secrets", "credentials", "auth"})
_NAMED_ELSEWHERE = frozenset({"file", "path", "type"})  # --api-key-file names a file, it holds no secret itself
_MAY_HOLD = frozenset({"json", "headers"})  # free text in which people put tokens
_USER_INFO = r"(?<=://)[^/@\s]*@"
_QUERY = r"(?<=://)(\S*?)\?\S+"

HIDDEN = "(set, not shown)"
SHORTEST = 6
"""Characters of a secret that is looked for in other texts: a shorter one stands in half of them."""


def is_secret(name: str) -> bool:
    """Whether an option (``--api-key``), variable (``HF_TOKEN``) or setting of this name carries a secret."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    if words and words[-1] in _NAMED_ELSEWHERE:
        return False
    return any(word in _SECRET for word in words) or (bool(words) and words[-1] in _MAY_HOLD)


def without_secrets(value: str) -> str:
    """The value with the user, password and query of any URL in it left out."""
    if "://" not in value:
        return value
    return re.sub(_QUERY, r"\1?…", re.sub(_USER_INFO, "…@", value))


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What the variables hold whose names say that they carry a secret (``HF_TOKEN``)."""
    return tuple(value for name, value in environ.items() if len(value) >= SHORTEST and is_secret(name))


def secret_arguments(argv: Sequence[str]) -> Iterator[str]:
    """The values that an argv gives to options which carry secrets, apart or behind ``=``."""
    for token, after in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, value = token.partition("=")
        if name.startswith("-") and is_secret(name):
            yield value if equals else after


def hidden(argv: Sequence[str]) -> list[str]:
    """An argv without the values of options that carry secrets."""
    shown, hide = [], False
    for token in argv:
        name, equals, _ = token.partition("=")
        secret = name.startswith("-") and is_secret(name)
        shown.append(HIDDEN if hide else f"{name}={HIDDEN}" if secret and equals else token)
        hide = secret and not equals and not hide
    return shown


def blotted(data: Any, secrets: Collection[str]) -> Any:
    """Plain data with the secrets in its texts blotted out, those in URLs too; the keys of mappings stay."""
    if isinstance(data, str):
        for secret in secrets:
            data = data.replace(secret, "***") if secret else data
        return without_secrets(data)
    if isinstance(data, Mapping):
        return {key: blotted(value, secrets) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [blotted(item, secrets) for item in data]
    return data
