"""``gezel-rules doctor``: what keeps this machine from its hardware, what failed, what crashes left."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from gezel_rules import DEFAULT_FAMILY
from gezel_rules.cli.arguments import add_engine, session_of
from gezel_rules.cli.shown import json_text
from gezel_rules.engines import registry
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.facts.printable import printable
from gezel_rules.owned import is_owned
from gezel_rules.planner.plan import build_of
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.state_files import seconds
from gezel_rules.session import Session
from gezel_rules.session.offer import Offer, look

SHOWN = 12  # failures, each in a line
REPAIR = "'gezel-rules doctor --repair' deletes it"


class Finding(NamedTuple):
    """One thing a person may want to know: what it concerns, what is so, what can be done; ``wrong`` counts."""

    about: str
    what: str
    advice: str
    wrong: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_engine(parser)
    parser.add_argument("--forgive", metavar="NAME", help="try a drafter again that broke an engine build")
    parser.add_argument("--repair", action="store_true", help="delete what crashes left and nobody needs")


def run(args: argparse.Namespace) -> int:
    """Show the findings; 1 when something is wrong. Raises GezelError when the engine asked for is not one."""
    found = list(findings(args))
    if args.json:
        print(json_text([finding._asdict() for finding in found]))
    else:
        for finding in found:
            print(f"{finding.about:8}  {finding.what}" + (f"\n          {finding.advice}" if finding.advice else ""))
        if not any(finding.wrong for finding in found):
            print("nothing is wrong")
    return 1 if any(finding.wrong for finding in found) else 0


def findings(args: argparse.Namespace) -> Iterator[Finding]:
    """Each engine family's engine and devices, what steers it from outside, failed launches, the store.

    A family that was not asked for and has no engine here is left out, but for the one meant when nobody names any.
    """
    session = session_of(args)
    offers = list(_offers(session, args.engine))
    for offer in offers:
        yield from _engine(offer)
        yield from _outside(offer)
    builds = {build_of(offer.facts) for offer in offers if offer.command}
    yield from _failures(session.state, builds)
    if args.forgive:
        yield from _forgiven(session.state, args.forgive)
    yield from _broken_parts(session.state, builds)
    yield from _writable(session)
    yield from _store(session.store, args.repair)


def _offers(session: Session, engine: str | None) -> Iterator[Offer]:
    for name in registry.names():
        default = name == DEFAULT_FAMILY
        offer = look(session, session.family(name), engine if default else None)
        if default or offer.command:
            yield offer


def _engine(offer: Offer) -> Iterator[Finding]:
    if offer.command is None:
        yield Finding("engine", printable(offer.why), "")
        return
    name, seen = printable(" ".join(offer.command)), offer.facts["devices"].value
    if seen is UNKNOWN:
        yield Finding(
            "engine", f"{name} does not say which devices it sees", offer.facts["devices"].settle, wrong=False
        )
        return
    if seen and all(device["kind"] == "software" for device in seen):
        said = ", ".join(printable(device["description"]) for device in seen)
        yield Finding("engine", f"sees no GPU, only a software renderer: {said}", "install the driver of the card")
    elif not seen:
        advice = "if this machine has a GPU, take a build of the engine for it: --engine PATH"
        yield Finding("engine", f"{name} sees no device: models run on the CPU", advice, wrong=False)
    for device in seen:
        if device["total_bytes"] is None:
            what = f"{printable(device['name'])} does not tell its memory"
            yield Finding("engine", what, "plans leave fitting to the engine")


def _outside(offer: Offer) -> Iterator[Finding]:
    for setting in offer.outside:
        if setting.stands:
            what = f"{printable(setting.source)} sets {printable(setting.option)} to {printable(setting.value)}"
            yield Finding("outside", what, "it reaches the engine behind every plan that does not set it", wrong=False)


def _failures(state: Path, builds: Collection[str]) -> Iterator[Finding]:
    """Launches that failed and that no later good start has answered, the latest first."""
    from gezel_rules.runtime.failures import standing

    failures = standing(state)
    for failure in failures[:SHOWN]:
        elsewhere = bool(failure.build) and failure.build not in builds
        build = f" under engine build {printable(failure.build)}" if elsewhere else ""
        often = f"{failure.times} times, last" if failure.times > 1 else "last"
        when = f" ({often}{_day(failure.last).removeprefix(',')})" if failure.last else ""
        what = f"{printable(failure.model)} failed{build}: {printable(failure.what)}{when}"
        yield Finding("launch", what, printable(failure.advice), wrong=False)
    if len(failures) > SHOWN:
        yield Finding("launch", f"{len(failures) - SHOWN} older failures are not shown", "", wrong=False)


def _broken_parts(state: Path, builds: Collection[str]) -> Iterator[Finding]:
    """What engine builds were seen to die of: drafters, and parts that recovery leaves out."""
    from gezel_rules.runtime.recover import verdicts

    for verdict in verdicts(state):
        here = verdict.build in builds
        build = "this engine build" if here else f"engine build {printable(verdict.build)}"
        what = f"{printable(verdict.name)} broke {build} ({printable(verdict.why)}{_day(verdict.when)})"
        advice = f"'gezel-rules doctor --forgive {printable(verdict.name)}' gives it another chance"
        said = f"{what} and is left out" if here else what
        yield Finding("launch", said, f"a new build of the engine does so by itself; {advice}", wrong=False)


def _day(when: float | None) -> str:
    return time.strftime(", %Y-%m-%d %H:%M", time.localtime(when)) if seconds(when) else ""


def _forgiven(state: Path, name: str) -> Iterator[Finding]:
    """Forget a verdict about a broken part. Raises BadInput when there is none of that name."""
    from gezel_rules.runtime.recover import forgive_named, verdicts

    there = sorted({verdict.name for verdict in verdicts(state)})
    if name not in there and not any(verdict.part == name for verdict in verdicts(state)):
        known = f"; there are: {', '.join(map(printable, there))}" if there else ""
        raise BadInput(f"--forgive: nothing called {printable(name)} is remembered as broken{known}")
    for verdict in forgive_named(state, name):
        what = f"{printable(verdict.name)} is forgiven: engine build {printable(verdict.build)} will try it again"
        yield Finding("launch", what, "", wrong=False)


def _writable(session: Session) -> Iterator[Finding]:
    """Folders of ours in which others can write, or that are theirs."""
    unused, checked = "nothing that is kept there is used", "only what a catalog knows the digest of is safe there"
    for folder, then in ((session.cache, unused), (session.state, unused), (session.store, checked)):
        if folder.is_dir() and not is_owned(folder):
            what = f"{printable(str(folder))} is not writable by you alone: {then}"
            yield Finding("folders", what, f"'chmod go-w {printable(str(folder))}' where it is yours", wrong=False)


def _store(store: Path, mend: bool) -> Iterator[Finding]:
    from gezel_rules.decisions.words import say_bytes
    from gezel_rules.store.leftovers import leftovers, repair

    for item in repair(store) if mend else ():
        what = f"deleted {printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}"
        yield Finding("store", what, "", wrong=False)
    for item in leftovers(store):
        what = f"{printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}"
        yield Finding("store", what, item.advice or REPAIR)
