"""From YAML files to drafts of decisions: shape, ids, versions and templates; every problem is collected.

What expressions mean is checked afterwards (``check``); here only the form counts.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from gezel_rules.documents.node import Node
from gezel_rules.documents.read import Value, read
from gezel_rules.errors import Problem
from gezel_rules.policy.causes import blamed, names_of, words_of
from gezel_rules.policy.file import POLICY, VERDICTS
from gezel_rules.policy.layers import laid_over, layers_of
from gezel_rules.policy.model import CANDIDATE, STAND_DOWNS, WHATEVER, Decision, Part, PolicyFile, Rule
from gezel_rules.policy.sources import Source, Sources
from gezel_rules.policy.tables import TableDraft, read_table
from gezel_rules.record import NamedTuple

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NOT_NAMES = frozenset((*keyword.kwlist, "true", "false", "none", CANDIDATE))


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
    """The files of a set, before their expressions are checked; ``sources`` as read; ``logs`` its log policies;
    ``unread`` the files that are no YAML; ``broken`` tables and decisions that are at fault; ``doubtful`` the names
    that they, or files at fault, may define; ``shape`` the problems found so far; ``layers`` what was laid over the
    files, for this family."""

    files: list[PolicyFile]
    tables: dict[str, TableDraft]
    decisions: dict[str, Draft]
    plain: dict[str, Any]
    logs: list[Source]
    problems: list[Problem]
    unread: Mapping[str, str]
    sources: tuple[Source, ...]
    broken: set[str]
    doubtful: set[str]
    shape: list[Problem]
    layers: tuple[Source, ...]

    @property
    def gpu_backends(self) -> dict[str, bool]:
        """The rows of ``backends``, each with whether it computes on a GPU."""
        rows = self.tables["backends"].rows if "backends" in self.tables else {}
        return {name: row.get("gpu") is True for name, row in rows.items() if isinstance(row, dict)}


def load_drafts(sources: Sources, family: str = "") -> Drafts:
    """The drafts of the files a family is judged by (none named: of those for all), collecting problems."""
    problems = list(sources.problems)
    layers = layers_of(sources, family)
    files = laid_over(sources, family, problems) if layers else sources.of(family)
    lost = {word for text in sources.unread.values() for word in words_of(text)}
    drafts = Drafts([], {}, {}, {}, [], problems, sources.unread, files, set(), lost, [], layers)
    for source in files:
        drafts.plain[source.path] = source.root.plain() if isinstance(source.root.value, dict) else {}
        before = len(drafts.problems)
        if source.is_log:
            _read_log(source, drafts)
        else:
            _read_file(source, drafts)
        if found := drafts.problems[before:]:
            sound = {name for name, table in drafts.tables.items() if table.sound}
            drafts.broken.update(blamed(found, source.root) - sound)
            drafts.doubtful.update(names_of(source.root))
    drafts.files.extend(map(_layer, layers))
    drafts.shape.extend(drafts.problems)
    return drafts


def _layer(source: Source) -> PolicyFile:
    """A layer as records carry it: what it changes is in the files it was laid over."""
    _, version, summary = _head(source)
    return PolicyFile(source.root.text.name, version, source.root.text.name, summary, source.engine)


def _head(source: Source) -> list[str]:
    """The policy, version and summary that a file says, as far as it does."""
    head = source.root.value if isinstance(source.root.value, dict) else {}
    return [str(head[key].value) if key in head else "" for key in ("policy", "version", "summary")]


def _read_log(source: Source, drafts: Drafts) -> None:
    """What a log policy says is part of the set's identity; its rules have a grammar and a checker of their own."""
    policy, version, summary = _head(source)
    drafts.files.append(PolicyFile(policy, version, source.root.text.name, summary, source.engine))
    drafts.logs.append(source)


def _read_file(source: Source, drafts: Drafts) -> None:
    values = read(source.root, POLICY, drafts.problems)
    if "policy" in values and values.at("policy") != source.policy:
        drafts.problems.append(values["policy"].problem(f"policy must be named after its file: '{source.policy}'"))
    head = _text(values, "version"), source.root.text.name, _text(values, "summary")
    file = PolicyFile(source.policy, *head, source.engine)
    drafts.files.append(file)
    for name, table in (values.at("tables") or {}).items():
        _read_table(name, table.node, drafts)
    for name, decision in (values.at("decisions") or {}).items():
        _read_decision(name, decision, file, drafts)


def _require_name(name: str, node: Node, drafts: Drafts) -> bool:
    key = node.key or node
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


def _read_decision(name: str, said: Value, file: PolicyFile, drafts: Drafts) -> None:
    node = said.node
    if not _require_name(name, node, drafts):
        return
    _check_over(said, drafts.problems)
    if ("rules" in said) == ("then" in said):
        return
    pairs = _read_rules(name, said, file.file, drafts.problems)
    if said.at("hit") == "search":
        _require_verdicts(pairs, drafts.problems)
    if "flag" in said:
        pairs = _stand_downs(said["flag"].node) + pairs
    decision = Decision(
        name, _text(said, "says"), said.at("hit"), _text(said, "over") or None, _text(said, "flag") or None,
        _text(said, "unit"), tuple(rule for rule, _ in pairs), file.policy, file.file, (node.key or node).line,
    )  # fmt: skip
    over = said["over"].node if "over" in said else None
    drafts.decisions[name] = Draft(decision, node, over, tuple(place for _, place in pairs))


def _check_over(said: Value, problems: list[Problem]) -> None:
    """``over`` names the candidates where they are searched, and nowhere else."""
    known = "hit" in said or "hit" not in said.node.value
    if known and (said.at("hit") == "search") != ("over" in said.node.value):
        node = said.node.value["over" if "over" in said.node.value else "hit"]
        problems.append((node.key or node).problem("'over' goes with 'hit: search', and only there"))


def _require_verdicts(pairs: list[tuple[Rule, Place]], problems: list[Problem]) -> None:
    for rule, place in pairs:
        if rule.then not in VERDICTS:
            problems.append(place.then.problem("under 'hit: search', 'then' is accept or reject"))


def _text(said: Value, key: str) -> str:
    return str(said.at(key) or "").strip()


def _read_rules(name: str, decision: Value, file: str, problems: list[Problem]) -> list[tuple[Rule, Place]]:
    if "rules" not in decision:
        return [_read_rule("passes" if "when" in decision else "always", decision, file, problems)]
    pairs: list[tuple[Rule, Place]] = []
    for rule in decision.at("rules"):
        if not rule.complete:
            continue
        if any(rule.at("id") == other.id for other, _ in pairs):
            problems.append(rule["id"].problem(f"duplicate rule id '{rule.at('id')}' in '{name}'"))
        pairs.append(_read_rule(rule.at("id"), rule, file, problems))
    return pairs


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


def _read_rule(rule_id: str, said: Value, file: str, problems: list[Problem]) -> tuple[Rule, Place]:
    """A rule that has its ``then``. The only rule of a decision need not have an id of its own. ``file`` is that of
    its decision."""
    node, because = said.node, said["because"].node if "because" in said else None
    then = said["then"].node
    if then.value is None and not then.text.text[then.start : then.end].strip():
        problems.append((then.key or then).problem("'then' is empty: write 'then: none' where nothing is meant"))
    rule = Rule(
        rule_id, _expression(said, "when"), _expression(said, "then") or "", _template(because, problems),
        _text(said, "level"), _evidence(said["evidence"]) if "evidence" in said else None, (node.key or node).line,
        "" if node.text.name == file else node.text.name,
    )  # fmt: skip
    return rule, Place(said["when"].node if "when" in said else None, said["then"].node, because)


def _expression(said: Value, key: str) -> str | None:
    """``then: 3`` and ``then: true`` mean the constants; text is an expression (or, in a search, a verdict)."""
    if key not in said:
        return None
    meant = said.at(key)
    return meant if isinstance(meant, str) else repr(meant)


def _evidence(said: Value) -> dict[str, Any]:
    return {key: value.value for key, value in said.value.items()}


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
