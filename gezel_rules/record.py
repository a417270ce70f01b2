"""Named tuples that cost next to nothing to define: ``class Span(NamedTuple): …`` as with ``typing.NamedTuple``.

The one in ``typing`` evaluates every annotation and compiles a constructor, a quarter of a millisecond for each class:
with sixty of them a tenth of a warm ``plan``. Here annotations stay as they are written and one constructor serves all.
Type checkers see ``typing.NamedTuple``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; typing itself is left to those who need it

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    try:
        from _collections import _tuplegetter  # collections.namedtuple reads its fields with it
    except ImportError:
        from operator import itemgetter

        def _tuplegetter(place, doc):
            return property(itemgetter(place))

    def _new(cls, /, *values, **named):
        if named or len(values) != len(cls._fields):
            values = _filled(cls, values, named)
        return tuple.__new__(cls, values)

    def _filled(cls, values, named):
        """All values in order: those given by place, the rest by name or default. Raises TypeError."""
        rest, defaults = cls._fields[len(values) :], cls._field_defaults
        try:
            if named and len(named) == len(rest):  # the usual case: every field by name
                return values + tuple(map(named.__getitem__, rest))
        except KeyError:
            pass
        try:
            values += tuple([named.pop(field) if field in named else defaults[field] for field in rest])
        except KeyError as missing:
            raise TypeError(f"{cls.__name__} needs {missing.args[0]}") from None
        if named or len(values) != len(cls._fields):
            raise TypeError(f"{cls.__name__} takes {', '.join(cls._fields)}, each once")
        return values

    def _replace(self, /, **changed):
        if unknown := changed.keys() - set(self._fields):
            raise ValueError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        return tuple.__new__(type(self), map(changed.get, self._fields, self))

    def _asdict(self):
        return dict(zip(self._fields, self, strict=True))

    def _plain(self):
        return tuple(self)

    def _repr(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    _COMMON = {
        "__slots__": (), "__new__": _new, "__repr__": _repr, "__getnewargs__": _plain,
        "_make": classmethod(lambda cls, values: cls(*values)), "_replace": _replace, "_asdict": _asdict,
    }  # fmt: skip

    class _Meta(type):
        """Makes a tuple class of a class body; the class itself is of the plain kind."""

        def __new__(cls, name, bases, body):
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            getters = {field: _tuplegetter(place, "") for place, field in enumerate(fields)}
            named = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type(name, (tuple,), {**_COMMON, **body, **getters, **named})

    NamedTuple = type.__new__(_Meta, "NamedTuple", (), {})
