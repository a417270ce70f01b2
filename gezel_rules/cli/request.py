"""From arguments to a plan's request: directories, host or engine, settings, what other launches hold."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from gezel_rules import places
from gezel_rules.errors import BadInput
from gezel_rules.planner.launch import Request
from gezel_rules.planner.subject import Places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL and what a plan depends on."""
    parser.add_argument("model", metavar="MODEL", help="catalog id, GGUF file, or user/repo[:quant]")
    add_conditions(parser)
    parser.add_argument("--host", metavar="FILE", help="plan for a described host (a file, or a name in catalog/hosts)")


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Settings and engine."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting, as window=32k (policy show settings lists them)",
    )
    parser.add_argument("--engine", metavar="PATH", help="a llama-server, or 'embedded' (default: the one found)")


def policies_of(args: argparse.Namespace) -> Path:
    """The directory chosen (``--policies``, else ``GEZEL_POLICIES``: ``main`` knows both), else what was shipped."""
    chosen: Path | None = args.policies
    return chosen or places.policies_dir()


def catalog_of(args: argparse.Namespace) -> Path:
    """The directory chosen (``--catalog``, else ``GEZEL_CATALOG``: ``main`` knows both), else what was shipped."""
    chosen: Path | None = args.catalog
    return chosen or places.catalog_dir()


def store_of(args: argparse.Namespace) -> Path:
    """``--store``, else ``GEZEL_STORE``, else the user's data directory. Raises BadInput for a file."""
    store: Path = args.store or places.store_dir()
    if store.is_file():
        raise BadInput(f"{store}: is a file, not a store of models")
    return store


def request_of(args: argparse.Namespace) -> Request:
    """The request of a command's arguments. Raises BadInput for a host that is not there or a named engine that is
    none; with no engine at all, what it would say stays unknown."""
    store, catalog = store_of(args), catalog_of(args)
    return Request(
        model=args.model, policies=policies_of(args), cache=places.cache_dir(), environ=os.environ,
        places=Places(catalog, store, lambda model: on_shelf(store, model), places.cache_dir()),
        sites=places.site_files(), assignments=tuple(args.set), host=_host(args, catalog),
        engine=None if getattr(args, "host", None) else engine_of(args), held=_held(), broke=_broke,
    )  # fmt: skip


def on_shelf(store: Path, model: str) -> Any:
    """What the store holds of a model; the store's code is loaded only when there is something to read."""
    if not store.is_dir() or ("/" not in model and not (store / model).is_dir()):
        return None  # a catalog id's directory has its name
    from gezel_rules.store.shelf import find_installed

    return find_installed(store, model)


def _host(args: argparse.Namespace, catalog: Path) -> Path | None:
    if not getattr(args, "host", None):
        return None
    given, named = Path(args.host), catalog / "hosts" / f"{args.host}.yaml"
    if given.exists() or "/" in args.host or not named.is_file():
        return given
    return named


def engine_of(args: argparse.Namespace) -> tuple[str, tuple[str, ...]] | None:
    """Kind and command of the engine found; ``None`` when there is none. Raises BadInput when a named one is none."""
    from gezel_rules.engines.llama_cpp.find import VARIABLE, find_engine, judged_by

    try:
        engine = judged_by(find_engine(args.engine, os.environ), args.policies)
    except BadInput:
        if args.engine or os.environ.get(VARIABLE):
            raise
        return None
    return engine.kind, engine.command


def _held() -> dict[str, int]:
    if not (places.state_dir() / "leases").is_dir():
        return {}
    from gezel_rules.runtime.leases import held

    return held(places.state_dir())


def _broke(build: str, drafter: str) -> bool:
    from gezel_rules.runtime.recover import is_broken

    return is_broken(places.state_dir(), build, drafter)
