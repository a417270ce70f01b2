"""What this machine offers an engine family: the program found, what it says of itself, and what steers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gezel_rules import places
from gezel_rules.engines.family import OutsideSetting, Probe
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import Fact
from gezel_rules.facts.host import host_facts
from gezel_rules.facts.vocabulary import ENGINE, unknown_fact
from gezel_rules.policy.backends import backends
from gezel_rules.record import NamedTuple
from gezel_rules.session.session import Session

if TYPE_CHECKING:
    from gezel_rules.engines.protocol import Family


class Offer(NamedTuple):
    """The program's ``command`` (``None``: none found, and ``why``), facts, what is set outside our plans, and policy's
    labels for backends."""

    command: tuple[str, ...] | None
    why: str
    facts: Mapping[str, Fact]
    outside: list[OutsideSetting]
    labels: Mapping[str, str]


def look(session: Session, family: Family, choice: str | None) -> Offer:
    """Ask the machine and its engine; devices are asked anew, whatever was kept. Raises BadInput when the program that
    was named is not there or is none of the family's, EngineFailed when it does not answer."""
    policies = session.policies_for(family)
    labels = {name: row.label for name, row in backends(policies).items()}
    try:
        program = family.find(choice, session.environ, places.chosen(session.policies))
    except BadInput as error:
        if choice or session.environ.get(family.variable):
            raise
        return Offer(None, str(error), host_facts(), [], labels)
    probe = Probe(program, policies, session.environ, session.cache, fresh=True)
    silent = {word.name: unknown_fact(word) for word in ENGINE}
    said = {**silent, "devices": Fact([], "the engine names none"), **family.probe(probe)}
    return Offer(program.command, "", {**host_facts(), **said}, family.outside_settings(probe), labels)
