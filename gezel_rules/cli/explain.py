"""``gezel-rules explain MODEL|@ID [SUBJECT]``: why a flag is there or not, why a decision fell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path

from gezel_rules.cli.arguments import MODEL, conditions_of, session_of
from gezel_rules.cli.arguments import add_arguments as add_plan_arguments
from gezel_rules.cli.recorded import kept_json, kept_lines, launched, only_of_plans
from gezel_rules.cli.shown import json_text, tell, write_page
from gezel_rules.decisions.decide import Judgement
from gezel_rules.decisions.explain import block, held_back, passed_on, same, why_not_value
from gezel_rules.decisions.trace import Explainer
from gezel_rules.decisions.words import say
from gezel_rules.documents.source import did_you_mean
from gezel_rules.errors import BadInput
from gezel_rules.planner.flips import NOT_TRIED, WhatIf, what_if
from gezel_rules.planner.plan import Plan
from gezel_rules.planner.report import explainer
from gezel_rules.planner.summary import stood_down
from gezel_rules.session import Session
from gezel_rules.session.recorded import decided_again, find_record, is_recorded

FLIPS = 4
"""Changes that the text shows, one a line; JSON has all that were found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_plan_arguments(parser, f"{MODEL}; or @ID, a launch as 'history' and 'ps' name it")
    parser.add_argument("subject", metavar="SUBJECT", nargs="?", default="all", help="a flag, a decision, or all")
    parser.add_argument("--why-not", metavar="VALUE", help="why SUBJECT is not VALUE")
    parser.add_argument("--html", metavar="FILE", help="write every decision as one page that needs nothing else")


def parse(parser: argparse.ArgumentParser, argv: list[str], chosen: argparse.Namespace) -> argparse.Namespace:
    """SUBJECT may look like an option: what this command does not know as one is the subject, and so is a ``--host``
    with nothing after it."""
    if argv[-1:] == ["--host"]:
        argv = [*argv[:-1], "flag.host"]
    args, rest = parser.parse_known_intermixed_args(argv, chosen)
    if len(rest) > 1 or (rest and args.subject != "all"):
        parser.error(f"one SUBJECT, not {' '.join([*rest, args.subject])}")
    args.subject = rest[0] if rest else args.subject
    return args


def run(args: argparse.Namespace) -> int:
    """Explain; raises BadInput for a subject nobody knows."""
    session = session_of(args)
    if is_recorded(args.model):
        return _recorded(session, args)
    return _explained(session, session.plan(args.model, conditions_of(args)), args)


def _recorded(session: Session, args: argparse.Namespace) -> int:
    """Explain a launch: in full where the policies here are those it was decided by, else what its record kept."""
    only_of_plans(args)
    recorded = find_record(session, args.model)
    digest = session.policies_for(session.family(recorded.record["family"])).digest
    same = digest == recorded.record["policy"]["digest"]
    heading = (launched(recorded, same), "")
    if same:
        return _explained(session, decided_again(session, recorded), args, heading)
    if args.html or args.why_not is not None:
        option = "--html" if args.html else "--why-not"
        raise BadInput(f"{option}: the policies here are not those this launch was decided by; 'replay' compares them")
    if args.json:
        print(json_text(kept_json(recorded.record, args.subject)))
    else:
        tell([*heading, *kept_lines(recorded.record, args.subject)])
    return 0


def _explained(session: Session, plan: Plan, args: argparse.Namespace, heading: Sequence[str] = ()) -> int:
    explain = explainer(plan)
    chosen = subjects(plan, args.subject)
    if args.html:
        return _page(session, plan, args)
    if args.why_not is not None:
        if len(chosen) != 1:
            raise BadInput("--why-not needs one SUBJECT: a flag or a decision")
        _why_not(session, plan, explain, _meant(explain, chosen[0]), args)
    elif args.json:
        print(json_text([{**explain.to_json(j), **_changed(plan, explain, j, args).to_json()} for j in chosen]))
    else:
        said = ([*_about(plan, explain, j), *_what_if(explain, j, _changed(plan, explain, j, args))] for j in chosen)
        tell([*heading, "\n\n".join(map("\n".join, said))])
    return 0


def _page(session: Session, plan: Plan, args: argparse.Namespace) -> int:
    if args.subject != "all" or args.why_not is not None or args.json:
        raise BadInput("--html shows every decision: it goes with no SUBJECT, no --why-not and no --json")
    from gezel_rules.cli.explain_page import page_of  # only for whoever asks for a page

    write_page(Path(args.html), page_of(plan, session))
    return 0


def _meant(explain: Explainer, judgement: Judgement) -> Judgement:
    """Of a flag the decision that it hands on."""
    return passed_on(explain, judgement) if judgement.decision.flag else judgement


def _changed(plan: Plan, explain: Explainer, judgement: Judgement, args: argparse.Namespace) -> WhatIf:
    """What would change the one decision that is asked about, or the one that it passes on; of ``all``, nothing is
    tried."""
    return NOT_TRIED if args.subject == "all" else what_if(plan, _meant(explain, judgement))


def _what_if(explain: Explainer, judgement: Judgement, found: WhatIf) -> Iterator[str]:
    unit = _meant(explain, judgement).decision.unit
    for label, flip in zip(chain(["flips to"], repeat("")), found.flips[:FLIPS], strict=False):
        yield f"    {label:9} {say(flip.value, unit)} with {flip.says}"
    if not found.whole:
        yield f"              nothing else was tried, after {found.judged} judgements"
    yield from (f"    unsettled {unknown.says}" for unknown in found.unsettled)


def _gives(session: Session, judgement: Judgement, setting: str, args: argparse.Namespace) -> bool:
    """Whether a setting would be taken, and lead to a launch with the value asked for."""
    conditions = conditions_of(args)
    if is_recorded(args.model):
        return False  # it was launched already
    try:
        tried = session.plan(args.model, conditions._replace(settings=(*conditions.settings, setting)))
    except BadInput:
        return False
    return not tried.refused and same(tried.trace.judgements[judgement.decision.name].value, args.why_not)


def _why_not(
    session: Session, plan: Plan, explain: Explainer, judgement: Judgement, args: argparse.Namespace
) -> None:  # fmt: skip
    value = args.why_not
    lines = list(why_not_value(explain, judgement, value, lambda setting: _gives(session, judgement, setting, args)))
    there = same(judgement.value, value)
    flips = () if there else what_if(plan, judgement, lambda found: same(found, value)).flips
    if args.json:
        said = {"decision": judgement.decision.name, "why_not": value, "because": [line.strip() for line in lines]}
        print(json_text({**said, "flips": [flip.to_json() for flip in flips]}))
    else:
        tell([*lines, *(f"  it would be {value} with {flip.says}" for flip in flips[:FLIPS])])


def subjects(plan: Plan, subject: str) -> list[Judgement]:
    """The judgements a SUBJECT means: a flag in any spelling, a decision, or ``all``: every flag that is passed."""
    judgements = plan.trace.judgements
    if subject == "all":
        chosen = [judgements[flag.decision] for flag in plan.flags]
        return [*chosen, judgements["refusal"]] if plan.refused else chosen
    if subject in judgements:
        return [judgements[subject]]
    by_flag = {judgements[name].decision.flag: judgements[name] for name in plan.trace.policies.flags}
    for name, spellings in plan.trace.policies.tables.get("option_spellings", {}).items():
        for spelling in (name, *spellings):
            by_flag |= {other: by_flag[flag] for flag in (name, *spellings) if flag in by_flag for other in (spelling,)}
    if subject in by_flag:
        return [by_flag[subject]]
    hint = did_you_mean(subject, [*judgements, *map(str, by_flag)])
    if not hint and subject.startswith("-"):
        hint = "; what no policy decides, an operator passes with --set extra_args='…'"
    raise BadInput(f"no flag or decision '{subject}'{hint}")


def _absent(judgement: Judgement) -> str:
    """What is to be said of a flag that the plan does not pass."""
    flag = judgement.decision.flag
    return f"{flag} is the operator's own, in extra_args" if stood_down(judgement.winner) else f"{flag} is not passed"


def _about(plan: Plan, explain: Explainer, judgement: Judgement) -> Iterator[str]:
    """A flag with the decision it hands on; a decision with nothing before it."""
    decision = judgement.decision
    if decision.flag is None:
        yield from block(explain, judgement)
        if judgement.value is None or judgement.value is False:
            yield from (f"    held back {line}" for line in held_back(explain, judgement))
        return
    tokens = next((flag.tokens for flag in plan.flags if flag.decision == decision.name), None)
    yield " ".join(map(shlex.quote, tokens)) if tokens else _absent(judgement)
    behind = passed_on(explain, judgement)
    yield from block(explain, behind)
    if tokens is None and behind is judgement:
        for name in explain.rests_on(judgement):
            if name in plan.trace.judgements:
                yield from block(explain, plan.trace.judgements[name])
        yield from (f"    held back {line}" for line in held_back(explain, judgement))
