"""What an install of MODEL consists of: its own plan, and those of the models it needs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from gezel_rules.errors import BadInput, GezelError, Refused
from gezel_rules.facts.fact import UNKNOWN, Fact
from gezel_rules.policy.backends import backends
from gezel_rules.record import NamedTuple
from gezel_rules.session.session import Session

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.engines.family import CompanionName
    from gezel_rules.planner.plan import Plan
    from gezel_rules.store.plan import DrafterApplies
    from gezel_rules.store.wanted import InstallPlan
    from gezel_rules.store.web import Web


class Wish(NamedTuple):
    """What somebody wants fetched: MODEL, for which backend (``None``: the engine's that is found, by ``engine``), with
    its projector or not, at which revision of its hub repository; ``excluded``: also where its entry excludes it."""

    model: str
    backend: str | None = None
    engine: str | None = None
    vision: bool = True
    revision: str | None = None
    excluded: bool = False


def installs(session: Session, wish: Wish, web: Web) -> Iterator[InstallPlan]:
    """The plan of MODEL, then of the models it needs beside it. Raises BadInput, TransferFailed, and Refused for a
    model that its entry excludes on this backend."""
    from gezel_rules.catalog import has
    from gezel_rules.catalog.references import parse_reference
    from gezel_rules.store.plan import at_revision, plan_install
    from gezel_rules.store.reference_plan import plan_reference

    reference = parse_reference(wish.model, lambda model: has(session.catalog, model))
    if wish.revision and reference.kind not in ("catalog", "hub"):
        raise BadInput(f"--revision: {wish.model} is in no hub repository")
    if reference.kind != "catalog":
        named = reference._replace(revision=wish.revision) if wish.revision else reference
        yield plan_reference(named, web, wish.backend or "", wish.vision, companion_names(session))
        return
    entry = session.entry(reference.name)
    backend = _backend(session, entry, wish) if entry.draft or entry.excluded or wish.backend else ""
    if not wish.excluded:
        refuse_excluded(session, entry, backend)
    plan = plan_install(entry, backend, wish.vision, drafter_rule(session, entry))
    yield at_revision(plan, wish.revision) if wish.revision else plan
    for other in plan.also:
        beside = session.entry(other)
        yield plan_install(beside, backend, wish.vision, drafter_rule(session, beside))


def installs_for(session: Session, plan: Plan) -> Iterator[InstallPlan]:
    """What a planned launch needs: its model, and the model that drafts for it. Raises BadInput, TransferFailed."""
    from gezel_rules.store.plan import plan_install
    from gezel_rules.store.web import Web

    entry, backend, vision = plan.subject.entry, backend_of(plan.trace.facts), bool(plan.trace.get("vision.loads"))
    if entry is None:  # a model of a hub, or of a URL
        with closing(Web()) as web:
            yield from installs(session, Wish(plan.request.model, backend or None, vision=vision), web)
        return
    wanted = plan_install(entry, backend, vision, lambda _: _drafter_planned(plan))
    yield wanted
    for other in wanted.also:  # a drafter that is an entry of its own; it needs none itself
        yield plan_install(session.entry(other), backend, False, lambda _: (False, "it drafts"))


def refuse_excluded(session: Session, entry: Entry, backend: str) -> None:
    """Raises Refused for a model that must not run on this backend, with the entry's reason."""
    found = next((each for each in entry.excluded if each.backend == backend), None)
    if found is not None:
        label = backends(session.policies_for(session.family(entry.engine)))[backend].label
        raise Refused(
            f"{entry.id} is excluded on {label}: {found.reason} ({found.place}); --excluded fetches it all the same"
        )


def companion_names(session: Session) -> Mapping[str, CompanionName]:
    """Policy's rules of names for files that belong beside a model."""
    from gezel_rules.engines.family import CompanionName

    return session.policies_for(session.family()).rows_if_any("companion_names", CompanionName)


def _backend(session: Session, entry: Entry, wish: Wish) -> str:
    """The backend that was named, checked against policy, else that of the engine found; empty when there is none."""
    family = session.family(entry.engine)
    policies = session.policies_for(family)
    if wish.backend:
        known = backends(policies)
        if wish.backend not in known:
            raise BadInput(f"--backend: unknown backend '{wish.backend}'; there are: {', '.join(known)}")
        return wish.backend
    program = session.program(family, wish.engine)
    if program is None:
        return ""
    from gezel_rules.engines.family import Probe

    return backend_of(family.probe(Probe(program, policies, session.environ, session.cache)))


def backend_of(facts: Mapping[str, Fact]) -> str:
    """The backend that an engine names; empty when nobody knows it."""
    found = facts["engine.backend"].value
    return "" if found is UNKNOWN else str(found)


def backend_here(session: Session, entry: Entry) -> str:
    """The backend of the engine found here for an entry; empty when there is none, or it does not say."""
    try:
        return _backend(session, entry, Wish(entry.id))
    except GezelError:
        return ""


def _drafter_planned(plan: Plan) -> tuple[bool, str]:
    """Whether policy wants the catalog's drafter here, and why; a family without drafters wants none."""
    from gezel_rules.planner.report import explainer

    judgement = plan.trace.judgements.get("drafter.applies")
    return (judgement.value is True, explainer(plan).because(judgement)) if judgement else (False, "")


def drafter_rule(session: Session, entry: Entry) -> DrafterApplies:
    """Policy's ``drafter.applies`` for an entry, with the winning rule's words. A family whose policies know no
    drafters wants none."""
    from gezel_rules.decisions.decide import decide
    from gezel_rules.decisions.trace import Explainer

    policies = session.policies_for(session.family(entry.engine))

    def applies(backend: str) -> tuple[bool, str]:
        if "drafter.applies" not in policies.decisions:
            return False, f"no policy of {entry.engine} knows drafters"
        draft = entry.draft
        name = draft and (draft.id or (draft.file.name if draft.file else None))
        limited = list(draft.backends) if draft and draft.backends is not None else None
        facts = {
            "entry.draft": Fact(name, entry.file, "catalog"),
            "entry.draft_backends": Fact(limited, entry.file, "catalog"),
            "engine.backend": Fact(backend or UNKNOWN, "engine", "probe"),
        }
        trace = decide(policies, facts, {}, ("drafter.applies",))
        judgement = trace.judgements["drafter.applies"]
        return judgement.value is True, Explainer(trace, {}).because(judgement)

    return applies
