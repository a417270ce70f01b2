"""``policy check`` and ``policy show`` as people call them."""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from gezel_rules import places
from gezel_rules.author.check import read_library
from gezel_rules.author.checks import CHECKS
from gezel_rules.author.listing import KINDS, facts, functions
from gezel_rules.author.page import page
from gezel_rules.author.show import Index
from gezel_rules.cli import main
from gezel_rules.cli.policy import check
from gezel_rules.engines import plain_functions
from gezel_rules.engines.llama_cpp.functions import SIGNATURES
from gezel_rules.engines.llama_cpp.vocabulary import WORDS
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import LANGUAGES
from gezel_rules.policy.files import all_paths

POLICY = """policy: kv/kv
version: 1.2.0
summary: How precise the KV cache is.
tables:
  kv_types:
    says: Precisions of the KV cache.
    columns:
      quantised: {kind: flag, default: false, says: its rows come in blocks}
      automatic: {kind: flag, says: may be taken unasked}
      slow_on: {kind: list, of: {kind: text}, says: where it crawls}
    rows:
      f16:  {automatic: true, slow_on: []}
      q8_0: {automatic: false, slow_on: [a, b], quantised: true}
  steps: [experts, layers]
decisions:
  kv.type:
    says: The precision of keys and values.
    rules:
      - id: operator
        when: settings.kv_type is not none
        then: settings.kv_type
        because: the operator chose {settings.kv_type}
      - id: default
        then: "'f16'"
        evidence: {note: measured on paper, measured: 2026-08-03, expires: 2027-08-03}
  flag.cache:
    says: Precision of the keys.
    flag: --cache-type-k
    then: kv.type
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "policies" / "kv" / "kv.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(POLICY)
    return tmp_path / "policies"


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["policy", *argv]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_the_shipped_policies_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(shown(capsys, "check", "--json"))
    assert (report["problems"], report["warnings"]) == ([], [])
    assert report["files"] == len(all_paths(policies_dir()))
    line = shown(capsys, "check")
    assert line == (
        f"checked {report['files']} files, {report['decisions']} decisions, {report['tables']} tables: no problems\n"
    )


def test_check_of_a_directory(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["check", str(directory)], ["check", "--policies", str(directory)]):
        assert main(["policy", *argv]) == 0
        said = capsys.readouterr()
        warning, checked = said.out.splitlines()
        assert warning.startswith("warning: policies: part of a set: ")
        assert checked == "checked 1 file, 2 decisions, 2 tables: no problems (1 warning)"
        assert said.err == ""


def test_from_within_the_directory_the_places_have_its_name(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "kv" / "kv.yaml").write_text(POLICY.replace("'f16'", "f16"))
    monkeypatch.chdir(directory)
    assert main(["policy", "check", "."]) == 2
    assert capsys.readouterr().out.startswith("policies/kv/kv.yaml:24:16: unknown fact 'f16'")


def checked(directory: Path, today: date, as_json: bool = False) -> int:
    places = {"policies": None, "catalog": None, "store": None, "layer": None}
    return check.check(argparse.Namespace(what=str(directory), json=as_json, format="text", **places), today)


def test_stale_evidence_is_a_warning(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(directory, date(2027, 8, 3)) == 0
    before = capsys.readouterr().out.splitlines()[0]
    assert checked(directory, date(2027, 8, 4)) == 0
    said = capsys.readouterr()
    assert said.out == (
        f"{before}\npolicies/kv/kv.yaml:25:76: warning: evidence of rule 'default' in 'kv.type' expired on 2027-08-03: "
        "measure again [stale-evidence]\n"
        "checked 1 file, 2 decisions, 2 tables: no problems (2 warnings)\n"
    )
    assert checked(directory, date(2030, 1, 1), as_json=True) == 0
    _, warning = json.loads(capsys.readouterr().out)["warnings"]
    assert (warning["line"], warning["column"]) == (25, 76)


def test_a_policy_only_the_schema_refuses_is_reported(
    directory: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(places.schemas_dir(), tmp_path / "schemas")
    path = tmp_path / "schemas" / "policy.schema.json"
    schema = json.loads(path.read_text())
    decision = schema["properties"]["decisions"]["additionalProperties"]
    decision["properties"]["rules"]["items"]["required"].append("because")
    path.write_text(json.dumps(schema))
    monkeypatch.setattr(places, "schemas_dir", lambda: tmp_path / "schemas")
    assert main(["policy", "check", str(directory)]) == 2
    said = capsys.readouterr().out
    assert "policies/kv/kv.yaml:23:9: policy.schema.json refuses this: 'because' is a required property" in said


def test_nothing_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, said in ((tmp_path / "nowhere", "no such policy directory"), (tmp_path, "no policy files")):
        assert main(["policy", "check", str(place)]) == 2
        assert said in capsys.readouterr().err


def test_show_lists_everything(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "show", "--policies", str(directory)) == (
        "kv/kv 1.2.0   policies/kv/kv.yaml\n"
        "  How precise the KV cache is.\n"
        "    kv.type     The precision of keys and values.\n"
        "    flag.cache  --cache-type-k: Precision of the keys.\n"
        "    kv_types    table, 2 rows: Precisions of the KV cache.\n"
        "    steps       table, 2 rows\n"
    )


def test_show_a_decision(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "show", "kv.type", "--policies", str(directory)) == (
        "kv.type   policies/kv/kv.yaml:16 · kv/kv 1.2.0\n"
        "  The precision of keys and values.\n"
        "  the first rule that fires decides\n"
        "\n"
        "  operator   line 19\n"
        "    when     settings.kv_type is not none\n"
        "    then     settings.kv_type\n"
        "    because  the operator chose {settings.kv_type}\n"
        "\n"
        "  default   line 23\n"
        "    when     always\n"
        "    then     'f16'\n"
        "    evidence measured on paper · measured 2026-08-03 · expires 2027-08-03\n"
        "\n"
        "  reads facts      settings.kv_type\n"
        "  read by          flag.cache\n"
    )


def test_show_a_table_and_a_fact(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "show", "kv_types", "--policies", str(directory)) == (
        "kv_types   policies/kv/kv.yaml:5 · kv/kv 1.2.0\n"
        "  Precisions of the KV cache.\n"
        "  quantised  true or false, default no: its rows come in blocks\n"
        "  automatic  true or false: may be taken unasked\n"
        "  slow_on    list of text: where it crawls\n"
        "\n"
        "    f16   automatic yes · slow_on -\n"
        "    q8_0  automatic no · slow_on a, b · quantised yes\n"
        "\n"
        "  read by          no decision\n"
    )
    said = shown(capsys, "show", "settings.kv_type", "--policies", str(directory))
    assert said.startswith("settings.kv_type   fact, text or none\n")
    assert said.endswith("  read by          kv.type\n")


def test_show_an_area_of_facts(capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = shown(capsys, "show", "settings").splitlines()
    assert head == f"settings   {sum(word.name.startswith('settings.') for word in WORDS)} facts"
    assert any(line.startswith("    settings.kv_type") and "a row of kv_types" in line for line in lines)


def test_everything_of_a_kind_is_listed_with_meaning_and_source(index: Index) -> None:
    read = index.find("settings.window")
    assert (read["type"], read["unit"], read["source"]) == (
        "whole number or none in tokens", "tokens", "environment, --set or site file"
    )  # fmt: skip
    expected = {
        "facts": index.facts, "functions": index.functions, "tables": index.drafts.tables, "checks": CHECKS,
        "areas": dict.fromkeys(name.split(".")[0] for name in index.facts),
    }  # fmt: skip
    for kind in KINDS:
        entries = index.find(kind)[kind]
        assert [entry["name"] for entry in entries] == list(expected.get(kind, [entry["name"] for entry in entries]))
        text = "\n".join(page(index.find(kind), 110))
        for entry in entries:
            assert entry["name"] in text
            assert kind == "areas" or entry.get("says") or entry.get("columns") is None, entry
            assert kind in ("areas", "checks") or entry["source"], entry


def test_log_policies_are_listed_with_their_places(index: Index) -> None:
    found = {(entry["name"], entry["type"]): entry for entry in index.find("logs")["logs"]}
    assert {type_ for _, type_ in found} == {
        "verdict", "failure class", "failure class that ends no start", "pattern", "exit",
    }  # fmt: skip
    verdict = found["nothing-asked-for", "verdict"]
    assert verdict["says"] == "the GPU is not-loaded" and "--n-gpu-layers" in verdict["advice"]
    line = verdict["source"]["line"]
    written = (policies_dir().parent / verdict["source"]["file"]).read_text().splitlines()[line - 1]
    assert written == "  - id: nothing-asked-for"


def test_a_function_says_what_it_takes_and_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "show", "overlap()").startswith("overlap\n  whether two lists share a member\n")
    assert shown(capsys, "show", "divisible") == (
        "divisible\n  whether the first is a multiple of the second\n"
        "  takes  whole number, whole number\n  gives  true or false\n  for    every engine family\n"
    )


def test_show_a_flag_in_any_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    for spelling in ("--threads", "-t", "--cache-type-k", "-ctk", "--verbosity"):
        said = shown(capsys, "show", spelling)
        assert said.startswith("flag."), spelling
    assert shown(capsys, "show", "-t") == shown(capsys, "show", "--threads") == shown(capsys, "show", "flag.threads")


@pytest.fixture(scope="module")
def index() -> Index:
    library = read_library(policies_dir(), "llama-cpp", LANGUAGES)
    return Index(library, facts(WORDS), functions(SIGNATURES, plain_functions.SIGNATURES, "llama-cpp"))


@pytest.mark.parametrize("width", [60, 110])
def test_every_name_can_be_shown_in_any_width(width: int, index: Index) -> None:
    files = index.overview()
    names = [entry["name"] for file in files for entry in (file, *file["decisions"], *file["tables"])]
    assert len(names) > 80
    for name in [*names, *index.facts, *(f"{name}()" for name in index.functions)]:
        head, *lines = page(index.find(name), width)
        assert head.startswith(name.removesuffix("()"))
        for line in lines:
            assert len(line) <= width or " " not in line.strip().split("  ")[-1], line


def test_show_as_json(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = json.loads(shown(capsys, "show", "kv.type", "--json", "--policies", str(directory)))
    assert entry["source"] == {"file": "policies/kv/kv.yaml", "line": 16}
    assert entry["reads"] == {"settings.kv_type": "fact"}
    assert [rule["id"] for rule in entry["rules"]] == ["operator", "default"]
    assert entry["rules"][1] == {
        "id": "default", "when": None, "then": "'f16'", "because": None, "level": None,
        "evidence": {"note": "measured on paper", "measured": "2026-08-03", "expires": "2027-08-03"},
        "source": {"file": "policies/kv/kv.yaml", "line": 23},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["show", "kv.typ"],
            "no decision, flag, table, policy, fact, function or check 'kv.typ'; did you mean 'kv.type'?",
        ),
        (["show", "--thread"], "did you mean '--threads'?"),
    ],
)
def test_names_nobody_knows(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", *argv]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err and shown.err.count("\n") == 1


@pytest.mark.parametrize("argv", [["frob"], ["check", "--frob"], ["show", "a", "--b"], ["check", "a", "b"], []])
def test_usage_errors_are_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["policy", *argv])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
