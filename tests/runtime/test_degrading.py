"""``serve`` after the GPU ran out of memory: what was learnt holds over deaths, as the engine's own argv shows."""

from __future__ import annotations

import json
import os
import signal

import pytest

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def serve(gezel, answering, model, tmp_path):
    """Serves a model on a fake engine that lists a card with so many MiB free."""

    def start(*faults: str, free: int, settings=()):
        engine = answering(*faults)
        (tmp_path / "devices").write_text(f"  CUDA0: NVIDIA GeForce RTX 4090 (24564 MiB, {free} MiB free)\n")
        asked = [word for setting in settings for word in ("--set", setting)]
        return gezel("serve", model, "--json", "--engine", engine, *asked)

    return start


def windows(state) -> list[str]:
    """The window of each start, in order."""
    records = [json.loads(path.read_text()) for path in (state / "journal").glob("*.json")]
    records.sort(key=lambda record: record["launch"]["started"])  # names tell seconds apart, no more
    return [argv[argv.index("--ctx-size" if "--ctx-size" in argv else "-c") + 1]
            for argv in (record["launch"]["argv"] for record in records)]  # fmt: skip


def test_a_smaller_window_is_remembered_after_a_death(serve, state):
    """On a card far larger than the launch. It used to be 65,536, 51,456, and after a death 65,536 again."""
    child = serve("oom-above=60000", free=24105, settings=("slots=1",))
    before = json.loads(child.stdout.readline())
    os.kill(before["pid"], signal.SIGKILL)
    after = json.loads(child.stdout.readline())
    assert (after["url"], after["key_file"]) == (before["url"], before["key_file"])
    child.terminate()
    _, err = child.communicate(timeout=60)
    first, *failed, ran, again = windows(state)
    assert first == "65536" and set(failed) <= {"65536"} and int(ran) < 60000 and again == ran
    assert err.count("trying again: degrade") == 1 + len(failed)
