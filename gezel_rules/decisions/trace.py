"""A judgement as data: the JSON of ``plan --json``, records and snapshots."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gezel_rules.decisions.decide import Judged, Judgement, Trace
from gezel_rules.decisions.words import say, why_not
from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.lang.evaluate import EvaluationError, Evaluator
from gezel_rules.policy.model import CANDIDATE, Part, Rule


def place_of(judgement: Judgement) -> tuple[str, int]:
    """The file and line of what decided: the rule that won, in the layer that changed it or the decision's own file."""
    decision, winner = judgement.decision, judgement.winner
    if winner is None or not winner.rule.line:
        return decision.file, decision.line
    return winner.rule.layer or decision.file, winner.rule.line


class Explainer:
    """Turns the judgements of one trace into words and data."""

    def __init__(self, trace: Trace, units: Mapping[str, str]) -> None:
        self.trace = trace
        self.units = {**units, **{n: j.decision.unit for n, j in trace.judgements.items()}}
        self._names = dict(trace.names)
        self._evaluator = Evaluator(self._names, trace.functions)

    def to_json(self, judgement: Judgement) -> dict[str, Any]:
        """One entry of the plan's ``decisions``."""
        decision, winner = judgement.decision, judgement.winner
        file, line = place_of(judgement)
        return {
            "name": decision.name,
            "value": None if judgement.value is UNKNOWN else judgement.value,
            "rule": winner.rule.id if winner else None,
            "level": self.level(judgement),
            "source": {"file": file, "line": line},
            "because": self.because(judgement),
            "facts": {name: self._fact(name) for name in self.read(judgement)},
            "beaten": [{"rule": rule, "why": why} for rule, why in self.beaten(judgement)],
            **({"evidence": dict(winner.rule.evidence)} if winner and winner.rule.evidence else {}),
        }

    def level(self, judgement: Judgement) -> str:
        """The precedence level that won: the rule's own, else that of the fact or decision it passes on."""
        winner = judgement.winner
        if winner is None:
            return "policy"
        return winner.rule.level or self._level_of(winner.rule.then)

    def _level_of(self, then: str) -> str:
        if then in self.trace.facts:
            return self.trace.facts[then].level or "policy"
        if then in self.trace.judgements:
            return self.level(self.trace.judgements[then])
        return "policy"

    def because(self, judgement: Judgement) -> str:
        """The winner's reason with its figures; what was unknown or never fired when there is no winner."""
        if judgement.value is UNKNOWN and judgement.winner is None:
            return "what it is chosen from is unknown"
        if judgement.winner is None:
            return self._because_nothing(judgement)
        return self._rendered(judgement.winner)

    def _because_nothing(self, judgement: Judgement) -> str:
        if not judgement.judged:
            return "no rule fires" if judgement.decision.hit != "search" else "there is nothing to choose from"
        if judgement.decision.hit != "search":
            return f"no rule fires: {self._why_failed(judgement.judged[-1])}"
        last = {say(judged.candidate[0]): judged for judged in judgement.judged}  # what was judged last settled it
        said = (self._rendered(j) if j.fired is True else f"{name}: no rule fires" for name, j in last.items())
        return f"nothing is accepted: {'; '.join(said)}"

    def _rendered(self, judged: Judged) -> str:
        if not judged.rule.because:
            return "always" if judged.rule.when is None else f"{judged.rule.when}"
        return "".join(self._part(part, judged) for part in judged.rule.because)

    def _part(self, part: Part, judged: Judged) -> str:
        if isinstance(part, str):
            return part
        text, unit = part
        try:
            return say(self.evaluate(text, judged.candidate), unit)
        except EvaluationError as error:
            return f"({error.message})"

    def evaluate(self, text: str, candidate: Any = None) -> Any:
        """An expression of the set over this trace's values. Raises EvaluationError."""
        self._evaluator.record = []
        if candidate is not None:
            self._names[CANDIDATE] = candidate[1]
        return self._evaluator.evaluate(self.trace.policies.tree(text))

    def read(self, judgement: Judgement) -> list[str]:
        """Names of the facts and decisions read on the way to the answer, in order."""
        names: dict[str, None] = {}
        for judged in judgement.judged:
            names.update(dict.fromkeys(self._reads(judged.rule, judgement)))
        return list(names)

    def rests_on(self, judgement: Judgement) -> list[str]:
        """What the winning rule itself reads; without a winner, the last rule that could have been it."""
        last = judgement.winner or (judgement.judged[-1] if judgement.judged else None)
        return self._reads(last.rule, judgement) if last else []

    def _reads(self, rule: Rule, judgement: Judgement) -> list[str]:
        texts = [rule.when]
        if judgement.winner is not None and rule is judgement.winner.rule:
            texts += [rule.then if judgement.decision.hit != "search" else None]
            texts += [part[0] for part in rule.because if isinstance(part, tuple)]
        names = dict.fromkeys(name for text in texts if text for name in self.trace.policies.reads(text))
        return [name for name in names if name in self.trace.facts or name in self.trace.judgements]

    def _fact(self, name: str) -> dict[str, Any]:
        fact = self.trace.facts.get(name)
        if fact is None:
            value = self.trace.judgements[name].value
            return {"value": None if value is UNKNOWN else value, "source": "decision"}
        shown: dict[str, Any] = {"value": None if fact.value is UNKNOWN else fact.value, "source": fact.source}
        if fact.value is UNKNOWN:
            shown.update(unknown=True, **({"settle": fact.settle} if fact.settle else {}))
        if fact.level:
            shown["level"] = fact.level
        if fact.beaten:
            shown["beaten"] = [{"level": lv, "value": v, "source": s} for lv, v, s in fact.beaten]
        return shown

    def rejected(self, judgement: Judgement) -> list[tuple[str, str]]:
        """Of a search: the candidates turned down, each with the rule that did it."""
        winner = judgement.winner
        return [(self._label(j), self._rendered(j)) for j in judgement.judged if j.fired is True and j is not winner]

    def beaten(self, judgement: Judgement) -> list[tuple[str, str]]:
        """Every rule that did not decide, with the reason; rules after the winner are judged too."""
        lost = [(self._label(j), self._lost(j, judgement)) for j in judgement.judged if j is not judgement.winner]
        winner = judgement.winner
        if winner is None or judgement.decision.hit in ("unique", "collect", "search"):
            return lost
        after = judgement.decision.rules[len(judgement.judged) :]
        return lost + [(rule.id, self._later(rule, winner.rule)) for rule in after]

    @staticmethod
    def _label(judged: Judged) -> str:
        if judged.candidate is None:
            return judged.rule.id
        return f"{judged.rule.id} ({say(judged.candidate[0])})"

    def _lost(self, judged: Judged, judgement: Judgement) -> str:
        if judged.fired is True:
            if judgement.decision.hit == "search":
                return f"rejected: {self._rendered(judged)}"
            return "also fires; its value is collected"
        return self._why_failed(judged)

    def _why_failed(self, judged: Judged) -> str:
        if judged.rule.when is None:
            return "does not apply"
        names = self.trace.names
        if judged.candidate is not None:
            names = {**names, CANDIDATE: judged.candidate[1]}
        tree = self.trace.policies.tree(judged.rule.when)
        return why_not(tree, judged.record, names, self.units, self.trace.judgements)

    def _later(self, rule: Rule, winner: Rule) -> str:
        if rule.when is None:
            return f"the default; '{winner.id}' comes first"
        try:
            fired = self.evaluate(rule.when)
        except EvaluationError as error:
            return error.message
        if fired is True:
            return f"would fire too, but '{winner.id}' comes first"
        record: list[tuple[ast.expr, Any]] = self._evaluator.record
        return self._why_failed(Judged(rule, fired, record))
