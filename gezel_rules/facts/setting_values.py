"""What a setting may be: what a person wrote, turned into a value, or one line saying what it must be."""

from __future__ import annotations

import math
import re
from typing import Any

from gezel_rules.documents.source import did_you_mean
from gezel_rules.facts.printable import printable
from gezel_rules.facts.secrets import is_secret
from gezel_rules.record import NamedTuple

LARGEST = (1 << 63) - 1

WHOLE = r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9](?:_?[0-9]){0,18})"
AMOUNT = rf"({WHOLE})(?:\.([0-9]{{1,9}}))?\s*([kKmMgGtT]?)(i?[bB])?"
"""A number as people write it: whole, decimals, scale, byte."""
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
FLAGS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_KINDS = {"text": "text", "number": "a number", "flag": "on or off", "list": "a list of words"}
_EXAMPLES = {"tokens": " (65536 or 64k)", "bytes": " (24 GiB, 500 MB or 1024)"}


class SettingSpec(NamedTuple):
    """What a setting may be. ``type``: text, integer, number, flag, list; ``choices``: the words it may be (``none``
    among them where that is a value); ``unit``: bytes, tokens, …; ``minimum``, ``maximum``: the least and the greatest
    number."""

    name: str
    type: str
    choices: tuple[str, ...] | None = None
    unit: str = ""
    minimum: int | float | None = None
    maximum: int | float | None = None


class WrongValueError(ValueError):
    """The value is not what the setting must be; the text says what it must be, and is fit to be shown."""


def value_of(spec: SettingSpec, raw: Any) -> Any:
    """The setting's value from text or from a YAML scalar or list. Raises WrongValueError.

    Token counts may end in k or M (times 1,024); bytes in k, M, G, T and KiB … TiB (1,024) or kB … TB (1,000).
    """
    if spec.choices is not None:
        return _choice(spec, raw)
    value = _CONVERTERS[spec.type](spec, raw)
    if spec.minimum is not None and isinstance(value, int | float) and value < spec.minimum:
        raise WrongValueError(f"must be {_wanted(spec)}, at least {spec.minimum:,}, not {_shown(spec, raw)}")
    if spec.maximum is not None and isinstance(value, int | float) and value > spec.maximum:
        raise WrongValueError(f"must be {_wanted(spec)}, at most {spec.maximum:,}, not {_shown(spec, raw)}")
    return value


def _choice(spec: SettingSpec, raw: Any) -> str:
    choices = spec.choices or ()
    if not isinstance(raw, str) or raw not in choices:
        hint = did_you_mean(raw, choices) if isinstance(raw, str) and not is_secret(spec.name) else ""
        raise WrongValueError(f"must be one of {', '.join(choices)}, not {_shown(spec, raw)}{hint}")
    return raw


def _wrong(spec: SettingSpec, raw: Any) -> WrongValueError:
    return WrongValueError(f"must be {_wanted(spec)}, not {_shown(spec, raw)}")


def _wanted(spec: SettingSpec) -> str:
    if spec.type != "integer":
        return _KINDS[spec.type]
    return "a whole number" + (f" of {spec.unit}{_EXAMPLES.get(spec.unit, '')}" if spec.unit else "")


def _shown(spec: SettingSpec, raw: Any) -> str:
    if raw is None:
        return "nothing"
    if isinstance(raw, dict | list):
        return "a mapping" if isinstance(raw, dict) else "a list"
    if is_secret(spec.name):
        return "what was given"
    return f"'{printable(str(raw), 60)}'" if not isinstance(raw, bool) else str(raw).lower()


def _text(spec: SettingSpec, raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise _wrong(spec, raw)
    return raw


def _integer(spec: SettingSpec, raw: Any) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        value: int | None = raw
    else:
        value = _amount(raw.strip(), spec.unit) if isinstance(raw, str) else None
    if value is None or abs(value) > LARGEST:
        raise _wrong(spec, raw)
    return value


def _amount(text: str, unit: str) -> int | None:
    """``64k``, ``1.5 GiB``, ``65,536``: a whole number of the unit, or ``None``."""
    match = re.fullmatch(AMOUNT, text)
    if match is None:
        return None
    whole, decimals, scale, byte = match[1].replace(",", "").replace("_", ""), match[2] or "", match[3], match[4]
    if (
        (byte and unit != "bytes")
        or (scale and unit not in ("bytes", "tokens"))
        or (byte and not scale and len(byte) > 1)
    ):
        return None
    base = 1000 if byte in ("B", "b") and scale else 1024
    scaled, left = divmod(int(whole + decimals) * base ** _POWERS[scale.lower()], 10 ** len(decimals))
    return None if left else scaled


def _number(spec: SettingSpec, raw: Any) -> float:
    try:
        value = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(spec, raw)
    return value


def _flag(spec: SettingSpec, raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    value = FLAGS.get(str(raw).strip().lower()) if isinstance(raw, str | int) else None
    if value is None:
        raise _wrong(spec, raw)
    return value


def _list(spec: SettingSpec, raw: Any) -> list[str]:
    """A YAML list of words; or text, split as a shell splits it."""
    if isinstance(raw, list):
        return [_text(spec, item if isinstance(item, str) else str(item)) for item in raw]
    if not isinstance(raw, str):
        raise _wrong(spec, raw)
    import shlex

    try:
        return shlex.split(raw)
    except ValueError as error:
        raise WrongValueError(f"must be {_wanted(spec)}: {str(error).lower()}") from None


_CONVERTERS = {"text": _text, "integer": _integer, "number": _number, "flag": _flag, "list": _list}
