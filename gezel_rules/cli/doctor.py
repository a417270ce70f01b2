"""``gezel-rules doctor``: what keeps this machine from its hardware, what failed last, what crashes left."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from gezel_rules import places
from gezel_rules.cli import request
from gezel_rules.cli.devices import Offer, look
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.facts.printable import printable
from gezel_rules.record import NamedTuple

REPAIR = "'gezel-rules doctor --repair' deletes it"


class Finding(NamedTuple):
    """One thing a person may want to know: what it concerns, what is so, what can be done; ``wrong`` counts."""

    about: str
    what: str
    advice: str
    wrong: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--engine", metavar="PATH", help="a llama-server, or 'embedded' (default: the one found)")
    parser.add_argument("--repair", action="store_true", help="delete what crashes left and nobody needs")


def run(args: argparse.Namespace) -> int:
    """Show the findings; 1 when something is wrong. Raises GezelError when the engine asked for is not one."""
    found = list(findings(args))
    if args.json:
        print(json.dumps([finding._asdict() for finding in found], indent=2))
    else:
        for finding in found:
            print(f"{finding.about:8}  {finding.what}" + (f"\n          {finding.advice}" if finding.advice else ""))
        if not any(finding.wrong for finding in found):
            print("nothing is wrong")
    return 1 if any(finding.wrong for finding in found) else 0


def findings(args: argparse.Namespace) -> Iterator[Finding]:
    """Engine and devices, what steers the engine from outside, the last failed launch, the store."""
    offer = look(args.engine, os.environ, args.policies, places.cache_dir())
    yield from _engine(offer)
    yield from _foreign(offer)
    yield from _failures(places.state_dir(), offer)
    yield from _store(request.store_of(args), args.repair)


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


def _foreign(offer: Offer) -> Iterator[Finding]:
    for setting in offer.foreign:
        if setting.stands:
            what = f"{printable(setting.source)} sets {printable(setting.option)} to {printable(setting.value)}"
            yield Finding("outside", what, "it reaches the engine behind every plan that does not set it", wrong=False)


def _failures(state: Path, offer: Offer) -> Iterator[Finding]:
    """The last failed launch, and what broke this build: drafters, weights packed for the CPU."""
    from gezel_rules.planner.launch import build_of
    from gezel_rules.runtime.launch import INCIDENTS
    from gezel_rules.runtime.recover import broken_drafters, packing_broke
    from gezel_rules.runtime.state_files import each_json

    incidents = [incident for _, incident in each_json(state / INCIDENTS)]
    if incidents:
        last = incidents[-1]
        failure = last.get("failure") or f"exit status {last.get('exit_status')}"
        what = f"the last failure: {printable(str(last.get('model')))}, {printable(str(failure))}"
        yield Finding("launch", what, printable(str(last.get("advice") or "")), wrong=False)
    version = offer.facts["engine.version"].value if offer.command else UNKNOWN
    for drafter, why in ({} if version is UNKNOWN else broken_drafters(state, str(version))).items():
        what = f"{printable(drafter)} broke this engine build ({printable(why)}) and is left out"
        yield Finding("launch", what, "a new build of the engine gets a new chance", wrong=False)
    if offer.command and packing_broke(state, build_of(offer.facts)):
        what = "this engine build died over weights packed for the CPU; they are left as they are in the file"
        yield Finding("launch", what, "a new build of the engine gets a new chance", wrong=False)


def _store(store: Path, mend: bool) -> Iterator[Finding]:
    from gezel_rules.engine.words import say_bytes
    from gezel_rules.store.leftovers import leftovers, repair

    for item in repair(store) if mend else ():
        what = f"deleted {printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}"
        yield Finding("store", what, "", wrong=False)
    for item in leftovers(store):
        what = f"{printable(str(item.path))}: {printable(item.what)}, {say_bytes(item.size)}"
        yield Finding("store", what, item.advice or REPAIR)
