"""From YAML files to drafts of decisions: shape, ids, versions and templates; every problem is collected.

What expressions mean is checked afterwards (``check``); here only the form counts.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from gezel_rules.documents.node import Node, did_you_mean
from gezel_rules.documents.shape import FLAG, INTEGER, LIST, MAP, NUMBER, TEXT, fields, items
from gezel_rules.errors import Problem
from gezel_rules.policy.model import CANDIDATE, HIT_POLICIES, STAND_DOWNS, WHATEVER, Decision, Part, PolicyFile, Rule
from gezel_rules.policy.sources import Source, Sources
from gezel_rules.policy.tables import TableDraft, read_table
from gezel_rules.record import NamedTuple

SECTIONS = {"engine": TEXT, "tables": MAP, "decisions": MAP, "note": TEXT}
SCALAR = f"{TEXT}|{INTEGER}|{NUMBER}|{FLAG}|nothing"
VERDICTS = ("accept", "reject")
LEVELS = ("environment", "operator", "machine", "catalog", "gguf", "policy")
_NAME = re.compile(r"[a-z][a-z0-9_]*(?:[.-][a-z0-9_]+)*")
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NOT_NAMES = frozenset((*keyword.kwlist, "true", "false", "none", CANDIDATE))

_RULE = {"id": TEXT}
_RULE_MORE = {"when": f"{TEXT}|{FLAG}", "then": SCALAR, "because": TEXT, "level": TEXT, "evidence": MAP}
_DECISION = {"says": TEXT, "hit": TEXT, "over": TEXT, "flag": TEXT, "unit": TEXT, "rules": LIST, **_RULE_MORE}


class Place(NamedTuple):
    """The YAML nodes a rule's expressions came from, for carets."""

    when: Node | None
    then: Node
    because: Node | None


class Draft(NamedTuple):
    """A decision with the nodes behind it; ``places`` run parallel to ``decision.rules``."""

    decision: Decision
    node: Node
    over: Node | None
    places: tuple[Place, ...]


class Drafts(NamedTuple):
    """The files of a set, before their expressions are checked; ``logs`` are its log policies, ``unread`` the names of
    files that are no YAML."""

    files: list[PolicyFile]
    tables: dict[str, TableDraft]
    decisions: dict[str, Draft]
    plain: dict[str, Any]
    logs: list[Source]
    problems: list[Problem]
    unread: tuple[str, ...]

    @property
    def gpu_backends(self) -> dict[str, bool]:
        """The rows of ``backends``, each with whether it computes on a GPU."""
        rows = self.tables["backends"].rows if "backends" in self.tables else {}
        return {name: row.get("gpu") is True for name, row in rows.items() if isinstance(row, dict)}


def load_drafts(sources: Sources, family: str = "") -> Drafts:
    """The drafts of the files a family is judged by (none named: of those for all), collecting problems."""
    drafts = Drafts([], {}, {}, {}, [], list(sources.problems), sources.unread)
    for source in sources.of(family):
        drafts.plain[source.path] = source.root.plain() if isinstance(source.root.value, dict) else {}
        if source.is_log:
            _read_log(source, drafts)
        else:
            _read_file(source, drafts)
    return drafts


def _read_log(source: Source, drafts: Drafts) -> None:
    """What a log policy says is part of the set's identity; its rules have a grammar and a checker of their own."""
    head = source.root.value if isinstance(source.root.value, dict) else {}
    said = [str(head[key].value) if key in head else "" for key in ("policy", "version", "summary")]
    drafts.files.append(PolicyFile(said[0], said[1], source.root.text.name, said[2], source.engine))
    drafts.logs.append(source)


def _read_file(source: Source, drafts: Drafts) -> None:
    problems, root = drafts.problems, source.root
    got = fields(root, "a policy file", problems, {"policy": TEXT, "version": TEXT, "summary": TEXT}, SECTIONS)
    if {"policy", "version", "summary"} - got.keys():
        return
    if got["policy"].value != source.policy:
        problems.append(got["policy"].problem(f"policy must be named after its file: '{source.policy}'"))
    if not _VERSION.fullmatch(got["version"].value):
        problems.append(got["version"].problem("version must be MAJOR.MINOR.PATCH, such as 1.2.0"))
    file = PolicyFile(source.policy, got["version"].value, root.text.name, got["summary"].value, source.engine)
    drafts.files.append(file)
    for name, node in (got["tables"].value if "tables" in got else {}).items():
        _read_table(name, node, drafts)
    for name, node in (got["decisions"].value if "decisions" in got else {}).items():
        _read_decision(name, node, file, drafts)


def _require_name(name: str, node: Node, drafts: Drafts) -> bool:
    key = node.key or node
    if not _NAME.fullmatch(name):
        drafts.problems.append(key.problem(f"'{name}' is not a name: lower case words joined by '_' or '.'"))
        return False
    if not _NOT_NAMES.isdisjoint(name.split(".")):
        drafts.problems.append(key.problem(f"'{name}' means something else in expressions; choose another name"))
        return False
    draft, table = drafts.decisions.get(name), drafts.tables.get(name)
    first = draft.node if draft else table.node if table else None
    if first is not None:
        where = f"{first.text.name}:{(first.key or first).line}"
        drafts.problems.append(key.problem(f"'{name}' is already defined at {where}"))
        return False
    return True


def _read_table(name: str, node: Node, drafts: Drafts) -> None:
    table = read_table(name, node, drafts.problems) if _require_name(name, node, drafts) else None
    if table is not None:
        drafts.tables[name] = table


def _read_decision(name: str, node: Node, file: PolicyFile, drafts: Drafts) -> None:
    if not _require_name(name, node, drafts):
        return
    got = fields(node, f"decision '{name}'", drafts.problems, {}, _DECISION)
    hit = _read_hit(node, got, drafts.problems)
    if ("rules" in got) == ("then" in got):
        drafts.problems.append(node.problem(f"decision '{name}' needs either 'rules' or a single 'then'", 1))
        return
    rules, places = _read_rules(name, node, got, drafts.problems)
    if hit == "search":
        _require_verdicts(rules, places, drafts.problems)
    if "rules" in got and not got["rules"].value:
        drafts.problems.append(got["rules"].problem(f"decision '{name}' has no rules"))
    if "flag" in got:
        stand_downs = _stand_downs(got["flag"])
        rules = [rule for rule, _ in stand_downs] + rules
        places = [place for _, place in stand_downs] + places
    decision = Decision(
        name, _text(got, "says"), hit, _text(got, "over") or None, _text(got, "flag") or None, _text(got, "unit"),
        tuple(rules), file.policy, file.file, (node.key or node).line,
    )  # fmt: skip
    drafts.decisions[name] = Draft(decision, node, got.get("over"), tuple(places))


def _read_hit(node: Node, got: Mapping[str, Node], problems: list[Problem]) -> str:
    """How the rules are combined; ``over`` names the candidates where they are searched, and nowhere else."""
    hit = str(got["hit"].value) if "hit" in got else "first"
    if hit not in HIT_POLICIES:
        known = ", ".join(HIT_POLICIES)
        problems.append(got["hit"].problem(f"hit must be one of {known}{did_you_mean(hit, HIT_POLICIES)}"))
    if (hit == "search") != ("over" in got):
        key = got["over" if "over" in got else "hit"].key or node
        problems.append(key.problem("'over' goes with 'hit: search', and only there"))
    return hit


def _require_verdicts(rules: list[Rule], places: list[Place], problems: list[Problem]) -> None:
    for rule, place in zip(rules, places, strict=True):
        if rule.then not in VERDICTS:
            problems.append(place.then.problem("under 'hit: search', 'then' is accept or reject"))


def _text(got: Mapping[str, Node], key: str) -> str:
    return str(got[key].value).strip() if key in got else ""


def _read_rules(
    name: str, node: Node, got: Mapping[str, Node], problems: list[Problem]
) -> tuple[list[Rule], list[Place]]:
    if "rules" not in got:
        pair = _read_rule(node, {**got, "id": _short_id(node, "when" in got)}, problems)
        return ([pair[0]], [pair[1]]) if pair else ([], [])
    rules: list[Rule] = []
    places: list[Place] = []
    for child in items(got["rules"], f"rules of '{name}'", MAP, problems):
        entries = fields(child, "a rule", problems, _RULE, _RULE_MORE)
        pair = _read_rule(child, entries, problems)
        if pair is None:
            continue
        if any(pair[0].id == rule.id for rule in rules):
            problems.append(entries["id"].problem(f"duplicate rule id '{pair[0].id}' in '{name}'"))
        rules.append(pair[0])
        places.append(pair[1])
    return rules, places


def _stand_downs(flag: Node) -> list[tuple[Rule, Place]]:
    """The two rules every flag has without their being written: not for a build that does not know it, and not
    where the operator passes it. The flag ``*`` stands for arguments that are passed as they are."""
    if flag.value == WHATEVER:
        return []
    option = repr(str(flag.value))
    return [
        (_stand_down(STAND_DOWNS[0], f"{option} not in engine.flags", flag, " is not in this build's --help"),
         Place(flag, flag, None)),
        (_stand_down(STAND_DOWNS[1], f"{option} in launch.arguments", flag, " is among the operator's arguments"),
         Place(flag, flag, None)),
    ]  # fmt: skip


def _stand_down(rule_id: str, when: str, flag: Node, why: str) -> Rule:
    return Rule(rule_id, when, "None", (f"{flag.value}{why}",), "", None, flag.line)


def _short_id(node: Node, conditional: bool) -> Node:
    """The id of a decision's only rule, which need not be written."""
    return Node("passes" if conditional else "always", node.text, node.line, node.column, node.start, node.end)


def _read_rule(node: Node, got: Mapping[str, Node], problems: list[Problem]) -> tuple[Rule, Place] | None:
    if "id" not in got:
        return None
    if not _ID.fullmatch(got["id"].value):
        problems.append(got["id"].problem("a rule id is lower case words joined by '-'"))
    if "then" not in got:
        problems.append(node.problem("a rule has no 'then'", 1))
        return None
    level = _text(got, "level")
    if level and level not in LEVELS:
        problems.append(got["level"].problem(f"level must be one of {', '.join(LEVELS)}"))
    evidence = _read_evidence(got["evidence"], problems) if "evidence" in got else None
    because = got.get("because")
    rule = Rule(
        got["id"].value, _expression(got.get("when")), _expression(got["then"]) or "",
        _template(because, problems), level, evidence, (node.key or node).line,
    )  # fmt: skip
    return rule, Place(got.get("when"), got["then"], because)


def _expression(node: Node | None) -> str | None:
    """``then: 3`` and ``then: true`` mean the constants; text is an expression (or, in a search, a verdict)."""
    if node is None:
        return None
    return node.value if isinstance(node.value, str) else repr(node.value)


def _read_evidence(node: Node, problems: list[Problem]) -> dict[str, Any]:
    got = fields(node, "evidence", problems, {"note": TEXT}, dict.fromkeys(("measured", "where", "expires"), TEXT))
    for key in ("measured", "expires"):
        if key in got and not _is_date(got[key].value):
            problems.append(got[key].problem(f"'{key}' must be a date, such as 2027-08-29"))
    return {key: child.value for key, child in got.items()}


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _template(node: Node | None, problems: list[Problem]) -> tuple[Part, ...]:
    if node is None:
        return ()
    words, last = str(node.value).strip(), 0
    parts: list[Part] = []
    for match in PLACEHOLDER.finditer(words):
        if match.start() > last:
            parts.append(words[last : match.start()])
        parts.append((match[1].strip(), ""))
        last = match.end()
    if last < len(words):
        parts.append(words[last:])
    if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
        problems.append(node.problem("unbalanced { } in 'because'"))
    return tuple(parts)
