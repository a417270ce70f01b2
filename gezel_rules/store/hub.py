"""A model hub (Hugging Face or one that speaks like it): addresses, metadata, listing, and its local cache."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from gezel_rules.catalog.names import relative_path_fault
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.record import NamedTuple
from gezel_rules.store.wanted import Source
from gezel_rules.store.web import Remote, Web, check_url, origin, whole_number

ENDPOINT = "https://huggingface.co"
MAX_LISTING_BYTES, MAX_PAGES = 32 << 20, 200
MOST_BYTES = 1 << 60  # beyond any file system; a larger size is no size
_REPO = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')


class HubFile(NamedTuple):
    """A file as the hub describes it: path in the repository, size in bytes, sha256 where it is stored by digest,
    the commit it was seen at."""

    path: str
    size: int | None
    sha256: str | None
    commit: str = ""


def endpoint() -> str:
    """The hub's address (``HF_ENDPOINT``)."""
    return check_url((os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/"))


def remote_for(source: Source, commit: str = "") -> Remote:
    """Where the hub serves a file (at a commit, when one is known). Raises BadInput for a malformed repository."""
    revision = quote(commit or source.revision, safe="")
    url = f"{endpoint()}/{_repo(source.location)}/resolve/{revision}/{_inner(source.file)}"
    return Remote(url, str(source), _token())


def _token() -> str:
    token = os.environ.get("HF_TOKEN", "").strip()
    if not token.isprintable() or not token.isascii():
        raise BadInput("HF_TOKEN holds characters a token cannot have")
    return token


def _repo(repo: str) -> str:
    if not _REPO.fullmatch(repo) or ".." in repo:
        raise BadInput(f"not a hub repository: {repo!r:.120} (expected user/repo)")
    return repo


def _inner(path: str) -> str:
    if not path or any(piece in ("", ".", "..") for piece in path.split("/")):
        raise BadInput(f"not a path in a hub repository: {path!r:.120}")
    return quote(path)


def look(web: Web, source: Source) -> HubFile:
    """Size, sha256 and commit of one file, from the headers of its address. Raises TransferFailed."""
    remote = remote_for(source)
    answer = web.patiently("HEAD", remote, far=False)
    answer.response.close()
    if answer.response.status >= 400:
        from gezel_rules.store.troubles import meaning

        raise TransferFailed(f"{remote.name}: {meaning(answer.response.status, bool(remote.token))}")
    early = answer.early
    size = early.get("x-linked-size") or (early.get("content-length", "") if answer.response.status == 200 else "")
    digest = early.get("x-linked-etag", "").strip('"').lower()
    return HubFile(
        source.file,
        whole_number(size),
        digest if _SHA256.fullmatch(digest) else None,
        early.get("x-repo-commit", "")[:64],
    )


def listing(web: Web, repo: str, revision: str = "main") -> list[HubFile]:
    """Every file of a repository at a revision, all pages. Raises TransferFailed."""
    url = f"{endpoint()}/api/models/{_repo(repo)}/tree/{quote(revision, safe='')}?recursive=true"
    first = Remote(url, f"hub {repo}@{revision}", _token())
    files: list[HubFile] = []
    for _ in range(MAX_PAGES):
        items, url = _page(web, first._replace(url=url))
        files.extend(_described(items))
        if not url:
            return files
    raise TransferFailed(f"{first.name}: the listing does not end")


def _page(web: Web, remote: Remote) -> tuple[Any, str]:
    answer = web.patiently("GET", remote)
    try:
        if answer.response.status != 200:
            from gezel_rules.store.troubles import meaning

            raise TransferFailed(f"{remote.name}: {meaning(answer.response.status, bool(remote.token))}")
        body = answer.response.read(MAX_LISTING_BYTES + 1, decode_content=True)
        following = _NEXT.search(answer.response.headers.get("Link", ""))
    finally:
        answer.response.close()
    url = urljoin(remote.url, following[1]) if following else ""
    if url and origin(url) != origin(remote.url):
        raise TransferFailed(f"{remote.name}: the listing goes on at another host")
    return _parsed(body, remote), url


def _parsed(body: bytes, remote: Remote) -> Any:
    try:
        return json.loads(body) if len(body) <= MAX_LISTING_BYTES else None
    except (ValueError, RecursionError):
        raise TransferFailed(f"{remote.name}: the listing is not JSON") from None


def _described(items: Any) -> Iterator[HubFile]:
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or item.get("type") != "file" or not isinstance(item.get("path"), str):
            continue
        if relative_path_fault(item["path"]):
            continue  # could not be stored under that name; .gitattributes is one of these
        stored = item.get("lfs")
        lfs = stored if isinstance(stored, dict) else {}
        size, digest = lfs.get("size", item.get("size")), lfs.get("oid", "")
        yield HubFile(
            item["path"],
            size if isinstance(size, int) and 0 <= size <= MOST_BYTES else None,
            digest if isinstance(digest, str) and _SHA256.fullmatch(digest) else None,
        )


def cache_dir() -> Path:
    """The hub client's own cache (``HF_HUB_CACHE``, ``HF_HOME``)."""
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("HF_HOME") or str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    return Path(home).expanduser() / "hub"


def cached(source: Source, sha256: str | None, commit: str = "") -> Path | None:
    """A file of the hub client's cache that should be this one (still to be verified), else ``None``."""
    repo = cache_dir() / f"models--{_repo(source.location).replace('/', '--')}"
    candidates = [repo / "blobs" / sha256] if sha256 else []
    for revision in filter(None, (commit, source.revision, _ref(repo, source.revision))):
        if ".." not in revision.split("/") and _inner(source.file):
            candidates.append(repo / "snapshots" / revision / source.file)
    for path in candidates:
        real = path.resolve()
        if real.is_file() and real.is_relative_to(cache_dir().resolve()):
            return real
    return None


def _ref(repo: Path, revision: str) -> str:
    try:
        ref = repo / "refs" / revision
        return ref.read_text("ascii")[:64].strip() if ".." not in revision.split("/") else ""
    except (OSError, ValueError):
        return ""
