"""How long a transfer waits, when it gives up, and what it takes for an answer."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from gezel_rules.errors import TransferFailed
from gezel_rules.store import web
from gezel_rules.store.install import install
from gezel_rules.store.progress import Limit

from .hub_server import File, Server
from .test_faults import DATA, PATH, SIZE, content, nothing_published, plan


@pytest.mark.parametrize(
    ("status", "words"), [(404, "not there"), (403, "refused"), (401, "HF_TOKEN"), (410, "not there")]
)
def test_final_answers_are_not_asked_again(server: Server, store: Path, status: int, words: str) -> None:
    server.files[PATH] = File(DATA, faults=[("status", status)])
    with pytest.raises(TransferFailed, match=words):
        install(plan(server.url(PATH)), store)
    assert len(server.gets()) == 1


def test_gives_up_after_a_few_tries(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("status", 503)] * 50)
    with pytest.raises(TransferFailed, match=r"503 \(tried several times"):
        install(plan(server.url(PATH)), store)
    assert len(server.gets()) == 6


def test_retry_after_is_waited_for(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("status", 429, {"Retry-After": "1"})])
    began = time.monotonic()
    install(plan(server.url(PATH)), store)
    assert time.monotonic() - began >= 1


def test_retry_after_of_an_hour_goes_to_the_next_source(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, faults=[("status", 429, {"Retry-After": "3600"})])
    with pytest.raises(TransferFailed, match="asks to wait 3600 s"):
        install(plan(server.url(PATH)), store)


def test_silence_is_a_cut(server: Server, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "READ_SECONDS", 0.3)
    server.files[PATH] = File(DATA)
    server.files[PATH].faults = [lambda file: setattr(file, "rate", 1.0), lambda file: setattr(file, "rate", 0.0)]
    assert content(install(plan(server.url(PATH)), store)) == DATA


def test_re_encoded_answer_is_refused(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA, headers={"Content-Encoding": "gzip"})
    with pytest.raises(TransferFailed, match="re-encodes"):
        install(plan(server.url(PATH)), store)


def test_an_error_page_is_no_model(server: Server, store: Path) -> None:
    server.files[PATH] = File(b"<html>please log in</html>")
    with pytest.raises(TransferFailed, match="what arrived is no model"):
        install(plan(server.url(PATH), size=None, sha256=None), store)
    assert nothing_published(store)


def test_bandwidth_limit(server: Server, store: Path) -> None:
    server.files[PATH] = File(DATA)
    began = time.monotonic()
    install(plan(server.url(PATH)), store, limit=Limit(SIZE * 2.0))
    assert time.monotonic() - began >= 0.4


def test_empty_file(server: Server, store: Path) -> None:
    server.files[PATH] = File(b"")
    digest = hashlib.sha256(b"").hexdigest()
    model = install(plan(server.url(PATH), size=0, sha256=digest, name="vocab.txt"), store)
    assert content(model) == b""
