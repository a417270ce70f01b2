"""Two sets of policies over a small catalog: which launches change, by which edit; and revisions of git."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir, policies_dir
from gezel_rules.planner.record import plan_record
from gezel_rules.session import Conditions, Session, session_for
from gezel_rules.session.policy_diff import diff_json, policy_diff
from gezel_rules.session.processes import WORTH_IT, mapped

KV, ARGV, CAPACITY = "llama-cpp/kv.yaml", "llama-cpp/argv.yaml", "memory/capacity.yaml"
MODELS, HOSTS = ("llama-3.2-1b", "mamba-2.8b"), ("cpu-32g", "rtx-4090")
FINEST = ("then: \"'f16'\"", "then: \"'q8_0'\"")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Two models, two hosts, and policies in a working directory."""
    for kind, names in (("models", MODELS), ("hosts", HOSTS)):
        (tmp_path / "catalog" / kind).mkdir(parents=True)
        for name in names:
            shutil.copy(catalog_dir() / kind / f"{name}.yaml", tmp_path / "catalog" / kind)
    shutil.copytree(policies_dir(), tmp_path / "policies")
    monkeypatch.setenv("GEZEL_STATE", str(tmp_path / "state"))
    return session_for(tmp_path / "policies", tmp_path / "catalog", tmp_path / "store")


@pytest.fixture
def edited(session: Session, tmp_path: Path):
    """A copy of the policies under a name, with one text of one file replaced."""

    def edit(file: str, old: str, new: str, name: str = "edited") -> str:
        copy = tmp_path / name / "policies"
        shutil.copytree(session.policies, copy)
        replace(copy / file, old, new)
        return str(copy)

    return edit


def replace(path: Path, old: str, new: str) -> None:
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))


def test_one_line_and_the_launches_it_changes(session, edited):
    found = diff_json(policy_diff(session, str(session.policies), edited(KV, *FINEST)))
    assert (found["models"], found["hosts"], found["planned"], found["recorded"]) == (2, 2, 4, 0)
    (group,) = found["groups"]
    (edit,) = group["because_of"]
    assert (edit["kind"], edit["name"], edit["part"], edit["what"]) == ("rule", "kv.finest", "f16", "changed")
    assert edit["before"] == edit["after"] and edit["after"]["file"] == f"policies/{KV}"
    changed = {(launch["model"], launch["on"]): launch for launch in group["launches"]}
    assert ("llama-3.2-1b", "cpu-32g") in changed and found["changed"] == len(changed)
    launch = changed["llama-3.2-1b", "rtx-4090"]
    assert [change["after"] for change in launch["changes"]][:2] == [
        ["--cache-type-k", "q8_0"], ["--cache-type-v", "q8_0"],
    ]  # fmt: skip
    assert launch["memory"]["CUDA0"]["after"] < launch["memory"]["CUDA0"]["before"]
    assert launch["figures"]["kv_type_k"] == {"before": "f16", "after": "q8_0"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("because: the engine's own, and", "because: its own, and"),
        ("policy: llama-cpp/kv\n", "# a comment\npolicy: llama-cpp/kv\n"),
    ],
)
def test_what_decides_nothing_plans_nothing(session, edited, old, new):
    found = policy_diff(session, str(session.policies), edited(KV, old, new))
    assert (found.edits, found.planned, found.changed) == ((), 0, ())


def test_a_reordering_without_effect_shows_nothing(session, edited):
    text = (session.policies / KV).read_text()
    at = (
        text.index("      - id: more-slots\n"),
        text.index("      - id: whole-window\n"),
        text.index("      - id: longer-"),
    )
    moved = text[at[1] : at[2]] + text[at[0] : at[1]]
    found = policy_diff(session, str(session.policies), edited(KV, text[at[0] : at[2]], moved))
    assert found.edits and found.planned == 4 and found.changed == ()


def test_another_order_of_flags_is_another_argv(session, edited):
    text = (session.policies / ARGV).read_text()
    at = [text.index(f"  flag.{name}:\n") for name in ("cache-type-k", "cache-type-v", "flash-attn")]
    moved = text[at[1] : at[2]] + text[at[0] : at[1]]
    found = diff_json(policy_diff(session, str(session.policies), edited(ARGV, text[at[0] : at[2]], moved)))
    (group,) = found["groups"]
    assert [edit["kind"] for edit in group["because_of"]] == ["order of flags"] and found["changed"] == 4
    assert [change["decision"] for change in group["launches"][0]["changes"]] == ["order of flags"]


def test_a_table_that_code_reads_is_named_by_its_row(session, edited):
    other = edited(CAPACITY, "ram:        {share: 1.0", "ram:        {share: 0.05")
    found = diff_json(policy_diff(session, str(session.policies), other))
    assert "cpu-32g" in {launch["on"] for group in found["groups"] for launch in group["launches"]}
    for group in found["groups"]:
        assert [(edit["kind"], edit["name"], edit["part"]) for edit in group["because_of"]] == [
            ("table", "pool_kinds", "ram")
        ]


def test_recorded_launches_are_decided_both_ways(session, edited):
    plan = session.plan("llama-3.2-1b", Conditions(("window=8k",), "rtx-4090"))
    path = session.state / "journal" / "20260101T000000-aaaaaa.json"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(json.dumps(plan_record(plan)))
    found = diff_json(policy_diff(session, str(session.policies), edited(KV, *FINEST)))
    assert found["recorded"] == 1
    assert "@20260101T000000-aaaaaa" in {each["on"] for group in found["groups"] for each in group["launches"]}


def test_the_persons_own_settings_play_no_part(session, edited, monkeypatch):
    monkeypatch.setenv("GEZEL_KV_TYPE", "q4_0")
    assert policy_diff(session, str(session.policies), edited(KV, *FINEST)).changed


def test_policies_that_do_not_load_are_named(session, edited):
    broken = edited(KV, "then: kv.coarser", "then: kv.coarsr")
    with pytest.raises(BadInput, match=r"did you mean 'kv.coarser'\? \(of .*edited/policies\)"):
        policy_diff(session, str(session.policies), broken)


@pytest.fixture
def repository(session: Session) -> Session:
    """The policies under git: two commits, the first tagged, and one change that is not committed."""
    root = session.policies.parent

    def git(*words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "policies")
    git("commit", "-qm", "first")
    git("tag", "first")
    replace(session.policies / KV, *FINEST)
    git("commit", "-qam", "second")
    replace(session.policies / CAPACITY, "ram:        {share: 1.0", "ram:        {share: 0.05")
    return session


def edited_by(session: Session, *words: str) -> list[str]:
    return [edit.name for edit in policy_diff(session, *words).edits]


def test_revisions(repository):
    assert edited_by(repository, "first", "main") == ["kv.finest"]
    assert edited_by(repository, "HEAD") == ["pool_kinds"]
    assert edited_by(repository, "HEAD~1") == ["kv.finest", "pool_kinds"]
    assert edited_by(repository, "main", "HEAD") == []
    assert edited_by(repository, "first", str(repository.policies)) == ["kv.finest", "pool_kinds"]


def test_revisions_of_the_folder_one_stands_in(repository, monkeypatch):
    monkeypatch.chdir(repository.policies)
    (edit,) = policy_diff(repository._replace(policies=Path()), "HEAD").edits
    assert edit.name == "pool_kinds" and str(edit.before).startswith(f"policies/{CAPACITY}:")


@pytest.mark.parametrize("word", ["nonsuch", "--output=x", "HEAD:policies", "HEAD~9", "main..first"])
def test_what_is_no_revision(repository, word):
    with pytest.raises(BadInput, match="neither a folder nor a git revision"):
        policy_diff(repository, word)


def test_policies_that_are_in_no_repository(session):
    with pytest.raises(BadInput, match="neither a folder nor a git revision"):
        policy_diff(session, "main")


def test_work_is_shared_out_in_order():
    items = range(4 * WORTH_IT)
    assert mapped(lambda number: number * 2, items) == [number * 2 for number in items]
    assert mapped(lambda number: number, [3]) == [3]
    with pytest.raises(ZeroDivisionError):
        mapped(lambda number: 1 // number, items)
