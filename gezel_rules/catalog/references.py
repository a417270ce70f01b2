"""What a person may write for MODEL, read without touching a network.

    qwen3-8b                            a catalog id
    ./my.gguf  C:\\models\\my.gguf         a file: it exists, ends in .gguf, or has a separator and is no user/repo
    user/repo  user/repo:q8_0           a hub repository and a quant (case does not matter; Q4_K_M unless given)
    hf://user/repo[@revision][:quant]   the same, whatever lies on the disk
    hf://user/repo[@revision]/file.gguf one file of it
    user/repo/folder:q8_0               a quant in a folder of it; hf://user/repo[@revision]/folder:quant is the same
    hf://user/repo[@revision]/folder/   the model in a folder of it
    file:///models/my.gguf              a file
    https://host/path/my.gguf           a file on a web server
    https://huggingface.co/user/repo    a page of the hub: the repository, …/tree/REVISION[/folder],
                                        …/blob/REVISION/file.gguf
    hf.co/user/repo:q8_0                the same, as it is copied without its scheme

A revision with '/' in it is written percent-encoded, as the hub does: ``hf://user/repo@refs%2Fpr%2F1``.

Where two readings are possible, a catalog id comes before a file of that name (``./name`` means the file), and a file
that exists before a repository of that name (``hf://`` means the repository).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from gezel_rules.catalog import names
from gezel_rules.errors import BadInput
from gezel_rules.record import NamedTuple

DEFAULT_QUANT = "Q4_K_M"
_LONGEST = 4096  # characters; no system has longer paths
_SCHEME = r"(?s)([A-Za-z][A-Za-z0-9+.-]+)://(.*)"
_HUB = (
    r"(?s)(?P<repo>[^/:@]+/[^/:@]+)(?:@(?P<revision>[^/:@]+))?"
    r"(?:(?:/(?P<folder>[^:]*))?:(?P<quant>[^/]*)|/(?P<file>.*))?"
)
_SHORT = r"(?s)(?P<repo>[^/:]+/[^/:]+)(?:(?:/(?P<folder>[^:]*))?:(?P<quant>[^/]*))?"
_QUANT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_DRIVE = r"[A-Za-z]:[\\/]"
_MARKED = r"\.{0,2}[\\/]|[A-Za-z]:[\\/]"  # an absolute path, or one that starts in this directory or above
_PAGE = (
    r"(?is)(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<repo>[^/:@?#]+/[^/:@?#]+)"
    r"(?:/(?:tree|blob|resolve|raw)/(?P<revision>(?:refs/[^/:@?#]+/)?[^/:@?#]+)(?:/(?P<path>[^:?#]*))?)?/?"
    r"(?::(?P<quant>[^/?#]*))?(?:\?(?:[^#]*&)?show_file_info=(?P<shown>[^&#]*).*|[?#].*)?"
)
_PAGE_HOSTS = ("huggingface.co/", "hf.co/")  # a long pattern, compiled for texts that name one
_NO_REPOSITORIES = ("datasets", "spaces", "collections", "papers", "docs", "blog", "models", "api")
"""What the hub's addresses begin with that are no user's."""
MODEL_SUFFIX = ".gguf"


class Reference(NamedTuple):
    """A MODEL argument, understood. ``str()`` gives its canonical form, which reads back as the same reference."""

    kind: str
    """``catalog``, ``file``, ``hub`` or ``url``."""
    name: str
    """The id, the path as written (``~`` expanded), ``user/repo``, or the URL."""
    quant: str = ""
    """Hub only, in upper case; empty when ``file`` is given, or a ``folder`` alone."""
    file: str = ""
    """Hub only: the file's path in the repository; empty when the quant decides."""
    revision: str = ""
    """Hub only: commit, tag or branch; empty for the default."""
    folder: str = ""
    """Hub only: the folder of the repository that the model lies in; empty when it is looked for everywhere."""

    def __str__(self) -> str:
        if self.kind == "hub":
            at = f"@{self.revision.replace('/', '%2F')}" if self.revision else ""
            within = f"/{self.folder}" if self.folder else ""
            return f"hf://{self.name}{at}{within}" + (f":{self.quant}" if self.quant else f"/{self.file}")
        plain = self.kind == "file" and not re.match(_MARKED, self.name)
        return f"./{self.name}" if plain else self.name


def parse_reference(text: str, known: Callable[[str], bool] = lambda _: False) -> Reference:
    """Understand a MODEL argument. ``known`` says whether an id is in the catalog; the disk is asked only whether a
    path exists. Raises BadInput, in one line, for what can be none of these."""
    if not text or len(text) > _LONGEST or not _may_be_named(text):
        raise BadInput(f"not a model: {_shown(text)} (a catalog id, a model on disk, user/repo[:quant] or a URL)")
    on_a_page = any(host in text.lower() for host in _PAGE_HOSTS) and re.fullmatch(_PAGE, text)
    if on_a_page and ("://" in text or not os.path.exists(text)):  # noqa: PTH110
        return _page(on_a_page, text)
    if "://" in text and (match := re.fullmatch(_SCHEME, text)):
        return _with_scheme(match[1].lower(), match[2], text)
    if known(text):
        return Reference("catalog", text)
    if _is_path(text) or os.path.exists(text):  # noqa: PTH110 (never raises, unlike Path.exists)
        return _file(text)
    if "/" in text:
        return _short(text)
    if fault := names.id_fault(text):
        hint = f"; did you mean '{text.lower()}'?" if known(text.lower()) else f": a catalog id {fault}"
        raise BadInput(f"not a model: {_shown(text)}{hint}")
    return Reference("catalog", text)


def _may_be_named(text: str) -> bool:
    """Whether nothing in it drives a terminal. Bytes of a path that are no UTF-8 (PEP 383) are fine there."""
    if "://" not in text and _is_path(text):
        text = "".join(c for c in text if not "\udc80" <= c <= "\udcff")
    return text.isprintable()


def _is_path(text: str) -> bool:
    """Cannot be meant as anything but a file, whether it exists or not."""
    marked = re.match(_MARKED, text) or text[0] == "~" or text in (".", "..") or "\\" in text
    deep = text.count("/") > 1 and not re.fullmatch(_SHORT, text)
    return bool(marked) or text.lower().endswith(MODEL_SUFFIX) or deep


def _file(path: str) -> Reference:
    """A path as written; one that looks like an option gets a ``./``, since it ends up in an argv."""
    name = os.path.expanduser(path)  # noqa: PTH111 (leaves an unknown ~user alone)
    return Reference("file", f"./{name}" if name.startswith("-") else name)


def _short(text: str) -> Reference:
    match = re.fullmatch(_SHORT, text)
    if match is None or names.repo_fault(match["repo"]):
        raise BadInput(f"not a model: {_shown(text)} is neither a file nor user/repo[:quant]")
    return _model_of(match["repo"], "", match["folder"], match["quant"], text)


def _with_scheme(scheme: str, rest: str, text: str) -> Reference:
    if scheme == "hf":
        return _hub(rest, text)
    if scheme == "file":
        return _file_url(text)
    if scheme in ("http", "https"):
        return _url(text)
    raise BadInput(f"not a model: {_shown(text)}: unknown scheme '{scheme}' (hf, file, http and https are known)")


def _page(page: re.Match[str], text: str) -> Reference:
    """What a page of the hub shows: a repository, a folder of it, a file."""
    from urllib.parse import unquote

    repo, path = page["repo"], unquote(page["shown"] or page["path"] or "").rstrip("/")
    if names.repo_fault(repo) or repo.partition("/")[0].lower() in _NO_REPOSITORIES:
        raise BadInput(f"not a model: {_without_secrets(text)} is no page of a model's repository")
    revision = "" if page["revision"] in (None, "main") else _revision(page["revision"], text)
    if path.lower().endswith(MODEL_SUFFIX):
        return _file_of(repo, revision, path, text)
    if path and not re.search("/tree/", text, re.IGNORECASE):
        raise BadInput(f"not a model: {_without_secrets(text)}: the file {_no_model_file(path)}")
    return _model_of(repo, revision, path or None, page["quant"], text)


def _hub(rest: str, text: str) -> Reference:
    match = re.fullmatch(_HUB, rest)
    if match is None or names.repo_fault(match["repo"]):
        raise BadInput(f"not a model: {_shown(text)} must be hf://user/repo, with :quant or /file if need be")
    revision = _revision(match["revision"], text) if match["revision"] else ""
    if match["file"] is None:
        return _model_of(match["repo"], revision, match["folder"], match["quant"], text)
    if match["file"].endswith("/"):
        return _model_of(match["repo"], revision, match["file"][:-1], None, text)
    return _file_of(match["repo"], revision, match["file"], text)


def _revision(written: str, text: str) -> str:
    """A revision, in which '/' stands percent-encoded."""
    from urllib.parse import unquote

    if fault := names.revision_fault(revision := unquote(written)):
        raise BadInput(f"not a model: {_shown(text)}: the revision {fault}")
    return revision


def _file_of(repo: str, revision: str, file: str, text: str) -> Reference:
    if fault := names.relative_path_fault(file) or _no_model_file(file):
        raise BadInput(f"not a model: {_shown(text)}: the file {fault}")
    return Reference("hub", repo, file=file, revision=revision)


def _model_of(repo: str, revision: str, folder: str | None, quant: str | None, text: str) -> Reference:
    """A quant of a repository or of a folder in it; a folder named alone is asked for the model that lies there."""
    if folder is None:
        return Reference("hub", repo, _quant(quant, text), revision=revision)
    if fault := names.relative_path_fault(folder):
        raise BadInput(f"not a model: {_shown(text)}: the folder {fault}")
    wish = "" if quant is None else _quant(quant, text)
    return Reference("hub", repo, wish, revision=revision, folder=folder)


def _quant(quant: str | None, text: str) -> str:
    if quant is None:
        return DEFAULT_QUANT
    if not re.fullmatch(_QUANT, quant):
        raise BadInput(f"not a model: {_shown(text)}: after ':' comes a quant such as {DEFAULT_QUANT}")
    return quant.upper()


def _no_model_file(file: str) -> str:
    return "" if file.lower().endswith(MODEL_SUFFIX) else f"must end in {MODEL_SUFFIX}"


def _file_url(text: str) -> Reference:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(text)
    except ValueError:
        raise BadInput(f"not a model: {_shown(text)} is not a valid URL") from None
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not path.startswith("/"):
        raise BadInput(f"not a model: {_shown(text)} must be file:// and an absolute path, percent-encoded")
    if not path.isprintable():
        raise BadInput(f"not a model: {_shown(text)} has control or invisible characters")
    return Reference("file", path[1:] if re.match(_DRIVE, path[1:]) else path)


def _url(text: str) -> Reference:
    if fault := names.url_fault(text):
        raise BadInput(f"not a model: {_without_secrets(text)} {fault}")
    name = _last_step(text)
    if fault := names.file_name_fault(name) or _no_model_file(name):
        raise BadInput(f"not a model: {_without_secrets(text)}: the file's name {name!a:.100} {fault}")
    return Reference("url", text)


def file_name(reference: Reference) -> str:
    """The plain file name that a ``url`` reference or a hub ``file`` ends in; empty for the others."""
    return _last_step(reference.name) if reference.kind == "url" else reference.file.rsplit("/", 1)[-1]


def _last_step(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path.rsplit("/", 1)[-1])


def _without_secrets(url: str) -> str:
    """A URL as it may be shown: no user, no password, no query (signed URLs carry their signature there)."""
    from urllib.parse import quote, unquote

    scheme, _, rest = url.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = place.partition("/")
    return _shown(f"{scheme}://{host.rpartition('@')[2]}{slash}{quote(unquote(path), safe='/')}")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 120 else f"{text[:119]}…")
