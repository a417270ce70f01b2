"""Where a rule, and a part of its condition, stands in the file of its policy."""

from __future__ import annotations

import ast

from gezel_rules.documents.node import Node
from gezel_rules.lang.parse import below, bind, parse
from gezel_rules.policy.model import Decision, PolicySet, Rule


def rule_node(rule: Rule, decision: Decision, root: Node) -> Node:
    """The YAML of a rule: the decision's own where it has only one."""
    node: Node = root.value["decisions"].value[decision.name]
    written = node.value.get("rules")
    found = [each for each in written.value if each.value["id"].value == rule.id] if written else []
    return found[0] if found else node


def line_of(node: ast.expr, rule: Rule, decision: Decision, root: Node, policies: PolicySet) -> int:
    """The line on which a part of a rule's condition begins; the rule's own for what is not in it."""
    when = rule_node(rule, decision, root).value.get("when")
    if rule.when is None or when is None or not isinstance(when.value, str):
        return rule.line
    placed = below(bind(parse(rule.when), policies.judged.names))
    for own, other in zip(below(policies.tree(rule.when)), placed, strict=True):
        if own is node:
            problem = when.problem_within("", other.col_offset)
            return problem.span.line if problem.span else rule.line
    return rule.line
