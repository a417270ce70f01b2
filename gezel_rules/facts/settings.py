"""What people set: environment, ``--set``, and the operator's site files, each value with the place it was set in.

Precedence, highest first: ``GEZEL_<NAME>`` in the environment, ``--set NAME=VALUE`` (the last one), the model's
section of a site file, the settings for the whole machine. Of two site files the later one is higher.

    settings: {window: 64k, slots: 2}
    models:
      some-model: {window: 128k, spec_type: none}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from gezel_rules.documents.declare import ANYTHING, Map, Shape, optional
from gezel_rules.documents.read import read
from gezel_rules.documents.source import Node, did_you_mean, load_yaml
from gezel_rules.errors import BadInput, Problem
from gezel_rules.facts.fact import Fact
from gezel_rules.facts.printable import printable
from gezel_rules.facts.setting_values import SettingSpec, WrongValueError, value_of
from gezel_rules.record import NamedTuple

__all__ = ["SettingSpec", "settings"]

ENVIRONMENT, OPERATOR, MACHINE = "environment", "operator", "machine"
PREFIX = "GEZEL_"
NOT_SETTINGS = frozenset(
    {
        "GEZEL_STORE",
        "GEZEL_CACHE",
        "GEZEL_STATE",
        "GEZEL_CONFIG",
        "GEZEL_POLICIES",
        "GEZEL_CATALOG",
        "GEZEL_LAYERS",
    }
)

SITE = Shape(
    "a site file",
    {
        "settings": optional(Map(ANYTHING), "Settings for every model on this machine."),
        "models": optional(
            Map(ANYTHING), "Catalog id → settings for that model alone; they beat those for every model."
        ),
    },
    "What the operator of a machine wants. A variable GEZEL_<NAME> and --set beat it.",
)
"""``site.site`` knows the settings themselves."""

_TYPO = 0.8  # how close a stranger's variable must be to ours to be called a mistake


class Given(NamedTuple):
    """One value somebody set: name of the setting, level, value, and the place, for people."""

    name: str
    level: str
    value: Any
    source: str


class Vocabulary(dict[str, SettingSpec]):
    """The settings there are, by name; ``others`` are those of other engine families, looked up only when a name is
    none of these."""

    def __init__(self, known: Mapping[str, SettingSpec], of_others: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(known)
        self._of_others = of_others

    @cached_property
    def others(self) -> Mapping[str, str]:
        """Name → label of the family that knows it."""
        return self._of_others()


def settings(
    vocabulary: Mapping[str, SettingSpec],
    environ: Mapping[str, str],
    site_files: Sequence[Path],
    assignments: Sequence[str],
    model: str | None = None,
    of_others: Callable[[], Mapping[str, str]] = dict,
) -> dict[str, Fact]:
    """``settings.<name>`` for every setting of the vocabulary: the highest value with what it beat, or ``None``.

    ``site_files``: lowest first, missing ones are skipped; ``assignments``: ``NAME=VALUE``; ``model``: the catalog id
    whose section counts; ``of_others``: settings that other engine families know, with the family's label: a file for
    the whole machine may hold them. Raises BadInput with every problem of every source.
    """
    problems: list[Problem] = []
    vocabulary = Vocabulary(vocabulary, of_others)
    given = [*_from_environment(vocabulary, environ, problems)]
    given += reversed([*_from_assignments(vocabulary, assignments, problems)])
    sites = [_from_site(vocabulary, path, model, problems) for path in reversed(site_files) if _is_there(path)]
    given += (value for for_model, _ in sites for value in for_model)
    given += (value for _, for_machine in sites for value in for_machine)
    if problems:
        raise BadInput(problems)
    return {f"settings.{name}": _fact([value for value in given if value.name == name]) for name in vocabulary}


def _fact(given: list[Given]) -> Fact:
    """The first of the values, which stand highest first."""
    if not given:
        return Fact(None, "not set")
    first, *beaten = given
    return Fact(first.value, first.source, first.level, tuple((g.level, g.value, g.source) for g in beaten))


def _from_environment(vocabulary: Vocabulary, environ: Mapping[str, str], problems: list[Problem]) -> Iterator[Given]:
    variables = {variable_of(name): name for name in vocabulary}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or not environ[variable]:
            continue
        if (name := variables.get(variable)) is None:
            problems += _mistaken(variable, variables, vocabulary)
            continue
        source = f"{ENVIRONMENT} {variable}"
        try:
            yield Given(name, ENVIRONMENT, value_of(vocabulary[name], environ[variable]), source)
        except WrongValueError as wrong:
            problems.append(Problem(f"{source}: '{name}' {wrong}"))


def variable_of(name: str) -> str:
    """``GEZEL_SPEC_TYPE`` for ``spec_type``."""
    return PREFIX + name.upper().replace(".", "_").replace("-", "_")


def _mistaken(variable: str, variables: Mapping[str, str], vocabulary: Vocabulary) -> list[Problem]:
    """A problem when a variable looks like a setting misspelt; other programs may use the prefix too."""
    if variable in NOT_SETTINGS:
        return []
    known = [ours.removeprefix(PREFIX) for ours in variables]
    import difflib  # needed only for a message

    close = difflib.get_close_matches(variable.removeprefix(PREFIX), known, n=1, cutoff=_TYPO)
    if not close or variable in map(variable_of, vocabulary.others):
        return []
    return [Problem(f"{ENVIRONMENT} {printable(variable)}: no such setting; did you mean '{PREFIX}{close[0]}'?")]


def _from_assignments(vocabulary: Vocabulary, assignments: Sequence[str], problems: list[Problem]) -> Iterator[Given]:
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        name = key.strip().removeprefix("settings.").replace("-", "_")
        if not equals:
            problems.append(Problem("--set needs NAME=VALUE"))
        elif name not in vocabulary and name in vocabulary.others:
            problems.append(
                Problem(f"--set: '{name}' is a setting of {vocabulary.others[name]}, not of this model's engine")
            )
        elif name not in vocabulary:
            hint = did_you_mean(name, vocabulary) or "; gezel-rules policy show settings lists them"
            problems.append(Problem(f"--set: no setting '{printable(name, 60)}'{hint}"))
        else:
            try:
                yield Given(name, OPERATOR, value_of(vocabulary[name], text), "--set")
            except WrongValueError as wrong:
                problems.append(Problem(f"--set: '{name}' {wrong}"))


def _is_there(path: Path) -> bool:
    """False only when there is no such file; one that may not be read is somebody's mistake and shall be said."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _from_site(
    vocabulary: Vocabulary, path: Path, model: str | None, problems: list[Problem]
) -> tuple[list[Given], list[Given]]:
    """What a site file sets for the model, and for the machine; other models' sections are checked all the same."""
    root = load_yaml(path)
    if root.value is None:
        return [], []
    got = read(root, SITE, problems)
    for_machine = [*_section(vocabulary, got["settings"].node, MACHINE, problems)] if "settings" in got else []
    for_model: list[Given] = []
    for name, section in (got["models"].node.value if "models" in got else {}).items():
        if not isinstance(section.value, dict):
            problems.append(section.problem(f"the settings of '{printable(name)}' must be a mapping"))
            continue
        of_this = [*_section(vocabulary, section, OPERATOR, problems)]
        for_model += of_this if name == model else []
    return for_model, for_machine


def _section(vocabulary: Vocabulary, section: Node, level: str, problems: list[Problem]) -> Iterator[Given]:
    for name, node in section.value.items():
        if name not in vocabulary:
            if name in vocabulary.others:
                continue
            place = node.key or node
            problems.append(place.problem(f"no setting '{printable(name, 60)}'{did_you_mean(name, vocabulary)}"))
            continue
        try:
            value = value_of(vocabulary[name], _raw(vocabulary[name], node))
        except WrongValueError as wrong:
            problems.append(node.problem(f"'{name}' {wrong}"))
        else:
            yield Given(name, level, value, f"site {node.text.name}:{node.line}")


def _raw(spec: SettingSpec, node: Node) -> Any:
    """The YAML value; for a text setting a number is the text it was written as (``1.10``)."""
    value = node.plain()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return node.text.text[node.start : node.end] if spec.type == "text" and is_number else value
