"""A policy set as one sealed thing: its canonical digest, and a compiled cache so that a second start reads no YAML.

The digest covers what the files say (versions, tables, decisions), not comments, layout or the order of keys; the order
of a table's rows (candidates are tried in it) and of flags (argv has it) does count. Every record carries it.
The cache is JSON, keyed by the bytes of the files and by what the checker knew; it is a copy, never a source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import __version__
from gezel_rules.cache import forget_older, keep
from gezel_rules.errors import BadInput, Problem
from gezel_rules.lang.types import Function, Type
from gezel_rules.policy.model import Decision, PolicyFile, PolicySet, Rule

if TYPE_CHECKING:
    from gezel_rules.policy.load import Drafts
    from gezel_rules.policy.needs import Needs

CACHE_FORMAT = 5
KEPT_SETS = 8
"""Compiled sets that stay in a cache: a few directories of policies, each as last edited."""
LOGS = "logs"
"""The area of log policies."""


def load_policies(
    directory: Path,
    facts: Mapping[str, Type],
    functions: Mapping[str, Function],
    cache: Path | None = None,
    needs: Callable[[], Needs] | None = None,
) -> PolicySet:
    """The checked set of a directory. Raises BadInput with every problem of every file.

    ``cache`` is a directory for compiled sets (``None``: do not cache); ``needs`` gives what the program reads of the
    set, asked for only when a set is compiled.
    """
    paths = policy_paths(directory)
    key = _key([*paths, *log_policy_paths(directory)], directory, facts, functions)
    kept = cache / f"policies-{key}.json" if cache else None
    found = _thaw(kept) if kept else None
    if found is None:
        found = compile_policies(paths, directory, facts, functions, needs() if needs else None)
        if kept:
            keep(kept, _frozen(found))
            forget_older(kept.parent, "policies-*.json", KEPT_SETS)
    return found


def policy_paths(directory: Path) -> list[Path]:
    """The policy files of a directory, in name order, but for tests beside them and log policies.

    Raises BadInput when there is no such directory or nothing in it.
    """
    if not directory.is_dir():
        raise BadInput(f"{directory}: no such policy directory")
    found = [path for path in _yaml_files(directory) if path.parent.name != LOGS]
    if not found:
        raise BadInput(f"{directory}: no policy files (expected <area>/<name>.yaml)")
    return found


def log_policy_paths(directory: Path) -> list[Path]:
    """The log policies: rules over an engine's log, checked by the watch that reads it. They belong to the digest."""
    return [path for path in _yaml_files(directory) if path.parent.name == LOGS]


def _yaml_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*/*.yaml") if not path.name.endswith("_test.yaml"))


def compile_policies(
    paths: list[Path],
    directory: Path,
    facts: Mapping[str, Type],
    functions: Mapping[str, Function],
    needs: Needs | None = None,
) -> PolicySet:
    """Read, check and seal, without the cache. Raises BadInput with every problem of every file."""
    from gezel_rules.policy.check import check_drafts
    from gezel_rules.policy.load import load_drafts, load_log_policies
    from gezel_rules.policy.needs import absent, unlike

    drafts = load_drafts(paths, directory)
    load_log_policies(log_policy_paths(directory), directory, drafts)
    decisions = check_drafts(drafts, facts, functions)
    if needs and not drafts.problems:
        drafts.problems.extend([*absent(drafts, needs, directory.name), *unlike(drafts, needs)])
    if drafts.problems:
        raise BadInput(in_order(drafts))
    tables = {name: table.filled for name, table in drafts.tables.items()}
    defaults = {name: table.declared.defaults for name, table in drafts.tables.items() if table.declared}
    names = frozenset((*facts, *tables, *decisions, "candidate"))
    declared = [name for name in drafts.decisions if drafts.decisions[name].decision.flag]
    digest = digest_of(drafts.plain, declared)
    return PolicySet(decisions, tables, defaults, tuple(drafts.files), digest, names, tuple(declared))


def in_order(drafts: Drafts, more: Iterable[Problem] = ()) -> list[Problem]:
    """Each problem once, in file order; a file that is no YAML comes first: others may only miss what it would give."""
    return sorted(dict.fromkeys([*drafts.problems, *more]), key=lambda problem: _place(problem, drafts.unread))


def _place(problem: Problem, first: Sequence[str]) -> tuple[bool, str, int, int]:
    return (problem.span.file not in first, *problem.span[:3]) if problem.span else (False, "", 0, 0)


def digest_of(plain: Mapping[str, Any], flags: Sequence[str]) -> str:
    """sha256 over the canonical JSON (sorted keys, no spaces) of all files by their path, and the order of flags."""
    files = {path: {**file, "tables": _in_order(file.get("tables") or {})} for path, file in plain.items()}
    text = json.dumps([files, list(flags)], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _in_order(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables with their rows as pairs, so that sorting keys leaves them where they are."""
    return {
        name: {**table, "rows": _pairs(table["rows"])} if isinstance(table, dict) and "rows" in table else _pairs(table)
        for name, table in tables.items()
    }


def _pairs(rows: Any) -> Any:
    return list(rows.items()) if isinstance(rows, dict) else rows


def _key(paths: list[Path], directory: Path, facts: Mapping[str, Type], functions: Mapping[str, Function]) -> str:
    state = hashlib.sha256(f"{__version__} {CACHE_FORMAT} {facts!r} {functions!r} {directory.name}".encode())
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadInput(f"{path}: {(error.strerror or str(error)).lower()}") from None
        state.update(f"\0{path.relative_to(directory)}\0{len(data)}\0".encode())
        state.update(data)
    return state.hexdigest()[:32]


def _frozen(policies: PolicySet) -> bytes:
    body = [
        policies.digest, policies.files, policies.tables, policies.defaults, policies.flags, sorted(policies.names),
        list(policies.decisions.values()),
    ]  # fmt: skip
    data = json.dumps(body, separators=(",", ":")).encode()
    return hashlib.sha256(data).digest() + data


def _thaw(path: Path) -> PolicySet | None:
    try:
        kept = path.read_bytes()
        if hashlib.sha256(kept[32:]).digest() != kept[:32]:
            return None  # cut short, or changed on disk
        digest, files, tables, defaults, flags, names, decisions = json.loads(kept[32:])
        thawed = {d[0]: _decision(d) for d in decisions}
        known = tuple(PolicyFile(*f) for f in files)
        return PolicySet(thawed, tables, defaults, known, digest, frozenset(names), tuple(flags))
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None  # missing, or of another make: compile again


def _decision(row: list[Any]) -> Decision:
    name, says, hit, over, flag, unit, rules, policy, file, line, reads = row
    return Decision(
        name, says, hit, over, flag, unit, tuple(_rule(rule) for rule in rules), policy, file, line, tuple(reads)
    )


def _rule(row: list[Any]) -> Rule:
    id_, when, then, because, level, evidence, line = row
    parts = tuple(part if isinstance(part, str) else (part[0], part[1]) for part in because)
    return Rule(id_, when, then, parts, level, evidence, line)
