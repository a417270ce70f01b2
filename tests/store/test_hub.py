"""Hub repositories: metadata, redirects, tokens, listings, the hub client's cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.store import hub
from gezel_rules.store.install import InstallPlan, Source, Wanted, install
from gezel_rules.store.web import Remote, Web, retry_after, shown

from .conftest import Said, gguf
from .hub_server import File, Server

DATA = gguf(400_000)
SHA = hashlib.sha256(DATA).hexdigest()
REPO, NAME = "someone/Some-GGUF", "Some-Q4_K_M.gguf"
TOKEN = "hf_VerySecretTokenValue"


def plan(size: int | None = None, sha256: str | None = None, file: str = NAME) -> InstallPlan:
    wanted = Wanted("model", "some.gguf", size, sha256, (Source("hub", REPO, file),))
    return InstallPlan("m", "m", (wanted,), fingerprint="f", entry_digest="e")


@pytest.fixture
def hub_server(server: Server, far: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    server.hub(REPO, {NAME: DATA}, far=far)
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    return server


def test_size_and_digest_come_from_the_hub(hub_server: Server, store: Path) -> None:
    model = install(plan(), store)
    file = model.files[0]
    assert (file.sha256, file.size, file.verified) == (SHA, len(DATA), True)
    assert file.commit == hashlib.sha1(REPO.encode()).hexdigest()
    assert model.fingerprint == "f"


def test_the_commit_that_was_looked_at_is_the_one_that_is_fetched(hub_server: Server, store: Path) -> None:
    install(plan(), store)
    assert [seen.path.split("/")[4] for seen in hub_server.gets()] == [hashlib.sha1(REPO.encode()).hexdigest()]


def test_the_token_goes_to_the_hub_and_nowhere_else(
    hub_server: Server, far: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    install(plan(), store)
    assert all(seen.headers.get("Authorization") == f"Bearer {TOKEN}" for seen in hub_server.seen)
    assert far.gets()
    assert not [seen for seen in far.seen if "Authorization" in seen.headers]


def test_no_token_over_plain_http(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(BadInput, match=r"not sent to hub\.example over plain http") as caught:
        install(plan(), store)
    assert TOKEN not in str(caught.value)


def test_nothing_secret_is_kept_or_said(
    hub_server: Server, far: Server, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token and the signature of the redirected address: not in notes, errors, logs, parts or manifests."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    far.files[f"/cdn/{SHA}"].faults = [("cut", 100000), ("status", 404)]
    said = Said()
    with pytest.raises(TransferFailed) as caught:
        install(plan(), store, said)
    kept = "".join(path.read_text() for path in store.rglob("*.log"))
    assert kept
    model = install(plan(), store, said)
    kept += "".join(path.read_text() for path in store.rglob("*.json"))
    for secret in (TOKEN, "sEcReT"):
        assert secret not in kept + str(caught.value) + repr(model) + "".join(said.notes)


def test_a_signed_url_is_recorded_without_its_signature(server: Server, store: Path) -> None:
    server.files["/some.gguf"] = File(DATA)
    source = Source("url", server.url("/some.gguf") + "?X-Signature=sEcReT")
    model = install(InstallPlan("m", "m", (Wanted("model", "some.gguf", None, SHA, (source,)),)), store)
    assert server.gets()[0].query == "X-Signature=sEcReT"
    assert "sEcReT" not in repr(model) + (store / "m" / "manifest.json").read_text()


def test_credentials_in_a_url_are_refused(store: Path) -> None:
    source = Source("url", "http://me:pa55word@127.0.0.1/some.gguf")
    with pytest.raises(BadInput) as caught:
        install(InstallPlan("m", "m", (Wanted("model", "some.gguf", None, SHA, (source,)),)), store)
    assert "pa55word" not in str(caught.value)


def test_a_digest_against_the_catalogs_is_told_before_the_download(
    hub_server: Server, far: Server, store: Path
) -> None:
    with pytest.raises(TransferFailed, match=f"the server now has sha256 {SHA}, wanted {'0' * 64}"):
        install(plan(sha256="0" * 64), store)
    assert not far.sent


def test_a_size_against_the_catalogs_is_told_before_the_download(hub_server: Server, far: Server, store: Path) -> None:
    with pytest.raises(TransferFailed, match="400,000 bytes there, wanted 399,999"):
        install(plan(size=399_999, sha256=SHA), store)
    assert not far.sent


def test_bytes_damaged_on_the_way_are_fetched_once_more(hub_server: Server, far: Server, store: Path) -> None:
    """The hub claims the right digest, so the fault was on the way: one more try, not endless ones."""
    far.files[f"/cdn/{SHA}"].faults = [("flip", 1000)]
    install(plan(), store)
    far.files[f"/cdn/{SHA}"].faults = [("flip", 1000)] * 9
    far.sent.clear()
    with pytest.raises(TransferFailed, match="wanted"):
        install(plan()._replace(model_id="n", directory="n"), store.with_name("other"))
    assert far.sent[f"/cdn/{SHA}"] == 2 * len(DATA)


def test_an_expired_signature_is_asked_for_anew(hub_server: Server, far: Server, store: Path) -> None:
    far.files[f"/cdn/{SHA}"].faults = [("cut", 100_000), ("status", 403)]
    install(plan(), store)
    assert far.sent[f"/cdn/{SHA}"] == len(DATA)


def test_offline_hub_with_the_digest_known_uses_the_next_source(server: Server, store: Path) -> None:
    server.files["/some.gguf"] = File(DATA)
    sources = (Source("hub", REPO, NAME), Source("url", server.url("/some.gguf")))
    model = install(InstallPlan("m", "m", (Wanted("model", "some.gguf", None, SHA, sources),)), store)
    assert model.files[0].origin.startswith("url ") or "some.gguf" in model.files[0].origin


def test_redirect_loops_end(server: Server, store: Path) -> None:
    server.files["/a"] = File(DATA, redirect=server.url("/a"))
    with pytest.raises(TransferFailed, match="redirects"):
        Web().ask("GET", Remote(server.url("/a"), "a"))


def test_redirect_to_a_file_is_refused(server: Server) -> None:
    server.files["/a"] = File(DATA, redirect="file:///etc/passwd")
    with pytest.raises(TransferFailed, match="not a plain http"):
        Web().ask("GET", Remote(server.url("/a"), "a"))


def test_redirect_from_https_to_http_is_refused() -> None:
    from gezel_rules.store.web import _follow

    with pytest.raises(TransferFailed, match="redirects from https to http") as caught:
        _follow("https://hub.example/a?token=sEcReT", "http://cdn.example/b?X-Signature=sEcReT")
    assert "sEcReT" not in str(caught.value)
    assert _follow("https://hub.example/a", "/b") == "https://hub.example/b"


def test_a_certificate_nobody_vouches_for(server: Server, store: Path, tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("openssl, to make a certificate with, is not found")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    source = Source("url", server.url("/x.gguf").replace("http:", "https:"))
    with pytest.raises(TransferFailed, match="TLS certificate or handshake refused"):
        install(InstallPlan("m", "m", (Wanted("model", "x.gguf", None, SHA, (source,)),)), store)


@pytest.mark.parametrize("repo", ["../up/x", "user", "user/..", "a/b/c", "user/re po", ""])
def test_repository_names_cannot_leave_their_place(repo: str) -> None:
    with pytest.raises(BadInput):
        hub.remote_for(Source("hub", repo, NAME))


@pytest.mark.parametrize("file", ["../x", "a/../b", "/abs", "", "a//b"])
def test_paths_in_a_repository_cannot_leave_it(file: str) -> None:
    with pytest.raises(BadInput):
        hub.remote_for(Source("hub", REPO, file))


def test_a_revision_with_slashes_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example")
    remote = hub.remote_for(Source("hub", REPO, "a b/c.gguf", "refs/pr/1"))
    assert remote.url == f"https://hub.example/{REPO}/resolve/refs%2Fpr%2F1/a%20b/c.gguf"


def test_url_as_shown() -> None:
    assert shown("https://u:p@h.example:8443/a/b?token=x#y") == "https://h.example:8443/a/b"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "Wed, 21 Oct 2037 07:28:30 GMT", "Date": "Wed, 21 Oct 2037 07:28:00 GMT"}, 30),
        ({"Retry-After": "Wed, 21 Oct 2037 07:28:30 GMT"}, 0),
        ({"Retry-After": "soon"}, 0),
        ({}, 0),
    ],
)
def test_retry_after_does_not_trust_our_clock(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds
