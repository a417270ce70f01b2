"""Where things live: data shipped beside the code; models, caches and state where the platform means them to be."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent


def _shipped(name: str) -> Path:
    """A data directory: carried inside an installed package, at the top level in a checkout."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def policies_dir() -> Path:
    """The shipped policies."""
    return _shipped("policies")


def chosen(policies: Path) -> Path | None:
    """A directory of policies that somebody chose; ``None`` for the shipped one."""
    return None if policies == policies_dir() else policies


def catalog_dir() -> Path:
    """The shipped catalog: ``models/`` and ``hosts/``."""
    return _shipped("catalog")


def schemas_dir() -> Path:
    """The JSON Schemas for editors and ``policy check``."""
    return _shipped("schemas")


def compiled_dir() -> Path | None:
    """The shipped policies as compiled when this package was built; ``None`` in a checkout."""
    inside = _PACKAGE / "shipped" / "compiled"
    return inside if inside.is_dir() else None


def _platform(variable: str, kind: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser()
    import platformdirs

    base: str = getattr(platformdirs, kind)("gezel-rules", appauthor=False)
    return Path(base)


def store_dir() -> Path:
    """Installed models (``GEZEL_STORE``, else the user's data directory)."""
    return _platform("GEZEL_STORE", "user_data_dir") / ("" if os.environ.get("GEZEL_STORE") else "models")


def cache_dir() -> Path:
    """What may be deleted at any time (``GEZEL_CACHE``, else the user's cache directory)."""
    return _platform("GEZEL_CACHE", "user_cache_dir")


def state_dir() -> Path:
    """Logs, leases, journal, remembered failures (``GEZEL_STATE``, else the user's state directory)."""
    return _platform("GEZEL_STATE", "user_state_dir")


SITE = Path("/etc/gezel-rules")
"""What an operator sets for everybody on a machine, or on a fleet of them."""
LAYERS = "GEZEL_LAYERS"
"""Further layers of policies, highest of all: paths, separated as in PATH."""


def site_files() -> tuple[Path, ...]:
    """Operator settings files, lowest precedence first: the machine's, then the user's."""
    return tuple(directory / "site.yaml" for directory in _operators())


def layer_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """What is laid over the policies, lowest precedence first: the YAML files of the site's ``policies`` folder and of
    the user's, each in name order, then those of ``GEZEL_LAYERS``."""
    found = [path for directory in _operators() for path in _yaml_files(directory / "policies")]
    named = [Path(name).absolute() for name in environ.get(LAYERS, "").split(os.pathsep) if name]
    return (*found, *named)


def with_layers(environ: Mapping[str, str], layers: Sequence[Path]) -> Mapping[str, str]:
    """The environment with more layers, above those it names."""
    if not layers:
        return environ
    named = [name for name in (environ.get(LAYERS, ""), *(str(path.absolute()) for path in layers)) if name]
    return {**environ, LAYERS: os.pathsep.join(named)}


def _operators() -> tuple[Path, Path]:
    return SITE, _platform("GEZEL_CONFIG", "user_config_dir")


def _yaml_files(directory: Path) -> list[Path]:
    """In name order. Raises OSError for a folder that is there and cannot be read."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 - on every start
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [directory / name for name in sorted(names) if name.endswith(".yaml")]


def shown(path: Path) -> str:
    """The name people know a file by: ``catalog/models/x.yaml`` for a shipped one, wherever it is installed."""
    for base in (catalog_dir(), policies_dir()):
        if path.is_relative_to(base):
            return f"{base.name}/{path.relative_to(base).as_posix()}"
    return str(path)
