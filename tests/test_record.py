"""Our named tuples behave as those of ``typing``, and are made without it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from typing import NamedTuple as Typed

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.record import NamedTuple


class Ours(NamedTuple):
    """A place."""

    file: str
    line: int
    width: int = 1
    note: str | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.line + self.width


class Theirs(Typed):
    """A place."""

    file: str
    line: int
    width: int = 1
    note: str | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.line + self.width


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=2))
NAMES = st.sampled_from(["file", "line", "width", "note", "colour"])


def outcome(make: Any, *values: Any, **named: Any) -> Any:
    """The fields made, or which kind of error."""
    try:
        made = make(*values, **named)
    except (TypeError, ValueError) as error:
        return type(error)
    return tuple(made), made.file, made.line, made.width, made.note


@given(st.lists(VALUES, max_size=6), st.dictionaries(NAMES, VALUES, max_size=4))
def test_made_of_the_same_arguments(values: list[Any], named: dict[str, Any]) -> None:
    assert outcome(Ours, *values, **named) == outcome(Theirs, *values, **named)


@given(st.lists(VALUES, min_size=4, max_size=4), st.dictionaries(NAMES, VALUES, max_size=3))
def test_replaced_alike(values: list[Any], changed: dict[str, Any]) -> None:
    theirs = outcome(Theirs(*values)._replace, **changed)
    # An unknown field is a ValueError in Python 3.11 and 3.12, and a TypeError from 3.13 on; ours is a ValueError.
    expected = ValueError if theirs is TypeError else theirs
    assert outcome(Ours(*values)._replace, **changed) == expected


@given(st.lists(VALUES, min_size=4, max_size=4))
def test_alike_in_everything_else(values: list[Any]) -> None:
    ours, theirs = Ours(*values), Theirs(*values)
    assert ours == theirs == tuple(values)
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert Ours._make(values) == ours
    for twin in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert (type(twin), twin) == (Ours, ours)


def test_the_class_is_described_alike() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__bases__", "__annotations__"):
        mine, yours = getattr(Ours, name), getattr(Theirs, name)
        assert str(mine) == str(yours) or name == "__annotations__"  # typing keeps references, we keep the words
    assert Ours.__module__ == __name__
    assert Ours("a", 3, 4).end == 7


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Ours("a", 1).line = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Ours("a", 1).other = 2  # type: ignore[attr-defined]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match="Ours needs line"):
        Ours("a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Ours takes file, line, width, note, each once"):
        Ours("a", 1, file="b")  # type: ignore[misc]


def test_it_can_be_matched() -> None:
    match Ours("a", 1):
        case Ours(file, line=1):
            assert file == "a"
        case _:
            pytest.fail("not matched")


def test_typing_is_not_loaded() -> None:
    said = "import sys, gezel_rules.record; print('typing' in sys.modules)"
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-S", "-c", said], capture_output=True, text=True, cwd=root)
    assert done.stdout == "False\n", done.stderr
