"""What would steer the engine behind our back: its own environment variables and its own configuration files.

Read, shown, never changed. llama.cpp takes, lowest first: ``/etc/llama.cpp/config.ini``, the user's
``$XDG_CONFIG_HOME/llama.cpp/config.ini`` (else ``~/.config``; on Windows ``%PROGRAMDATA%`` and ``%APPDATA%``), the
variables its ``--help`` names, and then the command line, which wins over all of them. In a file the lines before
any section and those of ``[default]`` stand above ``[*]``; other sections do not count (tried on 0.6.0-dev).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gezel_rules.engines.family import OutsideSetting
from gezel_rules.facts.printable import printable
from gezel_rules.facts.secrets import HIDDEN, is_secret, without_secrets
from gezel_rules.record import NamedTuple

MAX_FILE_BYTES = 1 << 20
PREFIX = "LLAMA_ARG_"

_DEFAULT, _EVERY = "default", "*"
_RESERVED_KEY = "version"
_SECTION = re.compile(r"\[[ \t]*([^\]]+?)[ \t]*\][ \t]*(?:[;#].*)?")
_ENTRY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(.*?)[ \t]*(?:[;#].*)?")
_NOTHING = re.compile(r"[ \t]*(?:[;#].*)?")


class _Entry(NamedTuple):
    key: str
    value: str
    line: int


def settings_outside(
    environ: Mapping[str, str],
    root: Path = Path("/"),
    *,
    flags: Sequence[str],
    variables: Mapping[str, tuple[str, ...]],
    platform: str = sys.platform,
) -> list[OutsideSetting]:
    """Everything set outside, lowest precedence first.

    ``flags`` and ``variables`` are the engine's own (``builds.Build``): an engine that names no variables (the
    embedded one) reads neither variables nor files. ``root`` holds ``etc``.
    """
    if not variables:
        return []
    found: list[OutsideSetting] = []
    for path in config_files(environ, root, platform):
        found += _from_file(path, flags, variables)
    found += _from_environment(environ, variables)
    return _settled(found)


def config_files(environ: Mapping[str, str], root: Path, platform: str) -> list[Path]:
    """Where the engine looks for its configuration, lowest precedence first."""
    if platform == "win32":
        folders = [Path(folder) for name in ("PROGRAMDATA", "APPDATA") if (folder := environ.get(name))]
    else:
        folders = [root / "etc"]
        if home := environ.get("XDG_CONFIG_HOME"):
            folders.append(Path(home))
        elif home := environ.get("HOME"):
            folders.append(Path(home) / ".config")
    return [folder / "llama.cpp" / "config.ini" for folder in folders]


def _from_file(path: Path, flags: Sequence[str], variables: Mapping[str, tuple[str, ...]]) -> Iterator[OutsideSetting]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    entries, wrong = _parse(text)
    if wrong:
        yield OutsideSetting("", "", f"{path}:{wrong}", (), False, "cannot be read as INI: the engine will not start")
        return
    for entry in entries:
        names = _names_of(entry.key, flags, variables)
        source = f"{path}:{entry.line}"
        if names:
            option = _spelled(entry.key, names)
            yield OutsideSetting(option, _shown(option, entry.value), source, names, True)
        else:
            shown = _shown(entry.key, entry.value)
            yield OutsideSetting(printable(entry.key), shown, source, (), False, "this engine has no such option")


def _parse(text: str) -> tuple[list[_Entry], int]:
    """The entries that count, lowest first, and the line the engine stumbles over (0: none).

    A section that comes twice starts anew; of a key that comes twice the last counts; keys apply in their order of
    letters, so of two names of one option the later letter wins.
    """
    sections: dict[str, dict[str, _Entry]] = {}
    current = sections.setdefault(_DEFAULT, {})
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if section := _SECTION.fullmatch(line):
            current = sections[section[1]] = {}
        elif entry := _ENTRY.fullmatch(line):
            current[entry[1]] = _Entry(entry[1], entry[2], number)
        elif not _NOTHING.fullmatch(line):
            return [], number
    counting = [sections.get(name, {}) for name in (_EVERY, _DEFAULT)]
    return [entry for section in counting for key, entry in sorted(section.items()) if key != _RESERVED_KEY], 0


def _names_of(key: str, flags: Sequence[str], variables: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """All names of the option a file's key means: a variable's name, or an option without its dashes."""
    if key in variables:
        return variables[key]
    spelled = {f"--{key}", f"-{key}"}
    for names in variables.values():
        if spelled & {*names}:
            return names
    return tuple(sorted(spelled & {*flags}))


def _spelled(key: str, names: tuple[str, ...]) -> str:
    """The option as the file spells it, or its plain name for a variable's."""
    return next((name for name in (f"--{key}", f"-{key}") if name in names), _plain(names))


def _plain(names: tuple[str, ...]) -> str:
    """The first long name that is no negation."""
    long = [name for name in names if name.startswith("--")]
    return next((name for name in long if not name.startswith("--no-")), (long or [*names])[0])


def _from_environment(environ: Mapping[str, str], variables: Mapping[str, tuple[str, ...]]) -> Iterator[OutsideSetting]:
    known = set(variables)
    for variable, names in sorted(variables.items()):
        negation = next((name for name in names if name.startswith("--no-")), None)
        negated = variable.replace(PREFIX, f"{PREFIX}NO_", 1)
        if negation and negated in environ:  # whatever its value, it switches off, and the other is not looked at
            known.add(negated)
            yield OutsideSetting(negation, "", f"environment {negated}", names, True)
        elif variable in environ:
            option = _plain(names)
            shown = HIDDEN if is_secret(variable) else _shown(option, environ[variable])
            yield OutsideSetting(option, shown, f"environment {variable}", names, True)
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known:
            shown = _shown(variable, environ[variable])
            yield OutsideSetting(
                "", shown, f"environment {printable(variable)}", (), False, "this engine does not read it"
            )


def _shown(name: str, value: str) -> str:
    return HIDDEN if is_secret(name) else printable(without_secrets(value))


def _settled(found: list[OutsideSetting]) -> list[OutsideSetting]:
    """Of several that set one option only the highest, the last, stands."""
    settled: list[OutsideSetting] = []
    for at, setting in enumerate(found):
        later = [other for other in found[at + 1 :] if set(other.names) & set(setting.names)]
        beaten = f"beaten by {later[-1].source}" if later else ""
        settled.append(setting._replace(stands=False, why=beaten) if later else setting)
    return settled
