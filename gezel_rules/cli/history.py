"""``gezel-rules history [MODEL]``: past launches, and what their engines took against what was planned."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from gezel_rules.cli.arguments import session_of
from gezel_rules.cli.shown import columns, count, json_text, tell
from gezel_rules.decisions.words import say, say_bytes
from gezel_rules.runtime.registry import running
from gezel_rules.session.history import Past, Sum, history, past_json, sum_json, sums

LAST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="launches of this model alone, as history names it")
    parser.add_argument(
        "--last", metavar="N", type=_number, default=LAST, help=f"so many, the latest (default: {LAST})"
    )


def _number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} (1 or more)")
    return value


_number.__name__ = "count"


def run(args: argparse.Namespace) -> int:
    """Show the launches, oldest first."""
    session = session_of(args)
    launches = history(session, args.model)
    shown, found = launches[-args.last :], sums(launches)
    if args.json:
        data = {"launches": [past_json(past) for past in shown], "memory": [sum_json(row) for row in found]}
        print(json_text({**data, "left_out": len(launches) - len(shown)}))
    else:
        alive = {entry.id for entry in running(session.state)}
        tell(_text(shown, found, len(launches), alive, args.model))
    return 0


def _text(
    shown: Sequence[Past], found: Sequence[Sum], number: int, alive: set[str], model: str | None
) -> Iterator[str]:
    if not shown:
        yield f"no launch of {model} is recorded" if model else "no launch is recorded yet: 'run' and 'serve' make them"
        return
    head = ("ID", "WHEN", "MODEL", "TOOK", "WHAT BECAME OF IT")
    yield from columns(head, [_row(past, past.id in alive) for past in shown])
    if number > len(shown):
        yield f"{count(number - len(shown), 'earlier launch', 'earlier launches')} left out (--last {number} shows all)"
    yield ""
    yield from _memory(found)
    yield f"why: gezel-rules explain @{shown[-1].id} · the same today? gezel-rules replay @{shown[-1].id}"


def _row(past: Past, alive: bool) -> tuple[str, ...]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(past.started))
    return past.id, when, past.model, _took(past), _became(past, alive)


def _became(past: Past, alive: bool) -> str:
    """How it went, in a few words; what recovery had to do first."""
    after = f", after {', '.join(past.recovery)}" if past.recovery else ""
    if past.ready is None:
        return ("starting" if alive else "nobody saw its end") + after
    if not past.ready:
        return f"did not start: {past.failure or _status(past.exit_status)}{after}"
    began = f"ready in {_seconds(past.seconds)}"
    if past.ended is None:
        return f"{began}, {'running' if alive else 'nobody saw its end'}{after}"
    ran = f"{began}, ran {_seconds(past.ended - past.started)}"
    died = f", died: {past.failure}" if past.failure and past.exit_status else ""
    drafts = f", {past.rate:.0%} of drafts taken" if past.rate is not None else ""
    return f"{ran}{died}{drafts}{after}"


def _status(status: int | None) -> str:
    return "too slow" if status is None else f"exit status {status}"


def _seconds(seconds: float | None) -> str:
    """``6.0 s``, ``12 min``, ``3.5 h``."""
    if seconds is None:
        return "?"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{max(0.0, seconds):.1f} s"


def _took(past: Past) -> str:
    """What the engine took in all, and how many times the plan's figure that is; an engine may not say."""
    estimate, actual = sum(row.estimate for row in past.memory), sum(row.actual for row in past.memory)
    return f"{say_bytes(actual)} ×{actual / estimate:.2f}" if estimate else "?"


def _memory(found: Sequence[Sum]) -> Iterator[str]:
    if not found:
        return
    yield "memory the engines took, against what was planned (×1.00 is exact):"
    head = ("", "POOL", "PART", "LAUNCHES", "PLANNED", "TOOK", "", "FURTHEST OFF")
    yield from columns(head, map(_sum_row, found))
    yield ""


def _sum_row(row: Sum) -> tuple[str, ...]:
    sizes = say_bytes(row.estimate), say_bytes(row.actual)
    furthest = f"×{row.worst:.2f} in {row.worst_id}"
    return "", row.pool, row.part, say(row.launches), *sizes, f"×{row.actual / row.estimate:.2f}", furthest
