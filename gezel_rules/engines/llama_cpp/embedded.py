"""The embedded engine: xllamacpp's llama.cpp server in this process, behind llama-server's own command line.

Run as a child: ``python -m gezel_rules.engines.llama_cpp.embedded [--policies DIR] ARGV…``. Same flags, same log, same
HTTP, same exit: 1 for an argument it cannot honour or a model that does not load, 143 when terminated while loading, 0
when terminated after.
The key comes from ``LLAMA_API_KEY``. Variables ``LLAMA_ARG_*`` are not read, and that is said.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import places
from gezel_rules.engines import registry
from gezel_rules.engines.llama_cpp.embedded_flags import (
    Adapter,
    Member,
    Setting,
    Table,
    embedded_table,
    help_text,
    read_argv,
    version_of,
)
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.engines.llama_cpp.find import EMBEDDED_POLICIES
from gezel_rules.errors import BadInput
from gezel_rules.policy.seal import load_policies

if TYPE_CHECKING:
    from gezel_rules.policy.language import Language

MODULE = "gezel_rules.engines.llama_cpp.embedded"
WHEEL = "xllamacpp"
DEVICES_MAX = 128  # the wheel insists on one share for each possible device
GPU_KINDS = ("_TYPE_GPU", "_TYPE_IGPU")  # what llama-server lists; the CPU and accelerators are not listed
MIB = 1 << 20


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what ``llama-server ARGV`` would do. Errors are one line on stderr, exit 1 as llama-server's."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # loading does not come back to Python: die as llama-server does
    try:
        directory, argv = _policies(argv)
        table = _table(directory, environ)
        if answer := _ANSWERS.get(argv[0] if len(argv) == 1 else ""):
            answer(table)
            return 0
        return _serve(read_argv(argv, table), table, environ)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 1


def _policies(argv: Sequence[str]) -> tuple[Path, Sequence[str]]:
    """The directory of policies, where the command names one before llama-server's arguments, and those arguments."""
    if len(argv) > 1 and argv[0] == EMBEDDED_POLICIES:
        return Path(argv[1]), argv[2:]
    return places.policies_dir(), argv


def _table(directory: Path, environ: Mapping[str, str]) -> Table:
    """The flags this engine honours. A set compiled here is not kept: it was not held against all the core reads."""
    languages, code = registry.EveryFamily(_language), partial(registry.code_of, FAMILY)
    cache, layers = places.cache_dir(), places.layer_files(environ)
    return embedded_table(
        load_policies(directory, FAMILY.name, languages, cache, code=code, keeps=False, layers=layers)
    )


def _language(name: str) -> Language:
    from gezel_rules.facts.vocabulary import fact_types  # only when a set is compiled
    from gezel_rules.policy.language import Language

    family = registry.family(name)
    return Language(fact_types(family.vocabulary()), family.signatures(), family.needs)


def _print_help(table: Table) -> None:
    print(help_text(table))


def _print_version(table: Table) -> None:
    """As llama-server: on stderr. The wheel does not say llama.cpp's version, only its build number."""
    from importlib.metadata import version

    wheel = version(WHEEL)
    build = wheel.rpartition(".")[2]
    number = int(build) if build.isdecimal() else 0
    print(f"version: {version_of(number, table)} (build {number}, commit unknown)", file=sys.stderr)
    print(f"built with {WHEEL} {wheel} (the version is the least this build can be)", file=sys.stderr)


def _print_devices(_table: Table) -> None:
    import xllamacpp

    print("Available devices:")
    rows = [row for row in xllamacpp.get_device_info() if row["type"].name.endswith(GPU_KINDS)]
    for row in rows:
        sizes = f"{row['memory_total'] // MIB} MiB, {row['memory_free'] // MIB} MiB free"
        print(f"  {row['name']}: {row['description']} ({sizes})")
    if not rows:
        print("  (none)")


_ANSWERS = {
    "--help": _print_help,
    "-h": _print_help,
    "--version": _print_version,
    "--list-devices": _print_devices,
}


def _serve(settings: list[Setting], table: Table, environ: Mapping[str, str]) -> int:
    import xllamacpp

    ignored = sorted(name for name in environ if name.startswith("LLAMA_ARG_"))
    if ignored:
        print(f"warning: the embedded engine does not read {', '.join(ignored)}", file=sys.stderr)
    params = xllamacpp.CommonParams()
    keys = [key for key in environ.get("LLAMA_API_KEY", "").split(",") if key]
    for setting in _merge([*table.defaults, Setting("api_keys", keys, adds=True), *settings]):
        _apply(params, setting, xllamacpp)
    if not params.model.path:
        raise BadInput("error: no model given: the embedded engine is no router")
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return 1  # llama.cpp has said why in its log
    _wait_for_signal()
    del server  # waits for the requests at work, then for the main loop
    return 0


def _merge(settings: Sequence[Setting]) -> list[Setting]:
    """One setting for each parameter: the last one, or all of them joined where they accumulate."""
    merged: dict[str, Setting] = {}
    for setting in settings:
        before = merged.get(setting.parameter)
        if setting.adds and before is not None:
            setting = setting._replace(value=[*before.value, *setting.value])
        merged[setting.parameter] = setting
    return list(merged.values())


def _apply(params: Any, setting: Setting, wheel: Any) -> None:
    """Set one parameter. Raises BadInput when this wheel lacks it or refuses the value."""
    *path, last = setting.parameter.split(".")
    try:
        owner = params
        for name in path:
            owner = getattr(owner, name)
        setattr(owner, last, _value(setting.value, getattr(owner, last), params, wheel))
    except AttributeError:
        raise BadInput(f"error: invalid argument: {setting.by}: this {WHEEL} has no {setting.parameter}") from None
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise BadInput(f'error while handling argument "{setting.by}": {error}') from None


def _value(value: Any, now: Any, params: Any, wheel: Any) -> Any:
    """A value as the wheel wants it; ``now`` is the parameter's present value, whose kind tells."""
    if isinstance(value, Member):
        return _member(value, params, wheel)
    if not isinstance(value, list):
        return value
    if isinstance(now, set):
        return set(value)
    if isinstance(now, str):
        return ",".join(value)
    if value and isinstance(value[0], Adapter):
        return [wheel.CommonAdapterLoraInfo(adapter.path, adapter.scale) for adapter in value]
    if value and isinstance(value[0], Member):
        return [_member(member, params, wheel) for member in value]
    return _per_device(value, now)


def _per_device(value: list[Any], now: Any) -> list[Any]:
    """Shares of absent devices are zero; one margin stands for every device, as with llama-server."""
    if not now or not isinstance(now[0], (int, float)):
        return value
    if len(now) == DEVICES_MAX:
        return value[:DEVICES_MAX] + [0.0] * (DEVICES_MAX - len(value))
    return value * len(now) if len(value) == 1 else value + now[len(value) :]


def _member(member: Member, params: Any, wheel: Any) -> Any:
    enumeration, _, name = member.dotted.partition(".")
    if member.turns_on:
        setattr(params, member.turns_on, True)
    return getattr(getattr(wheel, enumeration), name)


def _wait_for_signal() -> None:
    """Return on SIGTERM or SIGINT, whichever thread the kernel hands it to."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    os.read(read_end, 1)


if __name__ == "__main__":
    status = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # llama.cpp's own static clean-up has nothing left to do and may outlive its threads
