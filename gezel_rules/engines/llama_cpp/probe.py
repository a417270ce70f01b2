"""A program asked: its build, its options, its devices, and what steers it from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.llama_cpp.builds import build_facts, engine_at, read_build
from gezel_rules.engines.llama_cpp.devices import DeviceRules, device_rules
from gezel_rules.engines.llama_cpp.memory.tables import Processor

if TYPE_CHECKING:
    from gezel_rules.engines.family import OutsideSetting, Probe
    from gezel_rules.engines.protocol import Facts, Tables


def probe_facts(probe: Probe) -> Facts:
    """``engine.*`` and ``devices``; the devices of RPC servers too, each of which was asked first. Raises BadInput,
    Refused for a silent RPC server, EngineFailed."""
    command, tables = probe.program.command, probe.policies.tables
    if servers := _rpc_servers(probe):
        from gezel_rules.engines.llama_cpp.rpc_servers import require_rpc_servers

        require_rpc_servers(servers)
        command = (*command, probe.policies.decisions["flag.rpc"].flag or "", ",".join(servers))
    facts = build_facts(
        command, probe.cache, probe.environ,
        kind=probe.program.kind, rules=_rules(tables), cpu_backend=_cpu(tables), fresh=probe.fresh,
        processors=probe.policies.rows("processors", Processor),
    )  # fmt: skip
    return facts | _spec_types(facts, tables)


def _rpc_servers(probe: Probe) -> list[str]:
    fact = probe.settings.get("settings.rpc")
    return list(fact.value or ()) if fact else []


def _rules(tables: Tables) -> DeviceRules:
    return device_rules(tables["device_prefixes"], tables["software_renderers"], tables["integrated_gpus"])


def _cpu(tables: Tables) -> str:
    """The backend of an engine without devices."""
    return next(str(name) for name, row in tables["backends"].items() if not row["gpu"])


def _spec_types(facts: Facts, tables: Mapping[str, Any]) -> Facts:
    """The speculative types a build lists behind the option that chooses one."""
    words = facts["engine.words"]
    listed = words.value.get(tables["launch_summary"]["spec_type"]["flag"])
    return {"engine.spec_types": words._replace(value=listed)} if listed else {}


def outside_settings(probe: Probe) -> list[OutsideSetting]:
    """What this program's variables and configuration files set."""
    from gezel_rules.engines.llama_cpp.outside_settings import settings_outside

    build = read_build(engine_at(probe.program.kind, probe.program.command, probe.cache, probe.environ))
    return settings_outside(probe.environ, flags=build.flags, variables=build.variables)
