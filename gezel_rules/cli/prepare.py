"""From arguments to something that can be launched: plan, pull what is missing, plan again on the real header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gezel_rules.cli import request
from gezel_rules.cli.run import Ground, Prepared
from gezel_rules.engines.llama_cpp.find import Engine, find_engine, judged_by
from gezel_rules.errors import BadInput, Refused
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.planner.launch import Plan, build_of, make_plan, plan_degraded, plan_without_drafter
from gezel_rules.planner.show import explainer, plan_record, refusal
from gezel_rules.runtime.launch import Guide, Order
from gezel_rules.runtime.supervise import wanted_address


def prepare(args: argparse.Namespace, ground: Ground) -> Prepared:
    """The order for MODEL, pulled if needed. Raises BadInput, Refused when policy says no, TransferFailed."""
    engine = judged_by(find_engine(args.engine, ground.environ), args.policies)
    plan = make_plan(request.request_of(args))
    _require_launch(plan)
    wanted_address(plan.argv, ground.rules)  # a port that is taken is said before anything is fetched
    if not plan.subject.installed:
        pull(plan, request.store_of(args))
        plan = make_plan(request.request_of(args))
        _require_launch(plan)
    _make_slot_directory(plan)
    return Prepared(_order(plan, engine), plan.trace.value("prompt.endpoint"), _guide(plan, engine))


def _require_launch(plan: Plan) -> None:
    found = refusal(plan, explainer(plan))
    if found is None:
        return
    nearest = f"; nearest: {found['nearest']}" if "nearest" in found else ""
    raise Refused(f"{plan.subject.id}: {found['because']}{nearest}")


def pull(plan: Plan, store: Path) -> None:
    """Install what this launch needs. Raises Refused, TransferFailed."""
    from gezel_rules.catalog import find
    from gezel_rules.store.install import install
    from gezel_rules.store.plan import plan_install
    from gezel_rules.store.progress import progress_for

    entry = plan.subject.entry
    if entry is None:
        raise BadInput(f"{plan.subject.id} is not installed and is in no catalog")
    applies = plan.trace.value("drafter.applies"), explainer(plan).because(plan.trace.judgements["drafter.applies"])
    backend = plan.trace.facts["engine.backend"].value
    vision = plan.trace.value("vision.loads")
    wanted = plan_install(entry, "" if backend is UNKNOWN else backend, vision, lambda _: applies)
    progress = progress_for()
    try:
        install(wanted, store, progress)
        for other in wanted.also:  # a drafter that is an entry of its own; it needs none itself
            beside = find(plan.request.places.catalog, other)
            install(plan_install(beside, wanted.backend, False, lambda _: (False, "it drafts")), store, progress)
    finally:
        progress.close()


def _make_slot_directory(plan: Plan) -> None:
    """Engines from 0.1.51 on refuse a slot directory that does not exist."""
    directory = plan.trace.facts["launch.slot_directory"].value
    if directory is None:
        return
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"slot_save_path: {directory}: {(error.strerror or str(error)).lower()}") from None


def _order(plan: Plan, engine: Engine) -> Order:
    value, facts = plan.trace.value, plan.trace.facts
    draft = plan.subject.draft
    return Order(
        engine=engine, argv=tuple(plan.argv), env={}, model=plan.subject.id,
        model_bytes=_size(plan.subject.model_path),
        pools=plan.pools,
        build=build_of(facts), drafter=draft.name if draft and value("drafter.loads") else "",
        record=plan_record(plan),
    )  # fmt: skip


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _guide(plan: Plan, engine: Engine) -> Guide:
    """Judges logs by the log policies, and gives the next order after a failure."""
    current = [plan]

    def again(step: str) -> Order | None:
        following = _STEPS[step](current[0])
        if following is None:
            return None
        current[0] = following
        return _order(following, engine)

    can = frozenset({"degradation"} if plan.trace.value("backend.gpu") else ())
    return Guide(_judge(plan), again, can, _say, gpu=plan.trace.value("backend.gpu"))


_STEPS = {"drop-drafter": plan_without_drafter, "degrade": plan_degraded}


def _judge(plan: Plan) -> Any:
    def judge(lines: Any, exit_status: int | None) -> Any:
        from gezel_rules.logs.sealed import log_policy
        from gezel_rules.logs.watch import classify

        facts: Mapping[str, Any] = {name: plan.trace.facts[f"engine.{name}"].value for name in ("backend", "version")}
        known = {name: None if value is UNKNOWN else value for name, value in facts.items()}
        policy = log_policy(plan.trace.policies)
        return classify(lines, policy, known["backend"], exit_status, known["version"])

    return judge


def _say(line: str) -> None:
    print(f"gezel-rules: {line}", file=sys.stderr, flush=True)
