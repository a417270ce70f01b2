"""A launch from order to ready engine: started, awaited, judged; after a failure recovered step by step or given up.

What is decided stays with the planner: after a failure it is asked for the next order. Every attempt leaves a journal
record; a failed one leaves an incident file too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.family import DRAFTER
from gezel_rules.errors import BadInput, EngineFailed, why
from gezel_rules.facts.secrets import hidden
from gezel_rules.record import NamedTuple
from gezel_rules.runtime import journal, killed, leases, process, recover, registry, supervise
from gezel_rules.runtime.failures import INCIDENTS
from gezel_rules.runtime.interrupts import Interrupted, Interrupts
from gezel_rules.runtime.order import Guide, Launched, Order
from gezel_rules.runtime.rules import Step, Supervision
from gezel_rules.runtime.state_files import forget_oldest, write_json

if TYPE_CHECKING:
    from gezel_rules.logs.verdict import Verdict

INCIDENT_LINES = 200
UNUSED = ("init-failed", "no-devices", "not-loaded")  # verdicts of the start-up watch; "unknown" proves nothing


@contextmanager
def launched(
    order: Order, guide: Guide, rules: Supervision, state_dir: Path, environ: Mapping[str, str], interrupts: Interrupts,
    access: supervise.Access = supervise.NO_CLIENTS,
) -> Iterator[Launched]:  # fmt: skip
    """A ready engine for the length of the block, reached as ``access`` says. Raises EngineFailed when every recovery
    step is spent, BadInput when the port is taken or a folder cannot be made.

    Whatever ends the block or the start (an error, Ctrl-C), the engine is stopped before it goes on.
    """
    for orphan in registry.end_orphans(state_dir, rules.stop_grace):
        guide.say(f"ended an engine left behind: {orphan.model}, pid {orphan.pid}")
    leases.held(state_dir)  # those of the dead go
    tried: list[str] = []
    taken: list[str] = []
    while True:
        engine, failed = None, None
        try:
            with interrupts.held():
                engine = _begin(order, rules, state_dir, environ, access, taken)
            failed = _await(engine, guide, rules, state_dir)
            if failed is None:
                yield engine
                return
        finally:
            if engine is not None:
                _finish(engine, rules, interrupts, failed is not None)
        order, step = _recovered(order, failed, tried, guide, rules, state_dir)
        taken.append(step)


def _begin(
    order: Order, rules: Supervision, state_dir: Path, environ: Mapping[str, str], access: supervise.Access,
    recovered: Sequence[str],
) -> Launched:  # fmt: skip
    """Start the process, after the steps of recovery that brought it here, and write down everything others must know
    of it."""
    _make(order.folders)
    before = killed.look()
    running = supervise.start(
        order.engine, order.contract, order.argv, order.env,
        environ=environ, state_dir=state_dir, rules=rules, label=order.model, access=access,
    )  # fmt: skip
    begun = {
        "engine": order.engine.command, "build": order.build, "argv": hidden(order.argv), "model": order.model,
        "started": time.time(), **({"recovery": list(recovered)} if recovered else {}),
    }  # fmt: skip
    try:
        record_file = journal.append(state_dir, running.id, {**order.record, "launch": begun}, running.log.secrets)
        forget_oldest(state_dir / journal.FOLDER, rules.records_kept)
        forget_oldest(state_dir / INCIDENTS, rules.incidents_kept)
        lease = leases.take(state_dir, order.pools, running.pid)
        entry_file = registry.enter(state_dir, entry_of(running, order, record_file))
        return Launched(running, order, rules, record_file, entry_file, lease, before)
    except BaseException:
        supervise.stop(running, 0)
        raise


def _make(folders: Mapping[str, str]) -> None:
    for setting, folder in folders.items():
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{setting}: {folder}: {why(error)}") from None


def entry_of(running: supervise.Running, order: Order, record: Path, key_file: str = "") -> registry.Entry:
    """The engine's entry in the registry; we are its owner."""
    owner = os.getpid()
    url = running.address.url if running.address.port else ""
    return registry.Entry(
        running.id, order.model, order.engine.kind, url, running.pid, running.token, owner,
        process.started(owner) or "", time.time(), str(running.log.path), key_file, str(record),
    )  # fmt: skip


class Failed(NamedTuple):
    """A start that failed: exit status (None: it was too slow), class, and the message for the person."""

    exit_status: int | None
    failure: str | None
    message: str


def _await(engine: Launched, guide: Guide, rules: Supervision, state_dir: Path) -> Failed | None:
    """Wait for readiness and judge the log: ``None`` when the engine is ready."""
    running, order = engine.running, engine.order
    timeout = rules.ready_timeout(order.model_bytes)
    result = supervise.wait_ready(running, timeout, rules, guide.tick)
    verdict = engine.verdict = _judged(engine, result.exit_status, guide)
    outcome: dict[str, Any] = {"ready": result.ready, "seconds": round(result.seconds, 3), **told(verdict)}
    if result.ready:
        registry.enter(state_dir, entry_of(running, order, engine.record_file))
        _write_down(engine, outcome=outcome)
        if guide.gpu and verdict is not None and verdict.gpu in UNUSED:
            guide.say(f"the GPU is not in use: {verdict.gpu}{f' ({verdict.detail})' if verdict.detail else ''}")
        return None
    outcome["exit_status"] = result.exit_status
    _write_down(engine, outcome=outcome)
    how = exit_words(result.exit_status) if result.exit_status is not None else f"was not ready after {timeout:.0f} s"
    message = failure_message(how, verdict, incident(running, order, result.exit_status, verdict, state_dir))
    return Failed(result.exit_status, _class(engine, result.exit_status, verdict, guide), message)


def _write_down(engine: Launched, **more: Any) -> None:
    """Add to the record, with the figures that the engine has told until now."""
    figures = engine.running.figures.data()
    told = {"figures": figures} if figures else {}
    journal.amend(engine.record_file, engine.running.log.secrets, **more, **told)


def _judged(engine: Launched, exit_status: int | None, guide: Guide) -> Verdict | None:
    """The verdict on the log, and on what the system shows of a SIGKILL."""
    running = engine.running
    lines = killed.line_on(exit_status, running.pid, engine.before, engine.rules.short_memory)
    return guide.judge([*running.log.lines(), *lines], exit_status)


def told(verdict: Verdict | None) -> dict[str, Any]:
    """A verdict as plain data."""
    if verdict is None:
        return {}
    return {"gpu": verdict.gpu, "detail": verdict.detail, "failure": verdict.failure, "advice": verdict.advice}


def exit_words(exit_status: int) -> str:
    """An exit status in words; negative is the signal that ended the process."""
    import signal

    if exit_status >= 0:
        return f"exited with status {exit_status}"
    try:
        return f"was ended by {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"was ended by signal {-exit_status}"


def failure_message(how: str, verdict: Verdict | None, incident_file: Path) -> str:
    """One line: what happened, its class and the engine's own words, what to do, and where the log's end is kept."""
    words = f"the engine {how}"
    if verdict is not None and verdict.failure:
        said = " ".join((verdict.line or "").split())[:200]
        words += f": {verdict.failure}" + (f" ({said})" if said else "")
        words += f": {' '.join(verdict.advice.split())}" if verdict.advice else ""
    return f"{words} [{incident_file}]"


def incident(
    running: supervise.Running, order: Order, exit_status: int | None, verdict: Verdict | None, state_dir: Path
) -> Path:
    """Keep what a person needs to understand an unexpected end. Returns the file."""
    path = state_dir / INCIDENTS / f"{running.id}.json"
    facts = {
        "time": time.time(), "model": order.model, "engine": order.engine.command, "build": order.build,
        "argv": hidden(order.argv),
    }  # fmt: skip
    end = {
        "exit_status": exit_status,
        "log": str(running.log.path),
        "last_lines": running.log.lines()[-INCIDENT_LINES:],
    }
    write_json(path, {**facts, **end, **told(verdict)})
    return path


class Death(NamedTuple):
    """How an engine that was ready ended on its own: what to tell the person, and, where recovery has an answer, the
    order to start next and what is said of it."""

    failure: EngineFailed
    next_order: Order | None = None
    said: str = ""


def death_of(engine: Launched, guide: Guide, state_dir: Path) -> Death:
    """An engine that was ready and has ended. Before it ran long enough to be called steady, a part that its failure
    speaks against is blamed; else its drafter, before its build is. What is blamed is not in the next order; of a kill
    from outside nothing is."""
    running, order = engine.running, engine.order
    running.log.join(2.0)
    exit_status = running.process.wait()
    verdict = _judged(engine, exit_status, guide)
    failure = _class(engine, exit_status, verdict, guide)
    early = time.monotonic() - engine.begun < engine.rules.steady
    step = None
    if failure != engine.rules.from_outside:
        step = recover.step_after_death(engine.rules.steps, failure, order.parts, guide.can, early=early)
        _blame(order, failure, step, engine.rules, state_dir, early)
    kept = incident(running, order, exit_status, verdict, state_dir)
    _write_down(engine, death=told(verdict))
    told_failure = EngineFailed(failure_message(exit_words(exit_status), verdict, kept))
    following = guide.again(step) if step else None
    return Death(told_failure, following, _again(step)) if step and following else Death(told_failure)


def _blame(
    order: Order, failure: str | None, step: Step | None, rules: Supervision, state_dir: Path, early: bool = True
) -> None:
    """Remember what is to blame. A drafter is not, when the engine fails (``early``) without it just the same."""
    drafter = order.left_out.get(DRAFTER)
    if drafter is not None and early:
        recover.forgive(state_dir, order.build, drafter)
    recover.blame(state_dir, order.build, order.parts, failure, step, rules.steps, order.called)


def _left_out(order: Order, step: Step) -> dict[str, str]:
    return {step.needs: order.parts[step.needs]} if step.needs in order.parts else {}


def _again(step: Step) -> str:
    return f"trying again: {step.step}, because {step.because}"


def _class(engine: Launched, exit_status: int | None, verdict: Verdict | None, guide: Guide) -> str | None:
    """The failure class that recovery goes by: that of the exit status alone where it speaks against a part of this
    launch, whatever the log complained of before; else the verdict's."""
    own = guide.judge((), exit_status) if engine.order.parts and exit_status is not None else None
    if own is not None and recover.suspect(engine.rules.steps, own.failure, engine.order.parts):
        return own.failure
    return verdict.failure if verdict else None


def _finish(engine: Launched, rules: Supervision, interrupts: Interrupts, failed: bool) -> None:
    """Stop the engine and take back everything that spoke of it. Signals wait until that is done."""
    leaving = isinstance(sys.exc_info()[1], Interrupted)  # who is on the way out needs no second call
    with interrupts.held(forget=leaving):
        exit_status = supervise.stop(engine.running, rules.stop_grace, lambda: interrupts.pending)
        leases.release(engine.lease)
        registry.leave(engine.entry_file)
        if not failed:
            _write_down(engine, ended={"exit_status": exit_status, "time": time.time()})


def _recovered(
    order: Order, failed: Failed, tried: list[str], guide: Guide, rules: Supervision, state_dir: Path
) -> tuple[Order, str]:
    """The next order to try, and the step that leads to it. Raises EngineFailed when none is left."""
    has = guide.can | order.parts.keys()
    while step := recover.next_step(rules.steps, failed.failure, tried, has):
        tried.append(step.step)
        if (next_order := guide.again(step)) is not None:
            _blame(order, failed.failure, step, rules, state_dir)
            guide.say(f"{failed.message}; {_again(step)}")
            return next_order._replace(left_out={**order.left_out, **_left_out(order, step)}), step.step
        tried += [step.step] * step.times  # it changes nothing, however often
    _blame(order, failed.failure, None, rules, state_dir)
    raise EngineFailed(failed.message)
