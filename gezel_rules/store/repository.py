"""What a hub repository holds: models by quant and folder, and the files that belong beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType

from gezel_rules.catalog.references import DEFAULT_QUANT, MODEL_SUFFIX, Reference
from gezel_rules.engines.family import CompanionName
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Regex
from gezel_rules.store.hub import HubFile

_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})")
# Names of tensor formats as repositories put them at the end of a file's name: Q4_K_M, IQ2_XXS, UD-Q4_K_XL, BF16.
_QUANT = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|FP16|MXFP4\w*))$", re.IGNORECASE)
_EDGE = "-._ "
_SHOWN = 6  # files named in a message
Companions = Mapping[str, CompanionName]
"""Policy's rules of names for files that belong beside a model."""
NO_NAMES: Companions = MappingProxyType({})


class Group(NamedTuple):
    """One file of a repository as its maker thinks of it: its shards in order (one when it is whole); ``stem`` without
    folder, shard number and ending."""

    stem: str
    files: tuple[HubFile, ...]

    @property
    def path(self) -> str:
        """Where its first shard lies in the repository."""
        return self.files[0].path

    @property
    def folder(self) -> PurePosixPath:
        """Where it lies in the repository."""
        return PurePosixPath(self.path).parent

    @property
    def quant(self) -> str:
        """The format its name ends in, else its folder's, upper case; empty when neither names one."""
        return _format(self.stem) or _format(self.folder.name)


class Found(NamedTuple):
    """What a reference means in a repository: the model, what a pull brings along by role, and what else belongs beside
    it; each with policy's row."""

    model: Group
    along: tuple[tuple[Group, CompanionName], ...] = ()
    beside: tuple[tuple[Group, CompanionName], ...] = ()


def find(reference: Reference, files: Iterable[HubFile], companions: Companions) -> Found:
    """What a hub reference means among the files of its repository. Raises BadInput, in one line, when that is nothing
    or could be several things."""
    groups = list(grouped(files))
    beside = beside_models(groups, companions)
    chosen = _named(reference, groups) if reference.file else _chosen(reference, groups, companions)
    if chosen in beside:
        return Found(chosen)  # asked for by its file or folder: nothing of this repository belongs beside it
    models = [group for group in groups if group not in beside]
    there = {group: row for group, row in beside.items() if _belongs(group, row, chosen, models)}
    roles = dict.fromkeys(row.role for row in there.values() if row.role)
    along = [_best(role, there, chosen) for role in roles]
    return Found(chosen, tuple(along), tuple((group, row) for group, row in there.items() if not row.role))


def grouped(files: Iterable[HubFile]) -> Iterator[Group]:
    """The model files of a listing, shards joined; sets with missing or doubled shards are left out."""
    sets: dict[tuple[str, str, int], dict[int, HubFile]] = {}
    for file in files:
        if file.path.lower().endswith(MODEL_SUFFIX):
            path = PurePosixPath(file.path)
            match = _SHARD.fullmatch(path.stem)
            stem, number, count = (match["stem"], match["number"], match["count"]) if match else (path.stem, "1", "1")
            sets.setdefault((str(path.parent), stem, int(count)), {})[int(number)] = file
    for (_, stem, count), shards in sorted(sets.items()):
        if sorted(shards) == list(range(1, count + 1)):
            yield Group(stem, tuple(shards[number] for number in sorted(shards)))


def beside_models(groups: Sequence[Group], companions: Companions, within: str = "") -> dict[Group, CompanionName]:
    """The groups that belong beside a model, with policy's row. ``within``: the folder they were looked for in; its own
    name says nothing about them. Where there is no model, what a setting takes is not there for another's sake."""
    found = {
        group: row
        for group in groups
        if (row := next((row for row in companions.values() if _is(group, row, within)), None)) is not None
    }
    if len(found) < len(groups):
        return found
    return {group: row for group, row in found.items() if row.role or not row.setting}


def _is(group: Group, row: CompanionName, within: str) -> bool:
    folders = group.folder.relative_to(within or ".").parts
    return bool(_pattern(row.matches).search(group.stem)) or any(_names(row, folder) for folder in folders)


def _names(row: CompanionName, folder: str) -> bool:
    return bool(row.folder and _pattern(row.folder).search(folder))


@lru_cache(maxsize=64)
def _pattern(text: str) -> Regex:
    """Of policy, in any case of letters; compiled once for all the files of a listing."""
    return Regex(text, ignore_case=True)


def _belongs(group: Group, row: CompanionName, model: Group, models: Sequence[Group]) -> bool:
    """Whether a companion is this model's: it lies with it or above it, or no model lies anywhere else."""
    home, place = _home(group, row), _home(model)
    return home == place or home in place.parents or len({_home(other) for other in models}) == 1


def _home(group: Group, row: CompanionName | None = None) -> PurePosixPath:
    """The folder whose models a file is about: its own, but for folders that tell what it is, or its quant."""
    parts = group.folder.parts
    telling = (n for n, part in enumerate(parts) if _format(part) or (row is not None and _names(row, part)))
    return PurePosixPath(*parts[: next(telling, len(parts))])


def _best(role: str, there: Mapping[Group, CompanionName], model: Group) -> tuple[Group, CompanionName]:
    """Of several of a role: one beside the model first, in the best format there is."""

    def rank(found: tuple[Group, CompanionName]) -> tuple[bool, int, str]:
        group, row = found
        formats = row.formats or ()
        named = (n for n, name in enumerate(formats) if _has(group.stem, name))
        return group.folder != model.folder, next(named, len(formats)), group.path

    return min(((group, row) for group, row in there.items() if row.role == role), key=rank)


def _has(stem: str, word: str) -> bool:
    return bool(re.search(rf"(?:^|[{_EDGE}]){re.escape(word)}(?:$|[{_EDGE}])", stem, re.IGNORECASE))


# ---- which model is meant


def _named(reference: Reference, groups: Sequence[Group]) -> Group:
    for group in groups:
        if any(file.path == reference.file for file in group.files):
            return group
    raise BadInput(f"{reference.name}: has no complete model {reference.file}")


def _chosen(reference: Reference, groups: Sequence[Group], companions: Companions) -> Group:
    """The model of a quant, or of the folder that was named."""
    folder = PurePosixPath(reference.folder)
    inside = [group for group in groups if folder in (group.folder, *group.folder.parents)]
    if not inside and reference.folder:
        there = sorted({f"'{group.folder}'" for group in groups if group.folder.name})
        known = f"its folders are {', '.join(there)}" if there else "it has no folders"
        raise BadInput(f"{reference.name}: no model lies in '{reference.folder}'; {known}")
    beside = beside_models(inside, companions, reference.folder)
    models = [group for group in inside if group not in beside]
    if len(models) == 1 and not reference.quant:
        return models[0]
    return choose(reference._replace(quant=_wish(reference)), models, list(beside))


def _wish(reference: Reference) -> str:
    return reference.quant or _format(PurePosixPath(reference.folder).name) or DEFAULT_QUANT


def choose(reference: Reference, models: Sequence[Group], beside: Sequence[Group] = ()) -> Group:
    """The model file of a quant or another tag, whatever the case: one whose name ends in it, else one that has it
    inside; among several of a folder the shortest name. ``beside``: files of the repository that are no models. Raises
    BadInput listing what the repository has."""
    found = _tagged(models, reference.quant)
    if not found:
        raise BadInput(f"{reference.name}: {_lacks(reference, models, beside)}")
    folders = {str(group.folder) for group in found}
    if len(folders) == 1 and (len(found) == 1 or len(found[0].stem) < len(found[1].stem)):
        return found[0]
    raise BadInput(f"{reference.name}: {_several(reference, found, max(folders) if len(folders) > 1 else '')}")


def _several(reference: Reference, found: Sequence[Group], folder: str) -> str:
    """What to say of several files that are meant alike; ``folder``: the last of theirs, where there are several."""
    paths = ", ".join(group.path for group in found[:_SHOWN])
    file = next(group.path for group in found if str(group.folder) != folder)
    named = reference._replace(quant="", folder="", file=file)
    if not folder:
        return f"several files are {reference.quant}: {paths}; name one as {named}"
    deeper = reference._replace(folder=folder)
    return f"{reference.quant} is in several folders: {paths}; name one as {deeper} or {named}"


def _lacks(reference: Reference, models: Sequence[Group], beside: Sequence[Group]) -> str:
    where = f"'{reference.folder}' " if reference.folder else ""
    if not models:
        return f"{where}has no complete model"
    others = ", ".join(group.path for group in beside)
    also = f"; beside the model: {others}" if others else ""
    return f"{where}has no {reference.quant}; it has {', '.join(tags(reference.name, models))}{also}"


def _tagged(groups: Sequence[Group], tag: str) -> list[Group]:
    """The groups of a tag, shortest name first: by their format, else by the end of their names, else by a part."""
    sought = re.escape(tag)
    ways: tuple[Callable[[Group], object], ...] = (
        lambda group: group.quant == tag.upper(),
        lambda group: re.search(rf"(?:^|[{_EDGE}]){sought}$", group.stem, re.IGNORECASE),
        lambda group: re.search(rf"(?:^|[{_EDGE}]){sought}[{_EDGE}]", group.stem, re.IGNORECASE),
    )
    found = ([group for group in groups if way(group)] for way in ways)
    return sorted(next(filter(None, found), []), key=lambda group: len(group.stem))


def tags(repo: str, groups: Sequence[Group]) -> list[str]:
    """What each model file may be asked for by, sorted: its format; where its name ends in none, what the name has
    beyond the repository's own, or beyond what all names share."""
    shared = _shared([group.stem for group in groups], repo)
    return sorted({group.quant or group.stem[len(shared) :].lstrip(_EDGE) or group.stem for group in groups})


def _shared(stems: Sequence[str], repo: str) -> str:
    """What every name starts with, up to a separator: never into the tag where the repository's name tells."""
    own = re.sub(r"[-._]gguf$", "", repo.rpartition("/")[2], flags=re.IGNORECASE)
    if all(stem.lower().startswith(own.lower()) for stem in stems):
        return own
    if len(stems) < 2:
        return ""
    first, last = min(stems), max(stems)
    count = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: 1 + max((first.rfind(edge, 0, count) for edge in _EDGE), default=-1)]


def _format(name: str) -> str:
    """The tensor format that a name ends in, upper case; empty when it names none."""
    found = _QUANT.search(name)
    return found[1].upper() if found else ""
