"""What is remembered in the state directory: leases, journal, registry, broken drafters; also by several at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped_rules import shipped_rules

from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.runtime import journal, leases, process, recover, registry
from gezel_rules.runtime.rules import Step, argument
from gezel_rules.runtime.state_files import read_json, write_json


@pytest.fixture
def stranger():
    """A living process that is not ours to lose."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield child
    child.kill()
    child.wait()
    child.stdin.close()


def test_a_process_is_its_pid_and_its_beginning(stranger):
    token = process.started(stranger.pid)
    assert token and process.alive(stranger.pid, token)
    assert not process.alive(stranger.pid, "another") and not process.alive(os.getpid(), token)
    stranger.kill()
    stranger.wait()
    assert process.started(stranger.pid) is None and not process.alive(stranger.pid, token)


def test_a_zombie_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.started(child.pid) is None
    child.wait()


def test_leases_add_up_and_die_with_their_process(state, stranger):
    mine = leases.take(state, {"GPU0": 5, "host": 1})
    theirs = leases.take(state, {"GPU0": 7}, stranger.pid)
    assert leases.held(state) == {"GPU0": 12, "host": 1}
    stranger.kill()
    stranger.wait()
    assert leases.held(state) == {"GPU0": 5, "host": 1} and not theirs.exists()
    leases.release(mine)
    leases.release(mine)
    assert leases.held(state) == {}


def test_a_lease_is_handed_on(state, stranger):
    lease = leases.take(state, {"GPU0": 5})
    leases.hold(lease, {"GPU0": 5}, stranger.pid)
    assert read_json(lease)["pid"] == stranger.pid and leases.held(state) == {"GPU0": 5}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"pid": "1"}', '{"pid": -1, "started": "x", "pools": {"GPU0": 1}}', "\x00\xff", '{"pid": 1e400}'],
)
def test_broken_leases_count_for_nothing(state, text):
    (state / "leases").mkdir(parents=True)
    (state / "leases" / "x.json").write_text(text)
    assert leases.held(state) == {}


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=8)
)
def test_any_json_is_a_harmless_lease(tmp_path_factory, data):
    state = tmp_path_factory.mktemp("state")
    (state / "leases").mkdir()
    (state / "leases" / "x.json").write_text(json.dumps({"pid": os.getpid(), "started": data, "pools": data}))
    assert leases.held(state) == {}


def test_no_state_directory_is_no_lease(state):
    assert leases.held(state) == {} and registry.running(state) == [] and list(journal.records(state)) == []


def test_journal_records_are_kept_apart_and_hold_no_secret(state):
    first = journal.append(
        state, "20260101T000000-a", {"plan": {"argv": ["-m", "x"]}, "note": 'key "s3cret\\"'}, ['s3cret\\"']
    )
    second = journal.append(state, "20260101T000000-b", {"plan": 2})
    journal.amend(first, ['s3cret\\"'], outcome={"ready": True, "said": 's3cret\\"'})
    both = {path.name: record for path, record in journal.records(state)}
    assert list(both) == sorted([first.name, second.name])
    assert both[first.name] == {
        "plan": {"argv": ["-m", "x"]}, "note": 'key "***', "outcome": {"ready": True, "said": "***"},
    }  # fmt: skip
    assert first.stat().st_mode & 0o777 == 0o600 and first.parent.stat().st_mode & 0o777 == 0o700
    first.unlink()
    journal.amend(first, outcome=1)
    assert not first.exists()


def test_a_record_is_bounded(state):
    """Of one that would be larger, what became of the launch is kept."""
    launch = {"engine": ["x"], "argv": [], "started": 1.0}
    path = journal.append(
        state, "20260101T000000-a", {"model": "m", "launch": launch, "facts": {"x": "y" * journal.MOST}}
    )
    journal.amend(path, outcome={"ready": True})
    assert json.loads(path.read_text()) == {"model": "m", "launch": launch, "outcome": {"ready": True}}


def test_registry_forgets_the_dead_and_knows_orphans(state, stranger):
    us, token = os.getpid(), process.started(os.getpid())
    theirs = process.started(stranger.pid)
    entry = registry.Entry("a", "m", "llama-server", "http://x", stranger.pid, theirs, us, token, 1.5, "log")
    path = registry.enter(state, entry)
    registry.enter(state, entry._replace(id="b", owner_started="another"))
    assert [(e.id, e.orphan) for e in registry.running(state)] == [("a", False), ("b", True)]
    stranger.kill()
    stranger.wait()
    assert registry.running(state) == []
    assert path.exists(), "its owner lives and will see to it"
    assert not (state / "running" / "b.json").exists()


def test_strange_registry_files_are_removed(state):
    write_json(state / "running" / "x.json", {"id": "x", "pid": 1})
    assert registry.running(state) == [] and not list((state / "running").iterdir())


def test_orphans_are_ended(state, stranger):
    key = state / "keys" / "k.key"
    key.parent.mkdir(parents=True)
    key.write_text("secret")
    entry = registry.Entry(
        "a", "m", "e", "", stranger.pid, process.started(stranger.pid), 2**22, "gone", 0.0, "log", str(key)
    )  # fmt: skip
    path = registry.enter(state, entry)
    assert registry.end_orphans(state, 5) == [entry]
    assert stranger.wait(5) < 0 and not key.exists() and not path.exists()
    assert registry.end_orphans(state, 5) == []


STEPS = (
    Step("drop", "drafter", frozenset(), 1, ""),
    Step("degrade", "room", frozenset({"oom"}), 2, ""),
)


@pytest.mark.parametrize(
    ("failure", "tried", "has", "expected"),
    [
        ("oom", [], {"drafter", "room"}, "drop"),
        ("bad", [], {"drafter", "room"}, "drop"),
        (None, [], {"drafter"}, "drop"),
        ("oom", ["drop"], {"drafter", "room"}, "degrade"),
        ("bad", ["drop"], {"drafter", "room"}, None),
        ("oom", [], {"room"}, "degrade"),
        ("oom", ["degrade", "degrade"], {"room"}, None),
        ("oom", ["degrade"], {"room"}, "degrade"),
        ("oom", [], set(), None),
    ],
)
def test_recovery_order(failure, tried, has, expected):
    step = recover.next_step(STEPS, failure, tried, has)
    assert (step.step if step else None) == expected


@given(st.sampled_from(["oom", "bad", None]), st.sets(st.sampled_from(["drafter", "room"])))
def test_recovery_ends(failure, has):
    tried = []
    while step := recover.next_step(STEPS, failure, tried, has):
        tried.append(step.step)
    assert len(tried) <= sum(step.times for step in STEPS)
    assert tried == sorted(tried, key=[s.step for s in STEPS].index)


def test_broken_drafters_are_remembered_per_build_until_forgiven(state):
    recover.remember_broken(state, "b1", "d1", "gguf-corrupt")
    recover.remember_broken(state, "b1", "d2", None)
    recover.remember_broken(state, "b2", "d1", None)
    assert recover.broken_parts(state, "b1") == {"d1": "gguf-corrupt", "d2": "died"}
    recover.forgive(state, "b1", "d1")
    recover.forgive(state, "b9", "d1")
    assert not recover.is_broken(state, "b1", "d1") and recover.is_broken(state, "b2", "d1")


def test_a_broken_memory_of_broken_drafters_is_no_memory(state):
    write_json(state / recover.BROKEN, {"b1": ["d1"]})
    assert recover.broken_parts(state, "b1") == {}
    recover.remember_broken(state, "b1", "d2", None)
    assert recover.is_broken(state, "b1", "d2")


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--port", "1"], "1"),
        (["--port=2"], "2"),
        (["--port", "1", "--port", "3"], "3"),
        (["--port"], None),
        ([], None),
    ],
)
def test_arguments(argv, value):
    assert argument(argv, "--port") == value


def test_times_grow_with_the_model():
    rules = shipped_rules()
    assert rules.ready_timeout(400 << 30) > rules.ready_timeout(1 << 30) > rules.ready_timeout(0) > 0


def test_a_supervision_policy_that_lacks_something(tmp_path):
    policies = tmp_path / "policies"
    shutil.copytree(policies_dir(), policies)
    file = policies / "runtime" / "supervision.yaml"
    file.write_text(file.read_text().replace("{seconds: 8, why", "{second: 8, why"))
    with pytest.raises(BadInput, match="has no column 'second'; did you mean 'seconds'"):
        shipped_rules(policies)
