"""An engine that is kept running: watched, and started again after an unexpected end, at the same address.

What recovery learnt holds for as long as the engine is served: each start takes the latest order, not the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gezel_rules.errors import GezelError
from gezel_rules.planner.needs import Step
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.interrupts import Interrupts
from gezel_rules.runtime.key_file import key_file
from gezel_rules.runtime.launch import death_of
from gezel_rules.runtime.order import Launched, Order
from gezel_rules.runtime.supervise import NO_CLIENTS, Access
from gezel_rules.session.session import Prepared, Session


class Serving(NamedTuple):
    """What stays over restarts. ``order()`` is the latest order; ``announce`` hears of each engine that is ready and of
    the file its key is in, ``tick`` of the seconds waited for one."""

    session: Session
    prepared: Prepared
    order: Callable[[], Order]
    interrupts: Interrupts
    announce: Callable[[Launched, Path], None]
    tick: Callable[[float], None] | None


class End(NamedTuple):
    """How one engine ended: what to tell the person, how its clients reached it, the name of their key file, and
    whether it had run long enough for earlier deaths to be forgotten."""

    failure: GezelError
    said: str
    access: Access
    key_name: str
    steady: bool


def serve(
    session: Session,
    prepared: Prepared,
    interrupts: Interrupts,
    announce: Callable[[Launched, Path], None],
    tick: Callable[[float], None] | None = None,
) -> NoReturn:
    """Serve until interrupted; after an unexpected end pause and start again, as often as policy allows. The files of
    the store that it uses stay until then, whatever is pulled or removed. Raises GezelError: for the first start as it
    comes, after that when no restart is left."""
    with session.holding(prepared) as held:
        followed, order = _following(held)
        _keep_running(Serving(session, followed, order, interrupts, announce, tick))


def _keep_running(serving: Serving) -> NoReturn:
    prepared = serving.prepared
    end, deaths, pauses = _until_it_dies(serving, NO_CLIENTS, ""), 0, prepared.rules.restart_pauses
    while True:
        deaths = 1 if end.steady else deaths + 1
        if deaths > len(pauses):
            raise end.failure
        said = f"{end.failure}; {end.said}" if end.said else f"{end.failure}"
        prepared.guide.say(f"{said}; starting again in {pauses[deaths - 1]:g} s")
        time.sleep(pauses[deaths - 1])
        end = _once_more(serving, end)


def _following(prepared: Prepared) -> tuple[Prepared, Callable[[], Order]]:
    """The same, with a guide whose latest order is remembered; and what returns it."""
    latest = [prepared.order]

    def again(step: Step) -> Order | None:
        order = prepared.guide.again(step)
        if order is not None:
            latest[0] = order
        return order

    return prepared._replace(guide=prepared.guide._replace(again=again)), lambda: latest[0]


def _once_more(serving: Serving, end: End) -> End:
    """Start again where the clients know it; a start that fails is one more unexpected end."""
    try:
        return _until_it_dies(serving, end.access, end.key_name)
    except GezelError as failure:
        return end._replace(failure=failure, said="", steady=False)


def _until_it_dies(serving: Serving, access: Access, key_name: str) -> End:
    session, prepared = serving.session, serving.prepared._replace(order=serving.order())
    with session.launched(prepared, serving.interrupts, serving.tick, access) as engine:
        name, running = key_name or engine.running.id, engine.running
        with key_file(session.state, engine, name) as path:
            serving.announce(engine, path)
            while running.process.poll() is None:  # short waits: a signal is handled between them everywhere
                time.sleep(0.2)
            steady = time.monotonic() - engine.begun >= prepared.rules.steady
            death = death_of(engine, prepared.guide, session.state)
            return End(death.failure, death.said, Access(running.address.port, running.key), name, steady)
