"""Which names may leave the catalog for a disk or a server: nothing here can escape a directory or hide in it.

Every function returns what is wrong, as the end of a sentence about the name, or an empty text.
"""

from __future__ import annotations

import re

ID = r"[a-z0-9][a-z0-9._-]{0,99}"
REPO = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
REVISION = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}"
DISTRIBUTION = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"
DIGEST = r"[0-9a-fA-F]{64}"
ABSOLUTE_PATH = r"(?:~?/|[A-Za-z]:[/\\]).*"

# For editors; each takes everything that its function below lets pass.
FILE_NAME = (
    r"(?![ .-])(?!(?:[Cc][Oo][Nn]|[Pp][Rr][Nn]|[Aa][Uu][Xx]|[Nn][Uu][Ll]|[Cc][Oo][Mm][0-9]|[Ll][Pp][Tt][0-9])(?:\.|$))"
    r'[^/\\<>:"|?*\x00-\x1f\x7f]{1,200}(?<![ .])'
)
RELATIVE_PATH = r"[^/\\ .-][^\\]*"
RESOURCE = r"[A-Za-z_][A-Za-z0-9_]*/[^/\\ .-][^\\]*"
URL = r"[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\s]+/\S+"
_FORBIDDEN = frozenset('<>:"|?*')  # by Windows; ':' also names a drive or a stream
_PORTS = frozenset(port + digit for port in ("com", "lpt") for digit in "0123456789¹²³")
_DEVICES = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"}) | _PORTS
_OURS = frozenset({"manifest.json"})
_LONGEST = 200  # bytes; file systems take 255, and a suffix is added while a file is fetched


def file_name_fault(name: str) -> str:
    """For the name of one file in a directory: plain on every system, visible, not one that the store uses."""
    if not name:
        return "is empty"
    if "/" in name or "\\" in name:
        return "must be a plain file name, without '/' or '\\'"
    if not name.isprintable():
        return "has control or invisible characters"
    if bad := sorted(_FORBIDDEN.intersection(name)):
        return f"has '{bad[0]}', which not every file system takes"
    if name[0] in ".-" or name[0] == " ":
        return f"must not start with '{name[0]}'"
    if name[-1] in ". ":
        return f"must not end with '{name[-1]}'"
    if len(name.encode("utf-8", "replace")) > _LONGEST:
        return f"is longer than {_LONGEST} bytes"
    return _taken(name.casefold())


def _taken(name: str) -> str:
    stem = name.partition(".")[0].rstrip(" ")
    if stem in _DEVICES:
        return "is a device's name on Windows"
    return "is a name the model store uses itself" if name in _OURS else ""


def relative_path_fault(path: str) -> str:
    """For a path below something: every step a plain file name, so neither absolute nor upwards."""
    if path.startswith("/"):
        return "must be relative"
    return next((f"{fault} (in {step!a:.80})" for step in path.split("/") if (fault := file_name_fault(step))), "")


def id_fault(name: str) -> str:
    """For the id of a catalog entry, which names its file and its store directory."""
    if not re.fullmatch(ID, name):
        return "must be made of a-z, 0-9, '.', '_' and '-', and start with a letter or digit (at most 100)"
    return file_name_fault(name)


def repo_fault(repo: str) -> str:
    """For a hub repository."""
    return "" if re.fullmatch(REPO, repo) and ".." not in repo else "must be user/repo"


def revision_fault(revision: str) -> str:
    """For a commit, tag or branch."""
    good = re.fullmatch(REVISION, revision) and ".." not in revision and "//" not in revision
    return "" if good and not revision.endswith("/") else "must be a commit, tag or branch name"


def digest_fault(digest: str) -> str:
    """For a sha256."""
    return "" if re.fullmatch(DIGEST, digest) else "must be 64 hexadecimal digits"


def distribution_fault(name: str) -> str:
    """For the name of a Python distribution."""
    return "" if re.fullmatch(DISTRIBUTION, name) else "must be the name of a Python package"


def resource_fault(resource: str) -> str:
    """For ``module/path`` inside an installed package."""
    module, slash, path = resource.partition("/")
    if not slash or not module.isidentifier() or not module.isascii():
        return "must be module/path of a file inside an installed package"
    return relative_path_fault(path)


def absolute_path_fault(path: str) -> str:
    """For a file on this machine, wherever the program is started."""
    if not path.isprintable():
        return "has control or invisible characters"
    if not re.match(ABSOLUTE_PATH, path):
        return "must be absolute, or start with '~/'"
    return "must not contain '..'" if ".." in path.replace("\\", "/").split("/") else ""


def url_fault(url: str) -> str:
    """For an http(s) URL of a file; credentials have no place in one."""
    from urllib.parse import urlsplit

    if not url.isprintable() or " " in url or not url.isascii():
        return "has characters that must be percent-encoded"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in ("http", "https") or not host:
        return "must be an http or https URL with a host"
    if "@" in parts.netloc:
        return "must not hold a user name or password"
    return "" if parts.path.strip("/") else "names no file"
