"""A small policy with a test file beside it, read and run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from small_set import FACTS, FAMILY, FUNCTIONS, languages, policy_text, write_set

from gezel_rules.author.testing.given import Words
from gezel_rules.author.testing.judge import Bench
from gezel_rules.author.testing.run import Results, benches_of, run_suites
from gezel_rules.author.testing.suites import Suite, read_suites
from gezel_rules.lang.types import FLAG, INTEGER, Function
from gezel_rules.policy.seal import compile_policies

TABLES = """
kv_types:
  says: Precisions, finest first.
  columns:
    automatic: {kind: flag, says: may be taken unasked}
    bits: {kind: integer, says: of a value}
  rows:
    f16:  {automatic: false, bits: 16}
    q8_0: {automatic: true, bits: 8}
    q4_0: {automatic: true, bits: 4}
"""
DECISIONS = """
kv.type:
  says: The precision.
  rules:
    - id: operator
      when: settings.kv_type is not none
      then: settings.kv_type
      because: the operator chose {settings.kv_type}
    - id: small
      when: gpu.free < 1024
      then: "'q8_0'"
      because: only {gpu.free} are free
    - id: fine
      then: "'f16'"
      because: it fits
kv.coarser:
  says: What may be taken instead.
  hit: search
  over: kv_types
  rules:
    - id: not-automatic
      when: not candidate.automatic
      then: reject
    - id: too-large
      when: not holds(candidate.name, model.layers)
      then: reject
    - id: holds
      then: accept
"""
FUNCTION = {"holds": Function((FACTS["model.arch"], INTEGER), FLAG, "whether it holds")}


def suites(directory: Path, tests: str, decisions: str = DECISIONS, tables: str = TABLES) -> list[Suite]:
    """The suite of one policy, ``kv/kv``, with these tests beside it. Raises BadInput."""
    base = write_set(directory, {"kv/kv": policy_text("kv/kv", decisions, tables)})
    (base / "kv" / "kv_test.yaml").write_text("tests: kv/kv\n" + dedent(tests))
    policies = compile_policies(base, FAMILY, languages(FACTS, {**FUNCTIONS, **FUNCTION}))
    words = Words(FACTS, frozenset(("gpu.free", "model.layers")), policies, FUNCTION)
    return read_suites(base, lambda family: words, None)


def run(directory: Path, tests: str, decisions: str = DECISIONS, tables: str = TABLES) -> tuple[Results, Bench]:
    """What became of these tests, and the bench they were run on."""
    found = suites(directory, tests, decisions, tables)
    benches = benches_of(found)
    return run_suites(found, _no_launch, benches)[0], next(iter(benches.values()))


def _no_launch(*_: object) -> None:
    raise AssertionError("no launch is planned here")
