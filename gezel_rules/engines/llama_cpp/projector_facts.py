"""What is to be known of a launch's projector: the operator's own, the model's, and those that lie beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gezel_rules.engines.family import CompanionName
from gezel_rules.engines.llama_cpp.memory.vision import VisionEncoder, uncounted, vision_bytes
from gezel_rules.engines.llama_cpp.model_file import read_model
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.regex import Regex

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Facts
    from gezel_rules.engines.subject import Subject
    from gezel_rules.gguf.records import Header
    from gezel_rules.policy.model import PolicySet


def projector_facts(subject: Subject, settings: Mapping[str, Fact], policies: PolicySet, cache: Path | None) -> Facts:
    """The facts about projectors. Raises BadInput when the operator names a file that is none."""
    own = _own(settings["settings.mmproj"], policies, cache)
    header = own or cast("Header | None", subject.projector and subject.projector.model)
    source = _source(settings["settings.mmproj"].value, subject)
    rows = policies.rows("vision_encoders", VisionEncoder)
    compute = vision_bytes(header, rows) if header else None
    beside = None if own or subject.projector or subject.entry else _beside(subject.model_path, policies, cache)
    return {
        "launch.own_projector_bytes": Fact(own.weights_bytes if own else 0, source),
        "launch.projector_compute": Fact(UNKNOWN if compute is None else compute, source, settle="pull the model"),
        "launch.projector_uncounted": Fact(uncounted(header, rows) if header else None, source),
        "launch.projectors_beside": Fact(beside or None, "the model's directory"),
    }


def _source(own: str | None, subject: Subject) -> str:
    if own:
        return f"GGUF {Path(own).name}"
    return f"GGUF {subject.projector.name}" if subject.projector else "no projector"


def _own(setting: Fact, policies: PolicySet, cache: Path | None) -> Header | None:
    """The header of the projector that the operator named."""
    if setting.value is None:
        return None
    header = read_model(setting.value, cache)
    if header.arch not in policies.tables["projector_architectures"]:
        raise BadInput(
            f"setting 'mmproj' ({setting.source}): {setting.value} is no projector, its architecture is "
            f"'{header.arch}': name the mmproj file that belongs to the model"
        )
    return header


def _beside(model: str, policies: PolicySet, cache: Path | None) -> list[str]:
    """Paths of the projectors in the directory of a model, by name and header."""
    return sorted(path for path in _named(model, policies) if _is_projector(path, policies, cache))


def _named(model: str, policies: PolicySet) -> Iterator[str]:
    sought = Regex(policies.row("companion_names", "projector", CompanionName).matches, ignore_case=True)
    try:
        names = [path for path in Path(model).parent.iterdir() if path.suffix.lower() == Path(model).suffix.lower()]
    except OSError:
        return
    yield from (str(path) for path in names if sought.search(path.stem))


def _is_projector(path: str, policies: PolicySet, cache: Path | None) -> bool:
    try:
        return read_model(path, cache).arch in policies.tables["projector_architectures"]
    except BadInput:
        return False
