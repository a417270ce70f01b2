"""The engine that ``serve`` already runs for a model, for others of this user to talk to.

It is taken when it was started with everything that is asked for now. What was asked of it and not of us does not
matter: whoever names nothing takes the engine as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import places
from gezel_rules.engines import registry
from gezel_rules.engines.openai_http import Address
from gezel_rules.owned import read_owned
from gezel_rules.planner.gather import SETTING, Said, setting_facts
from gezel_rules.planner.record import upgraded
from gezel_rules.record import NamedTuple
from gezel_rules.runtime import process
from gezel_rules.runtime.journal import MODEL_PATH
from gezel_rules.runtime.order import Peer
from gezel_rules.runtime.registry import Entry, running
from gezel_rules.runtime.state_files import read_json

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family
    from gezel_rules.runtime.rules import Supervision
    from gezel_rules.session.session import Conditions, Session

_KEY_BYTES = 4096


class Joined(NamedTuple):
    """An engine that answers, though somebody else started it; the kind of request that fits its model, and the rules
    of its family."""

    engine: Peer
    endpoint: str
    rules: Supervision


def join(session: Session, model: str, conditions: Conditions, say: Callable[[str], None]) -> Joined | None:
    """The engine that ``serve`` runs for MODEL; ``None`` when there is none, or none that is as it is asked for now.
    ``say`` hears which is taken, or why one is not. Raises BadInput."""
    served = [entry for entry in running(session.state) if entry.key_file and not entry.orphan]
    path = _path_of(session, model, {entry.model for entry in served}) if served else None
    for entry, record in _holding(served, path) if path else ():
        family = registry.of_file(str(path))
        lacks = ", ".join(_lacks(session, family, conditions, record))
        joined = None if lacks else _joined(session, family, entry, record)
        if joined is not None:
            say(f"using the engine that 'serve' runs for {entry.model} at {entry.url}")
            return joined
        why = f"was not started with {lacks}" if lacks else "does not answer"
        say(f"the engine that 'serve' runs for {entry.model} {why}: starting another one")
    return None


def _path_of(session: Session, model: str, served: Collection[str]) -> str | None:
    """The file that MODEL means; ``None`` when it is not on this machine, or nobody serves a model of its name."""
    from gezel_rules.catalog import has
    from gezel_rules.catalog.references import parse_reference
    from gezel_rules.store.reference_plan import reference_id

    reference = parse_reference(model, lambda name: has(session.catalog, name))
    if reference.kind == "file":
        return reference.name if Path(reference.name).stem in served else None
    name = reference_id(reference)
    found = session.on_shelf(name) if name in served else None
    files = found.by_role("model") if found else ()
    return files[0].path if files else None


def _holding(served: Sequence[Entry], path: str) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
    """The engines that hold this very file, oldest first, each with the record of its launch."""
    for entry in served:
        record = upgraded(read_json(Path(entry.record)) or {})
        if Path(record.get(MODEL_PATH, "/")).resolve() == Path(path).resolve():
            yield entry, record


def _lacks(session: Session, family: Family, conditions: Conditions, record: Mapping[str, Any]) -> Iterator[str]:
    """What is asked for now that the engine was not started with, in words. Raises BadInput."""
    chosen = places.chosen(session.policies)
    policies = session.policies_for(family)
    said = Said(session.environ, (), conditions.settings)
    for name, fact in setting_facts(family, policies, said, "").items():
        if fact.value is not None and json.loads(json.dumps(fact.value)) not in _theirs(record, name):
            yield f"{name.removeprefix(SETTING)}={fact.value}"
    engine = conditions.engine or session.environ.get(family.variable)
    if engine and list(family.find(engine, session.environ, chosen).command) != record["launch"]["engine"]:
        yield f"the engine {engine}"
    if (chosen or session.layers) and policies.digest != record["policy"]["digest"]:
        yield f"the policies in {chosen or session.layers[-1]}"


def _theirs(record: Mapping[str, Any], name: str) -> list[Any]:
    """What the engine has of a setting: as it was asked for, and as the launch has it in the end."""
    return [record["facts"].get(name, {}).get("value"), record["summary"].get(name.removeprefix(SETTING))]


def _joined(session: Session, family: Family, entry: Entry, record: Mapping[str, Any]) -> Joined | None:
    """The engine, if it answers, and asks for the key that ``serve`` keeps. A stranger on its port is not shown it."""
    from urllib.parse import urlsplit

    contract, rules, url = family.contract, session.rules(family), urlsplit(entry.url)
    address = Address(url.hostname or "", url.port or 0)
    key = (read_owned(Path(entry.key_file), _KEY_BYTES) or b"").decode("utf-8", "replace").strip()
    if process.listens(entry.pid, address.port) is False or not contract.ready(address, key, rules.probe):
        return None

    def ended(seconds: float) -> bool:  # one that dies is started again at its address for as long as `serve` lives
        return process.gone(entry.owner, entry.owner_started, seconds)

    peer = Peer(entry.model, entry.engine, contract, address, key, ended)
    return Joined(peer, record["decisions"]["prompt.endpoint"]["value"], rules)
