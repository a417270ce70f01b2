"""What the engine calls things stands in policies, not in code: backends, speculative and KV types, flags, log lines.

The words are taken from the policy files themselves, and looked for in every string of every module. A string that
merely looks alike is listed below with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gezel_rules.documents.source import load_yaml
from gezel_rules.places import policies_dir
from gezel_rules.policy.files import all_paths

CODE = Path(__file__).parent.parent / "gezel_rules"
MODULES = sorted(CODE.rglob("*.py"))

ANYWHERE = {
    "none": "the language's and everybody's word for nothing",
    "*": "a pattern, a product, or the flag that stands for arguments passed as they are",
    "-m": "python -m",
    "general.name": "a key of GGUF files",
    "chat template": "a label in the summary of a header",
    "MTP layers": "a label in the summary of a header",
}
OUR_OPTIONS = "options of 'gezel-rules memory', which are spelled as the engine's; and errors that name them"
PLACEMENT = "the placement mode (placement_modes in policies/llama-cpp/placement.yaml), not a backend"
AS_THE_ENGINE = "the embedded engine says what llama-server says, so that one log policy reads both"
SOMEWHERE: Mapping[str, Mapping[str, str]] = {
    "engines/llama_cpp/memory_command.py": dict.fromkeys(
        ("--cache-type-k", "--cache-type-v", "--parallel", "--kv-unified", "--swa-full", "--flash-attn", "--spec-type",
         "--spec-draft-n-max", "--n-gpu-layers", "--tensor-split", "--n-cpu-moe", "--cpu-moe", "--override-tensor",
         "--no-kv-offload"), OUR_OPTIONS),
    "engines/llama_cpp/memory/offload.py": {"--tensor-split": OUR_OPTIONS, "--override-tensor": OUR_OPTIONS},
    "cli/": {"--host": "our own option: a described host"},
    "facts/cgroups.py": {"cpu": "the name of a cgroup controller"},
    "facts/described_host.py": {"--ctx-size": "an example in an error"},
    "engines/llama_cpp/features.py": dict.fromkeys(
        ("-lv", "--port"), "asking an engine what it would say at any launch"),
    "engines/llama_cpp/devices.py": {"(none)": "a source without devices, in words"},
    "engines/llama_cpp/memory/placement.py": {"cpu": PLACEMENT},
    "engines/llama_cpp/capacity.py": {"cpu": PLACEMENT},
    "engines/llama_cpp/needs.py": {"cpu": PLACEMENT},
    "engines/llama_cpp/embedded.py": {"Available devices:": AS_THE_ENGINE},
}  # fmt: skip


def _read() -> tuple[dict[str, Any], set[str], set[str]]:
    """All tables of the policies, the flags of decisions, and what log policies look for."""
    tables: dict[str, Any] = {}
    flags: set[str] = set()
    logs: set[str] = set()
    for path in all_paths(policies_dir()):
        plain = load_yaml(path).plain()
        if path.parent.name == "logs":
            logs |= set(_looked_for(plain))
            continue
        tables |= {name: table["rows"] for name, table in (plain.get("tables") or {}).items()}
        flags |= {decision["flag"] for decision in (plain.get("decisions") or {}).values() if "flag" in decision}
    return tables, flags, logs


def _looked_for(plain: Mapping[str, Any]) -> Iterator[str]:
    """Literals and regular expressions of a log policy."""
    entries = [entry for section in plain.values() if isinstance(section, list) for entry in section]
    for entry in entries:
        for key in ("needs", "match", "but_not", "opens", "closes", "then"):
            found = entry.get(key, ()) if isinstance(entry, dict) else ()
            yield from [found] if isinstance(found, str) else found


TABLES, FLAGS, LOGS = _read()
for option, spellings in TABLES["option_spellings"].items():
    FLAGS |= {option, *spellings}
FLAGS |= {*TABLES["embedded_flags"], *TABLES["secret_arguments"], *TABLES["thread_arguments"]}
WORDS: dict[str, set[str]] = {
    "backend": {*TABLES["backends"], *TABLES["device_prefixes"]},
    "speculative type": set(TABLES["spec_types"]),
    "KV type": set(TABLES["kv_types"]),
    "flag": FLAGS,
    "log pattern": LOGS,
}


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Line and value of every string of a module but the docstrings; the pieces of f-strings too."""
    tree = ast.parse(source)
    said = {
        id(statement.value)
        for node in ast.walk(tree)
        for statement in (getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else ())
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def constants(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and word of every engine word in a module: a whole string, or an unmistakable word inside one."""
    for line, text in strings(source):
        inside = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+|\b[a-z0-9]+(?:[-_][a-z0-9]+)+\b", text))
        for kind, words in WORDS.items():
            for word in words & ({text} if kind in ("log pattern", "backend") else {text, *inside}):
                yield line, kind, word


def test_the_words_are_read_from_the_policies() -> None:
    assert {kind: len(words) > 5 for kind, words in WORDS.items()} == dict.fromkeys(WORDS, True)
    assert {"cuda", "CUDA"} <= WORDS["backend"]
    assert {"--cache-type-k", "-ctk", "-lv", "--threads-batch"} <= FLAGS
    assert len(LOGS) > 200


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("backend = 'cuda'", "backend"),
        ("f(f'--threads={n}')", "flag"),
        ("argv += ['-ctk', kind]", "flag"),
        ("if kind in ('q8_0', 'x'): pass", "KV type"),
        ("says = f'{kind} instead of q8_0'", "KV type"),
        ("x = {'draft-mtp': 1}", "speculative type"),
        (f"PATTERN = {max(LOGS, key=len)!r}", "log pattern"),
    ],
)
def test_the_search_finds_what_it_is_for(source: str, kind: str) -> None:
    assert kind in {found for _, found, _ in constants(source)}


def test_a_docstring_may_say_anything() -> None:
    assert list(constants("'''cuda'''\ndef f():\n    '''--threads'''\n    return 1\n")) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(CODE).as_posix())
def test_no_engine_constants(path: Path) -> None:
    name = path.relative_to(CODE).as_posix()
    allowed = {*ANYWHERE, *(word for where, words in SOMEWHERE.items() if name.startswith(where) for word in words)}
    found = [f"line {line}: {kind} {word!r}" for line, kind, word in constants(path.read_text()) if word not in allowed]
    assert found == []


def test_every_exception_is_still_needed() -> None:
    found = {path.relative_to(CODE).as_posix(): {w for _, _, w in constants(path.read_text())} for path in MODULES}
    assert set(ANYWHERE) <= set().union(*found.values())
    for where, words in SOMEWHERE.items():
        assert set(words) <= set().union(*(said for name, said in found.items() if name.startswith(where))), where
