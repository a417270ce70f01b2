"""A maintainer makes one mistake after the other in the policies: each gives one problem, in the right file, with a
caret under what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from walk import Mistake, make, shown

from gezel_rules.cli import main
from gezel_rules.places import policies_dir

KV, SPEC, WINDOW, ARGV = (f"llama-cpp/{name}.yaml" for name in ("kv", "speculation", "window", "argv"))
FAILURES = "llama-cpp/logs/failures.yaml"
OPERATOR = "      - id: operator\n        when: settings.window is not none\n"

WALK = {
    "a decision misspelt where it is read": Mistake(
        KV, "then: kv.coarser", "then: kv.coarsr", "kv.coarsr", "did you mean 'kv.coarser'?"),
    "a decision renamed": Mistake(
        KV, "\n  kv.coarser:", "\n  kv.coarsr:", "kv.coarsr", "did you mean 'kv.coarser'"),
    "a table renamed": Mistake(
        KV, "\n  kv_types:", "\n  kv_typs:", "kv_typs", "did you mean 'kv_types'"),
    "a column renamed": Mistake(
        KV, "\n      quantised:", "\n      quantisd:", "quantisd", "did you mean 'quantised'"),
    "a failure class renamed": Mistake(
        FAILURES, "- id: cuda-oom", "- id: cuda-omm", "cuda-omm", "did you mean 'cuda-oom'"),
    "a key misspelt": Mistake(
        KV, "        then: kv.coarser", "        thn: kv.coarser", "thn", "did you mean 'then'?"),
    "a tab": Mistake(
        KV, "\n  kv.coarser:", "\n\tkv.coarser:", "\t", "not valid YAML"),
    "a quotation mark that is not closed": Mistake(
        KV, "then: \"'f16'\"\n        because: the e", "then: \"'f16'\n        because: the e", "", "not valid YAML"),
    "a word that is no KV type": Mistake(
        KV, "then: \"'f16'\"", "then: \"'f61'\"", "\"'f61'\"", "did you mean 'f16'?"),
    "a backend that is none": Mistake(
        KV, "slow_on: [cuda, rocm]", "slow_on: [cudda, rocm]", "cudda", "did you mean 'cuda'?"),
    "a flag as older YAML wrote it": Mistake(
        KV, "quantised: true", "quantised: yes", "yes", "write true"),
    "a need that no rule knows": Mistake(
        SPEC, "words: [nothing, mtp-head, draft-model]", "words: [nothing, mtp-head, draft-model, medusa-head]",
        "medusa-head", "no rule asks"),
    "a type that needs what nobody declared": Mistake(
        SPEC, "{needs: mtp-head,", "{needs: medusa-head,", "medusa-head", "cannot be 'medusa-head'"),
    "a flag that no engine has": Mistake(
        ARGV, "    flag: --threads\n", "    flag: --treads\n", "--treads", "did you mean '--threads'?"),
    "bytes compared with tokens": Mistake(
        WINDOW, "when: window.fits >= window.wanted", "when: memory.beside >= window.wanted",
        "memory.beside >= window.wanted", "bytes and tokens"),
    "a condition that never holds": Mistake(
        WINDOW, OPERATOR, OPERATOR.replace("not none", "none and settings.window is not none"),
        "settings.window is not none", "never holds"),
    "a condition that always holds": Mistake(
        WINDOW, "when: window.fits >= window.wanted",
        "when: window.fits >= window.wanted or window.fits < window.wanted", "window.fits < window.wanted",
        "always holds"),
    "a table that nothing reads": Mistake(
        WINDOW, "\n  default_slots:", "\n  shelf: {a: 1}\n  default_slots:", "shelf", "nothing reads 'shelf'"),
    "a decision that nothing reads": Mistake(
        WINDOW, "\ndecisions:\n", "\ndecisions:\n  window.shelf:\n    then: 1\n", "window.shelf", "nothing reads"),
    "a failure class that nothing speaks for": Mistake(
        FAILURES, "  - id: cuda-oom", "  - id: shelf-oom\n    says: it\n    advice: Buy more.\n  - id: cuda-oom",
        "shelf-oom", "speaks for the failure class"),
}  # fmt: skip


@pytest.mark.parametrize("name", WALK)
def test_each_mistake_gives_one_problem_where_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = WALK[name]
    copy = tmp_path / "policies"
    shutil.copytree(policies_dir(), copy)
    make(mistake, copy)
    assert main(["policy", "check", str(copy)]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    rest = shown(mistake, said.out, f"policies/{mistake.file}")
    assert rest.endswith(" files: 1 problem\n") and said.out.count("\n") - ("    found by: " in said.out) == 4, said.out
