"""Which options and settings carry secrets: these are shown as set, their value never."""

from __future__ import annotations

import re

_SECRET = frozenset({"key", "keys", "token", "password", "passphrase", "secret", "secrets", "credentials", "auth"})
_NAMED_ELSEWHERE = frozenset({"file", "path", "type"})  # --api-key-file names a file, it holds no secret itself
_MAY_HOLD = frozenset({"json", "headers"})  # free text in which people put tokens
_USER_INFO = r"(?<=://)[^/@\s]*@"
_QUERY = r"(?<=://)(\S*?)\?\S+"

HIDDEN = "(set, not shown)"


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
