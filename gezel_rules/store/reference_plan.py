"""Install plans for what is in no catalog: a hub repository and a quant, one file of it, a URL, a local file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from gezel_rules.catalog.references import MODEL_SUFFIX, Reference, file_name
from gezel_rules.engines import registry
from gezel_rules.engines.family import CompanionName
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple
from gezel_rules.store import hub
from gezel_rules.store.hub import HubFile
from gezel_rules.store.names import directory_for
from gezel_rules.store.plan import fingerprint
from gezel_rules.store.wanted import InstallPlan, Source, Wanted
from gezel_rules.store.web import Web, shown

_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})")
_PROJECTOR = re.compile(r"mmproj", re.IGNORECASE)
# Names of tensor formats as repositories put them at the end of a file's name: Q4_K_M, IQ2_XXS, UD-Q4_K_XL, BF16.
_QUANT = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|FP16|MXFP4\w*))$", re.IGNORECASE)
_EDGE = "-._ "
Companions = Mapping[str, CompanionName]
"""Policy's rules of names for files that belong beside a model."""
NO_NAMES: Companions = MappingProxyType({})
# A projector is small and its precision shows in every image: the first of these that a repository has.
_PROJECTOR_FORMATS = ("F16", "FP16", "BF16", "F32", "Q8_0", "")


class Group(NamedTuple):
    """One model file of a repository: its shards in order (one when it is whole); ``stem`` without folder, shard
    number and ending."""

    stem: str
    files: tuple[HubFile, ...]

    @property
    def quant(self) -> str:
        """The format its name ends in, upper case; empty when it names none."""
        found = _QUANT.search(self.stem)
        return found[1].upper() if found else ""


def reference_id(reference: Reference) -> str:
    """The id an installed reference goes by; what a URL keeps secret is not in it."""
    return shown(reference.name) if reference.kind == "url" else str(reference)


def plan_reference(
    reference: Reference, web: Web, backend: str = "", vision: bool = True, companions: Companions = NO_NAMES
) -> InstallPlan:
    """What to fetch for a reference that is no catalog id. Raises BadInput, TransferFailed (the hub's listing)."""
    wanted, left_out = _wanted(reference, web, vision, companions)
    model_id = reference_id(reference)
    return InstallPlan(
        model_id,
        directory_for(model_id),
        tuple(wanted),
        tuple(left_out),
        fingerprint=fingerprint(wanted),
        catalog_quant=reference.quant,
        backend=backend,
        vision=vision,
    )


def _wanted(
    reference: Reference, web: Web, vision: bool, companions: Companions
) -> tuple[list[Wanted], list[tuple[str, str]]]:
    if reference.kind == "hub":
        listed = hub.listing(web, reference.name, reference.revision or "main")
        return _from_hub(reference, listed, vision, companions)
    if reference.kind == "url":
        return [Wanted("model", file_name(reference), None, None, (Source("url", reference.name),), "asked for")], []
    path = Path(reference.name).absolute()
    if not path.is_file():
        raise BadInput(f"{reference.name}: " + ("is a directory" if path.is_dir() else "no such file"))
    registry.of_file(str(path)).read_model(str(path), None)  # what is no model is refused before a byte is copied
    return [Wanted("model", path.name, path.stat().st_size, None, (Source("path", str(path)),), "asked for")], []


def _from_hub(
    reference: Reference, files: Sequence[HubFile], vision: bool, companions: Companions
) -> tuple[list[Wanted], list[tuple[str, str]]]:
    groups = list(group_models(files))
    beside = beside_a_model(groups, companions)
    models = [group for group in groups if group not in beside]
    group = (
        _named(reference, groups) if reference.file else choose(reference.name, models, reference.quant, list(beside))
    )
    wanted = [_fetch(reference, "model", file, _why(group, n)) for n, file in enumerate(group.files, 1)]
    offered = [
        (PurePosixPath(other.files[0].path).name, _offer(reference, what, other))
        for other, what in beside.items()
        if other != group
    ]
    projector = find_projector(files, PurePosixPath(group.files[0].path).parent)
    if projector is None:
        return wanted, offered
    if not vision:
        return wanted, [(PurePosixPath(projector.path).name, "images were declined"), *offered]
    return [*wanted, _fetch(reference, "projector", projector, "found by its name; images are wanted")], offered


def beside_a_model(groups: Sequence[Group], companions: Companions) -> dict[Group, str]:
    """The groups that belong beside a model, with what people call them; none where there is nothing else."""
    found: dict[Group, str] = {}
    for group in groups:
        rows = (row.says for row in companions.values() if re.search(row.matches, group.stem, re.IGNORECASE))
        if (what := next(rows, "")) != "":
            found[group] = what
    return found if len(found) < len(groups) else {}


def _offer(reference: Reference, what: str, group: Group) -> str:
    named = Reference("hub", reference.name, file=group.files[0].path, revision=reference.revision)
    return f"{what} beside the model; 'gezel-rules pull {named}' fetches it, --set draft_model=PATH uses it"


def _why(group: Group, number: int) -> str:
    count = len(group.files)
    return "the model itself" if count == 1 else f"the model itself (shard {number} of {count})"


def _fetch(reference: Reference, role: str, file: HubFile, reason: str) -> Wanted:
    source = Source("hub", reference.name, file.path, reference.revision or "main")
    return Wanted(role, PurePosixPath(file.path).name, file.size, file.sha256, (source,), reason)


def _model_files(files: Iterable[HubFile], projectors: bool) -> list[HubFile]:
    found = (file for file in files if file.path.lower().endswith(MODEL_SUFFIX))
    return [file for file in found if bool(_PROJECTOR.search(PurePosixPath(file.path).name)) == projectors]


def group_models(files: Iterable[HubFile]) -> Iterable[Group]:
    """The model files of a listing, shards joined; sets with missing or doubled shards are left out."""
    sets: dict[tuple[str, str, int], dict[int, HubFile]] = {}
    for file in _model_files(files, projectors=False):
        path = PurePosixPath(file.path)
        match = _SHARD.fullmatch(path.name[: -len(MODEL_SUFFIX)])
        stem, number, count = (match["stem"], match["number"], match["count"]) if match else (path.stem, "1", "1")
        sets.setdefault((str(path.parent), stem, int(count)), {})[int(number)] = file
    for (_, stem, count), shards in sorted(sets.items()):
        if sorted(shards) == list(range(1, count + 1)):
            yield Group(stem, tuple(shards[number] for number in sorted(shards)))


def choose(repo: str, groups: Sequence[Group], quant: str, beside: Sequence[Group] = ()) -> Group:
    """The model file of a quant or another tag, whatever the case: one whose name ends in it, else one that has it
    inside; among several the shortest name. ``beside``: files of the repository that are no models. Raises BadInput
    listing what the repository has."""
    found = _tagged(groups, quant)
    if found and (len(found) == 1 or len(found[0].stem) < len(found[1].stem)):
        return found[0]
    if found:
        names = ", ".join(group.files[0].path for group in found[:6])
        raise BadInput(f"{repo}: several files are {quant}: {names}; name one as hf://{repo}/FILE")
    if not groups:
        raise BadInput(f"{repo}: has no complete model")
    others = ", ".join(group.files[0].path for group in beside)
    also = f"; beside the model: {others}" if others else ""
    raise BadInput(f"{repo}: has no {quant}; it has {', '.join(tags(repo, groups))}{also}")


def _tagged(groups: Sequence[Group], tag: str) -> list[Group]:
    """The groups of a tag, shortest name first: by their format, else by the end of their names, else by a part."""
    sought = re.escape(tag)
    ways = (
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


def _named(reference: Reference, groups: Sequence[Group]) -> Group:
    for group in groups:
        if any(file.path == reference.file for file in group.files):
            return group
    raise BadInput(f"{reference.name}: has no complete model {reference.file}")


def find_projector(files: Iterable[HubFile], folder: PurePosixPath) -> HubFile | None:
    """The multimodal projector: by name, beside the model first, in the best format there is."""
    found = _model_files(files, projectors=True)
    return min(found, key=lambda file: _rank(file, folder), default=None)


def _rank(file: HubFile, folder: PurePosixPath) -> tuple[bool, int, str]:
    path = PurePosixPath(file.path)
    name = path.stem.upper()
    formats = enumerate(_PROJECTOR_FORMATS)
    place = next(n for n, kind in formats if not kind or re.search(rf"(?:^|[-._]){kind}(?:$|[-._])", name))
    return path.parent != folder, place, file.path
