"""Past launches as the command line shows them: in a table, with the memory they took against what was planned."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cli.conftest import NONSENSE

pytestmark = pytest.mark.usefixtures("in_utc")
RECORDS = Path(__file__).parents[1] / "data" / "records"
STARTED = 1796096791.0
PARTS = {"weights": 4 << 30, "context": 2 << 30, "compute": 512 << 20, "drafter and projector": 0}


@pytest.fixture
def journal(place):
    """Writes a record under a name; ``more`` replaces parts of it."""
    folder = place.root / "state" / "journal"
    folder.mkdir(parents=True, mode=0o700)

    def write(name: str, **more: object) -> None:
        record = json.loads((RECORDS / "format-2.json").read_text()) | more
        (folder / f"{name}.json").write_text(json.dumps(record))

    return write


def on_card(weights: float, **parts: int) -> dict:
    """A launch on a card: what was planned, and weights that took so many times as much."""
    planned = {**PARTS, **parts}
    taken = [{"pool": "CUDA0", "bytes": sum(planned.values()), "usable_bytes": 24 << 30, "parts": planned}]
    actual = {"weights": int(PARTS["weights"] * weights), "context": PARTS["context"], "compute": PARTS["compute"]}
    buffers = [{"pool": "CUDA0", "part": part, "name": "CUDA0", "bytes": size} for part, size in actual.items()]
    drafts = {"drafts": {"accepted": 30, "drafted": 40}} if parts else {}
    return {"memory": {"taken": taken}, "figures": {"buffers": buffers, **drafts}}


def test_nothing_yet(place):
    assert place.call("history") == (0, "no launch is recorded yet: 'run' and 'serve' make them\n", "")
    assert json.loads(place.call("history", "--json").out) == {"launches": [], "memory": [], "left_out": 0}
    assert place.call("history", "some-9b").out == "no launch of some-9b is recorded\n"


def test_what_became_of_launches(place, journal):
    launch = {"engine": ["x"], "argv": [], "started": STARTED}
    failed = {"ready": False, "seconds": 2.0, "failure": "cuda-oom", "exit_status": 1}
    ready = {"ready": True, "seconds": 6.25, "failure": None}
    long = {"exit_status": 0, "time": STARTED + 5 * 3600}
    journal("20261201T034631-aaaaaa", model="some-9b", launch=launch, outcome=failed, figures={}, ended={})
    again = {**launch, "started": STARTED + 60, "recovery": ["degrade"]}
    journal("20261201T034731-bbbbbb", model="some-9b", launch=again, outcome=ready, ended=long, **on_card(1.1))
    died = {"exit_status": -9, "time": STARTED + 200}
    drafting = on_card(1.0, **{"drafter and projector": 1 << 30})
    late = {**launch, "started": STARTED + 120}
    journal("20261201T034831-cccccc", model="some-9b", launch=late, outcome=ready, ended=died,
            death={"failure": "killed-for-memory"}, **drafting)  # fmt: skip
    journal("20261201T034931-dddddd", launch={**launch, "started": STARTED + 180}, outcome=ready, ended={})
    (place.root / "state" / "journal" / "20261201T035031-eeeeee.json").write_text('{"launch": "nonsense"}')
    assert place.call("history").out == TABLE
    assert place.call("history", "some-9b", "--last", "1").out.splitlines()[1:3] == [
        "20261201T034831-cccccc  2026-12-01 03:48  some-9b  6.5 GiB ×0.87  ready in 6.2 s, ran 80.0 s, "
        "died: killed-for-memory, 75% of drafts taken",
        "2 earlier launches left out (--last 3 shows all)",
    ]


TABLE = """\
ID                      WHEN              MODEL         TOOK           WHAT BECAME OF IT
20261201T034631-aaaaaa  2026-12-01 03:46  some-9b       ?              did not start: cuda-oom
20261201T034731-bbbbbb  2026-12-01 03:47  some-9b       6.9 GiB ×1.06  ready in 6.2 s, ran 4.98 h, after degrade
20261201T034831-cccccc  2026-12-01 03:48  some-9b       6.5 GiB ×0.87  ready in 6.2 s, ran 80.0 s, {died}
20261201T034931-dddddd  2026-12-01 03:49  gemma-3-270m  410 MiB ×1.03  ready in 6.2 s, nobody saw its end

memory the engines took, against what was planned (×1.00 is exact):
  POOL   PART     LAUNCHES  PLANNED  TOOK            FURTHEST OFF
  CUDA0  weights  1         4.0 GiB  4.4 GiB  ×1.10  ×1.10 in 20261201T034731-bbbbbb
  CUDA0  context  1         2.0 GiB  2.0 GiB  ×1.00  ×1.00 in 20261201T034731-bbbbbb
  CUDA0  compute  1         512 MiB  512 MiB  ×1.00  ×1.00 in 20261201T034731-bbbbbb
  CUDA0  all      1         7.5 GiB  6.5 GiB  ×0.87  ×0.87 in 20261201T034831-cccccc
  host   weights  1         235 MiB  248 MiB  ×1.05  ×1.05 in 20261201T034931-dddddd
  host   context  1         111 MiB  111 MiB  ×1.00  ×1.00 in 20261201T034931-dddddd
  host   compute  1         51 MiB   51 MiB   ×1.00  ×1.00 in 20261201T034931-dddddd

why: gezel-rules explain @20261201T034931-dddddd · the same today? gezel-rules replay @20261201T034931-dddddd
""".format(died="died: killed-for-memory, 75% of drafts taken")


def test_as_json(place, journal):
    journal("20261201T034631-6fd955")
    said = json.loads(place.call("history", "--json").out)
    (launch,) = said["launches"]
    assert launch["on"] == {"engine": "embedded", "version": "0.6.0.dev0", "backend": "cpu"}
    assert {row["part"]: round(row["ratio"], 2) for row in launch["memory"]} == {
        "weights": 1.05, "context": 1.0, "compute": 1.0,
    }  # fmt: skip
    assert [row["part"] for row in said["memory"]] == ["weights", "context", "compute"]


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_how_many_are_shown_is_a_count(refused, number):
    assert "--last" in refused("history", "--last", number)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_in_a_record_it_is_shown_or_left_out(place, journal, seed):
    """Any value in any place: history shows the launch for what it is worth, and never fails."""
    good = json.loads((RECORDS / "format-2.json").read_text())
    chance = random.Random(seed)
    parts = ("launch", "outcome", "ended", "death", "figures", "memory", "summary", "policy", "facts", "model")
    for number in range(40):
        record = json.loads(json.dumps(good)) | {"death": {"failure": "x"}, "held": {}}
        at, key = record, chance.choice(parts)
        while isinstance(at.get(key), dict) and at[key] and chance.random() < 0.8:
            at, key = at[key], chance.choice(list(at[key]))
        at[key] = chance.choice(NONSENSE)
        journal(f"20261201T0346{number:02}-aaaaaa", **record)
    for words in (("history",), ("history", "--json"), ("history", "gemma-3-270m", "--last", "99")):
        said = place.call(*words)
        assert (said.status, said.err) == (0, "") and said.out.replace("\n", "").isprintable()
