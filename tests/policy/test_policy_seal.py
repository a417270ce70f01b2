"""Digest and cache: the same meaning has the same digest, another meaning another; a cache is only ever a copy."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_set import FACTS, FAMILY, TABLES, languages, policy_text, write_set

from gezel_rules import places
from gezel_rules.author.compiled import compile_all
from gezel_rules.cache import code_state
from gezel_rules.documents.source import load_yaml
from gezel_rules.engines import registry
from gezel_rules.errors import BadInput
from gezel_rules.logs.sealed import log_policy
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy import seal
from gezel_rules.policy.files import log_policy_paths, policy_paths
from gezel_rules.policy.frozen import summed
from gezel_rules.policy.model import PolicySet
from gezel_rules.policy.seal import Shelf, compile_policies, load_policies

DECISIONS = """
kv.type:
  says: Which type.
  rules:
    - id: operator
      when: settings.kv_type is not none
      then: settings.kv_type
      because: the operator chose {settings.kv_type}
    - id: default
      then: "'f16'"
      evidence: {note: measured, measured: 2026-08-03}
flag.kv: {flag: --kv, then: kv.type}
flag.fit: {flag: --fit, then: "'off'"}
"""
WHOLE = policy_text("kv/kv", DECISIONS, TABLES)
LOG = "policy: logs/gpu\nversion: 1.0.0\nsummary: Patterns.\npatterns: [{id: a, match: b}]\n"


def _digest(directory: Path, text: str, log: str = LOG) -> str:
    base = write_set(directory, {"kv/kv": text, "logs/gpu": log})
    return compile_policies(base, FAMILY, languages()).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kv.type:\n", "kv.type: # which one\n"),
        ("policy: kv/kv\n", "# head\n\npolicy: 'kv/kv'\n"),
        ("evidence: {note: measured, measured: 2026-08-03}", "evidence: {measured: '2026-08-03', note: measured}"),
        ("flag.kv: {flag: --kv, then: kv.type}", 'flag.kv:\n    then: "kv.type"\n    flag: --kv'),
        ("f16: {bytes: 64, automatic: true}", "f16: {automatic: true, bytes: 64}"),
        ("when: settings.kv_type is not none", "when: >-\n          settings.kv_type\n          is not none"),
        ("version: 1.0.0\nsummary: A small policy.\n", "summary: A small policy.\nversion: 1.0.0\n"),
    ],
)
def test_layout_is_not_meaning(tmp_path: Path, old: str, new: str) -> None:
    assert old in WHOLE
    assert _digest(tmp_path, WHOLE.replace(old, new)) == _digest(tmp_path, WHOLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1.0.0", "version: 1.0.1"),
        ("Which type.", "Which type it is."),
        ("settings.kv_type is not none", "settings.kv_type is none"),
        ("\"'f16'\"", "\"'q8_0'\""),
        ("the operator chose", "somebody chose"),
        ("id: default", "id: fallback"),
        ("note: measured", "note: guessed"),
        ("2026-08-03", "2026-08-04"),
        ("bytes: 64", "bytes: 65"),
        ("automatic: false", "automatic: true"),
        ("--kv", "--kw"),
    ],
)
def test_every_meaning_is_in_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert old in WHOLE
    assert _digest(tmp_path, WHOLE.replace(old, new)) != _digest(tmp_path, WHOLE)


def test_the_order_of_rows_and_of_flags_is_meaning(tmp_path: Path) -> None:
    rows = TABLES.strip("\n").split("\n")
    swapped = policy_text("kv/kv", DECISIONS, "\n".join([rows[0], rows[2], rows[1], rows[3]]))
    flags = DECISIONS.strip("\n").split("\n")
    reordered = policy_text("kv/kv", "\n".join([*flags[:-2], flags[-1], flags[-2]]), TABLES)
    assert len({_digest(tmp_path, text) for text in (WHOLE, swapped, reordered)}) == 3


def test_log_policies_are_part_of_it(tmp_path: Path) -> None:
    assert _digest(tmp_path, WHOLE, LOG.replace("match: b", "match: c")) != _digest(tmp_path, WHOLE)


def test_the_name_of_the_directory_is_not(tmp_path: Path) -> None:
    assert _digest(tmp_path / "a", WHOLE) == _digest(tmp_path / "b", WHOLE)


def _shuffled(value: Any, order: random.Random, keep: bool) -> Any:
    """The same data, keys in another order; ``keep`` for the mapping whose order has a meaning."""
    if isinstance(value, list):
        return [_shuffled(item, order, False) for item in value]
    if not isinstance(value, dict):
        return value
    entries = list(value.items())
    if not keep:
        order.shuffle(entries)
    return {key: _shuffled(item, order, False) for key, item in entries}


def _as_json(text: Mapping[str, Any], order: random.Random) -> str:
    """A file as JSON (which is YAML), with its keys shuffled wherever their order means nothing."""
    file = {key: value for key, value in text.items() if key not in ("tables", "decisions")}
    tables = {
        name: {**_shuffled(table, order, False), "rows": _shuffled(table["rows"], order, True)}
        for name, table in text.get("tables", {}).items()
    }
    decisions = {name: _shuffled(body, order, False) for name, body in text.get("decisions", {}).items()}
    return json.dumps(
        {**({"tables": tables} if tables else {}), **_shuffled(file, order, False), "decisions": decisions}
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_shipped_set_written_anew_is_the_same_set(tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    shipped = policies_dir()
    for path in policy_paths(shipped):
        target = tmp_path / "policies" / path.relative_to(shipped)
        target.parent.mkdir(parents=True, exist_ok=True)
        plain = load_yaml(path).plain()
        target.write_text(_as_json(plain, order) if plain.get("decisions") else path.read_text())
    for path in log_policy_paths(shipped):
        target = tmp_path / "policies" / path.relative_to(shipped)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    anew, before = (compile_policies(d, "llama-cpp", LANGUAGES) for d in (tmp_path / "policies", shipped))
    assert anew.digest == before.digest
    assert [_without_lines(d) for d in anew.decisions.values()] == [
        _without_lines(d) for d in before.decisions.values()
    ]


def _without_lines(decision: Any) -> Any:
    return decision._replace(line=0, rules=tuple(rule._replace(line=0) for rule in decision.rules))


def _same(a: PolicySet, b: PolicySet) -> bool:
    parts = ("judged", "tables", "files", "digest")
    return all(getattr(a, part) == getattr(b, part) for part in parts) and list(a.decisions) == list(b.decisions)


def _cache(directory: Path) -> Path:
    return directory / "cache"


def test_a_cached_set_is_the_compiled_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = load_policies(policies_dir(), "llama-cpp", LANGUAGES, _cache(tmp_path))
    monkeypatch.setattr(seal, "compile_policies", None)  # nothing is compiled from here on
    warm = load_policies(policies_dir(), "llama-cpp", LANGUAGES, _cache(tmp_path))
    assert _same(cold, warm)
    assert [list(rows) for rows in cold.tables.values()] == [list(rows) for rows in warm.tables.values()]


def test_what_a_package_is_built_with_is_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No YAML is read, no log policy proved, and nothing is kept a second time."""
    compile_all(policies_dir(), LANGUAGES, tmp_path / "built")
    made = load_policies(policies_dir(), "llama-cpp", LANGUAGES)
    monkeypatch.setattr(places, "compiled_dir", lambda: tmp_path / "built")
    monkeypatch.setattr(seal, "compile_policies", None)
    monkeypatch.setattr(Shelf, "log_sources", None)
    found = load_policies(policies_dir(), "llama-cpp", LANGUAGES, _cache(tmp_path))
    assert _same(found, made)
    assert log_policy(found).patterns
    assert not _cache(tmp_path).exists()


@pytest.mark.parametrize("damage", [b"", b"x" * 100])
def test_a_built_set_that_cannot_be_believed_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    base, built = _small(tmp_path), tmp_path / "built"
    whole = load_policies(base, FAMILY, languages(), built)
    monkeypatch.setattr(places, "compiled_dir", lambda: built)
    next(built.iterdir()).write_bytes(damage)
    assert _same(load_policies(base, FAMILY, languages(), _cache(tmp_path)), whole)


def test_what_changed_meanwhile_is_not_kept_as_part_of_the_set(tmp_path: Path) -> None:
    policies = load_policies(_small(tmp_path), FAMILY, languages(), _cache(tmp_path))
    assert policies.beside.derived("first", lambda: [1]) == [1]
    (tmp_path / "policies" / "logs" / "gpu.yaml").write_text(LOG.replace("match: b", "match: c"))
    assert policies.beside.derived("second", lambda: [2]) == [2]
    assert [path.name.split("-")[0] for path in sorted(_cache(tmp_path).iterdir())] == ["first", "policies"]


def test_whoever_does_not_hold_a_set_against_everything_keeps_none(tmp_path: Path) -> None:
    load_policies(_small(tmp_path), FAMILY, languages(), _cache(tmp_path), keeps=False)
    assert not _cache(tmp_path).exists()


def _small(directory: Path) -> Path:
    return write_set(directory, {"kv/kv": WHOLE, "logs/gpu": LOG})


@given(damage=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_a_damaged_cache_is_compiled_again(tmp_path: Path, damage: st.DataObject) -> None:
    base = _small(tmp_path)
    whole = load_policies(base, FAMILY, languages(), _cache(tmp_path))
    (kept,) = _cache(tmp_path).iterdir()
    data = kept.read_bytes()
    if damage.draw(st.booleans()):
        changed = data[: damage.draw(st.integers(0, len(data) - 1))]
    else:
        at = damage.draw(st.integers(0, len(data) - 1))
        changed = data[:at] + bytes([data[at] ^ damage.draw(st.integers(1, 255))]) + data[at + 1 :]
    kept.write_bytes(changed)
    assert _same(load_policies(base, FAMILY, languages(), _cache(tmp_path)), whole)
    assert kept.read_bytes() == data


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{}", b"[1,2,3,4,5,6]", b'["",[],{},[],[],[{"a":1}]]', b"[" * 100_000]
)
def test_a_cache_of_another_make_is_compiled_again(tmp_path: Path, body: bytes) -> None:
    base = _small(tmp_path)
    whole = load_policies(base, FAMILY, languages(), _cache(tmp_path))
    (kept,) = _cache(tmp_path).iterdir()
    kept.write_bytes(summed(body))
    assert _same(load_policies(base, FAMILY, languages(), _cache(tmp_path)), whole)


def test_other_code_checks_again(tmp_path: Path) -> None:
    """What code holds a set against is its vocabulary and its functions: neither is looked at while it stays."""
    base = _small(tmp_path)
    fewer = {name: type_ for name, type_ in FACTS.items() if name != "settings.kv_type"}
    whole = load_policies(base, FAMILY, languages(), _cache(tmp_path), code=lambda: b"before")
    assert _same(load_policies(base, FAMILY, languages(fewer), _cache(tmp_path), code=lambda: b"before"), whole)
    with pytest.raises(BadInput, match=r"kv/kv\.yaml:14:15: unknown fact 'settings\.kv_type'"):
        load_policies(base, FAMILY, languages(fewer), _cache(tmp_path), code=lambda: b"after")


def test_the_code_behind_a_set(tmp_path: Path) -> None:
    """Every file that says what policies may be counts, those of the engine family among them."""
    names = {entry.split()[0] for entry in registry.code_of(registry.family("llama-cpp")).decode().split("\0")}
    assert {"vocabulary.py", "functions.py", "types.py", "tables.py", "check.py", "declare.py", "needs.py"} <= names
    states = [code_state([tmp_path])]
    for name, text in (("a.py", "1"), ("a.py", "22"), ("b.py", ""), ("b.txt", "no code")):
        (tmp_path / name).write_text(text)
        states.append(code_state([tmp_path]))
    assert len(set(states)) == 4
    assert states[3] == states[4]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    base = _small(tmp_path)
    before = load_policies(base, FAMILY, languages(), _cache(tmp_path))
    path = base / "kv" / "kv.yaml"
    path.write_text(path.read_text().replace("--fit", "--fix"))
    after = load_policies(base, FAMILY, languages(), _cache(tmp_path))
    assert (before.decisions["flag.fit"].flag, after.decisions["flag.fit"].flag) == ("--fit", "--fix")


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the directory should be")
    assert load_policies(_small(tmp_path), FAMILY, languages(), blocked).flags == ("flag.kv", "flag.fit")


def test_broken_policies_are_not_cached(tmp_path: Path) -> None:
    base = write_set(tmp_path, {"kv/kv": WHOLE.replace("is not none", "is not nine")})
    for _ in range(2):
        with pytest.raises(BadInput, match="'is' is for none only"):
            load_policies(base, FAMILY, languages(), _cache(tmp_path))
    assert not _cache(tmp_path).exists()


def test_no_directory_and_no_policies(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such policy directory"):
        load_policies(tmp_path / "nowhere", FAMILY, languages())
    with pytest.raises(BadInput, match="no policy files"):
        load_policies(tmp_path, FAMILY, languages())


def test_a_cache_does_not_grow_with_every_edit(tmp_path: Path) -> None:
    base = _small(tmp_path)
    for number in range(seal.KEPT_SETS + 4):
        (base / "kv" / "kv.yaml").write_text(WHOLE.replace("bytes: 64", f"bytes: {number}"))
        load_policies(base, FAMILY, languages(), _cache(tmp_path))
    kept = list(_cache(tmp_path).iterdir())
    assert len(kept) == seal.KEPT_SETS
    assert any(f'"bytes":{number}' in path.read_bytes().decode("latin-1") for path in kept)
