"""Shipped policy files with one thing changed, drawn by chance: a cell, a column, a type, a piece of structure, an
expression."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

STRANGE = (
    None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**63 - 1, 2**63, 2**80, -(2**63), 0.5, -0.0, 1.5, 1e-9, 1e300, 1e308,
    "", " ", "none", "nothing", "0", "-", "--", "--model", "-c", "{", "}", "{}", "{0}", "{x}", "{moved.x}",
    "{moved!r:>99}", "{ctx}", "%s", "\\", "a b", "ä→", "\x1b[31m", "x" * 300,
    "a\nb", "f16", "cuda", "cpu", "(", "[", "(?P<host>.)",
    "(?P<host>.*)(?P<port>.*)", ".*", "^$", "model.layers", "kv.type", "[]", "true", [], [[]], ["a", "a"], [0], [None],
    {}, {"a": 1}, {"rows": {}}, {"kind": "text"},
)  # fmt: skip
_WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*|\d+|'[^']*'|[<>=!]=?|[-+*/]+|\b(?:and|or|not|in|is)\b")
_EXPRESSIONS = ("when", "then", "over", "because")
_DECLARATIONS = ("kind", "words", "rows_of", "minimum", "maximum", "optional", "default", "of", "unit", "same_rows_as")


class Mutant(NamedTuple):
    """A file of the set as it is after a change, and the change in words."""

    file: str
    data: Any
    says: str


def mutants(files: dict[str, Any], chance: random.Random) -> Iterator[Mutant]:
    """Mutants without end, of plain data by the names of files."""
    places = {name: list(_places(data)) for name, data in files.items()}
    names, weights = list(files), [len(found) for found in places.values()]
    while True:
        file = chance.choices(names, weights)[0]
        path = _place(places[file], chance)
        data = copy.deepcopy(files[file])
        said = chance.choice(_CHANGES)(data, path, chance)
        if chance.random() < 0.15:
            said += "; " + chance.choice(_CHANGES)(data, _place(list(_places(data)) or [()], chance), chance)
        if data != files[file]:
            yield Mutant(file, data, said)


def text_of(mutant: Mutant) -> str:
    """The mutant as the text of a file (JSON is YAML)."""
    return json.dumps(mutant.data, indent=1, ensure_ascii=True, allow_nan=False)


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from _places(child, (*path, key))


def _place(paths: list[Path], chance: random.Random) -> Path:
    """A place, with those of tables and of their declarations three times as likely as decisions and log patterns."""
    found = chance.choice(paths)
    return found if "tables" in found[:1] or chance.random() < 0.4 else chance.choice(paths)


def _at(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _set(data: Any, path: Path, value: Any) -> str:
    _at(data, path[:-1])[path[-1]] = value
    return f"{_said(path)} = {value!r:.80}"


def _said(path: Path) -> str:
    return ".".join(map(str, path))


def _strange(data: Any, path: Path, chance: random.Random) -> str:
    return _set(data, path, copy.deepcopy(chance.choice(STRANGE)))


def _near(data: Any, path: Path, chance: random.Random) -> str:
    """A value of the same kind: another number, the text with a character less, the flag turned."""
    value = _at(data, path)
    if isinstance(value, bool):
        return _set(data, path, not value)
    if isinstance(value, (int, float)):
        numbers = (0, -value, value + 1, value - 1, value * 10, value / 2, float(value), value * 10**9, 1, 2, 3)
        return _set(data, path, chance.choice(numbers))
    if isinstance(value, str) and value:
        at = chance.randrange(len(value))
        return _set(
            data, path, chance.choice((value[:at] + value[at + 1 :], value[::-1], value + value, value.upper()))
        )
    return _strange(data, path, chance)


def _cousin(data: Any, path: Path, chance: random.Random) -> str:
    """What stands in the same column of another row, or anywhere under the same key."""
    alike = [other for other in _places(data) if other[-1] == path[-1] and len(other) == len(path) and other != path]
    if not alike:
        alike = [other for other in _places(data) if other != path]
    return _set(data, path, copy.deepcopy(_at(data, chance.choice(alike)))) if alike else "nothing"


def _elsewhere(data: Any, path: Path, chance: random.Random) -> str:
    """Any other value of the file."""
    return _set(data, path, copy.deepcopy(_at(data, chance.choice(list(_places(data))))))


def _gone(data: Any, path: Path, chance: random.Random) -> str:
    del _at(data, path[:-1])[path[-1]]
    return f"no {_said(path)}"


def _renamed(data: Any, path: Path, chance: random.Random) -> str:
    """A key that is called otherwise, in its place."""
    parent, key = _at(data, path[:-1]), path[-1]
    if not isinstance(parent, dict):
        return _gone(data, path, chance)
    new = chance.choice((f"{key}x", "a", "", "none", " ", "0", "{x}", "a.b", "a-b", *map(str, parent)))
    rest = list(parent.items())
    parent.clear()
    parent.update((new if name == key else name, value) for name, value in rest)
    return f"{_said(path)} is called {new!r}"


def _more(data: Any, path: Path, chance: random.Random) -> str:
    """One more row, cell or item like this one."""
    parent, value = _at(data, path[:-1]), copy.deepcopy(_at(data, path))
    if isinstance(parent, list):
        parent.insert(chance.randrange(len(parent) + 1), value)
        return f"{_said(path)} twice"
    new = chance.choice(("a", "b-c", "d e", "", "--zzz", f"{path[-1]}2"))
    parent[new] = value
    return f"{_said(path)} also as {new!r}"


def _moved(data: Any, path: Path, chance: random.Random) -> str:
    """The rows or items beside it in another order."""
    parent = _at(data, path[:-1])
    items = list(parent.items()) if isinstance(parent, dict) else list(parent)
    chance.shuffle(items)
    parent.clear()
    parent.update(items) if isinstance(parent, dict) else parent.extend(items)
    return f"{_said(path[:-1])} in another order"


def _declared(data: Any, path: Path, chance: random.Random) -> str:
    """A table that says otherwise what its columns or rows are."""
    told = [p for p in _places(data) if p[0] == "tables" and p[-1] in _DECLARATIONS and ("columns" in p or "of" in p)]
    if not told:
        return _strange(data, path, chance)
    place = chance.choice(told)
    return chance.choice((_gone, _near, _cousin, _strange))(data, place, chance)


def _rewritten(data: Any, path: Path, chance: random.Random) -> str:
    """An expression with one word of it exchanged."""
    texts = [p for p in _places(data) if p[-1] in _EXPRESSIONS and isinstance(_at(data, p), str)]
    if not texts:
        return _near(data, path, chance)
    place = chance.choice(texts)
    text, other = _at(data, place), _at(data, chance.choice(texts))
    words, others = list(_WORD.finditer(text)), _WORD.findall(other)
    if not words or not others:
        return _set(data, place, other)
    word = chance.choice(words)
    new = chance.choice(
        (*others, "none", "0", "10000000000", f"not ({word[0]})", f"-{word[0]}", f"{word[0]} * {word[0]}")
    )
    return _set(data, place, text[: word.start()] + new + text[word.end() :])


_CHANGES: tuple[Callable[[Any, Path, random.Random], str], ...] = (
    _strange, _strange, _near, _near, _near, _cousin, _cousin, _cousin, _elsewhere, _gone, _gone, _renamed, _more,
    _moved, _declared, _rewritten, _rewritten,
)  # fmt: skip
