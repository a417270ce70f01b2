"""A program asked: its build, its options, its devices, and what steers it from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gezel_rules.engines.family import SummaryRow
from gezel_rules.engines.llama_cpp.builds import build_facts, engine_at, read_build
from gezel_rules.engines.llama_cpp.devices import DeviceRules, device_rules
from gezel_rules.engines.llama_cpp.memory.tables import Processor
from gezel_rules.engines.llama_cpp.rows import DeviceName, DevicePrefix
from gezel_rules.engines.patience import patience_by
from gezel_rules.policy.backends import backends

if TYPE_CHECKING:
    from gezel_rules.engines.family import OutsideSetting, Probe
    from gezel_rules.engines.protocol import Facts
    from gezel_rules.policy.model import PolicySet


def probe_facts(probe: Probe) -> Facts:
    """``engine.*`` and ``devices``; the devices of RPC servers too, each of which was asked first. Raises BadInput,
    Refused for a silent RPC server, EngineFailed."""
    command, policies = probe.program.command, probe.policies
    if servers := _rpc_servers(probe):
        from gezel_rules.engines.llama_cpp.rpc_servers import require_rpc_servers

        require_rpc_servers(servers)
        command = (*command, policies.decisions["flag.rpc"].flag or "", ",".join(servers))
    facts = build_facts(
        command, probe.cache, probe.environ,
        kind=probe.program.kind, rules=_rules(policies), cpu_backend=_cpu(policies), fresh=probe.fresh,
        processors=policies.rows("processors", Processor), patience=patience_by(policies),
    )  # fmt: skip
    return facts | _spec_types(facts, policies)


def _rpc_servers(probe: Probe) -> list[str]:
    fact = probe.settings.get("settings.rpc")
    return list(fact.value or ()) if fact else []


def _rules(policies: PolicySet) -> DeviceRules:
    prefixes, names = policies.rows("device_prefixes", DevicePrefix), policies.rows("device_names", DeviceName)
    return device_rules(prefixes, names, policies.tables["device_lines"])


def _cpu(policies: PolicySet) -> str:
    """The backend of an engine without devices."""
    return next(name for name, row in backends(policies).items() if not row.gpu)


def _spec_types(facts: Facts, policies: PolicySet) -> Facts:
    """The speculative types a build lists behind the option that chooses one."""
    words = facts["engine.words"]
    listed = words.value.get(policies.row("launch_summary", "spec_type", SummaryRow).flag)
    return {"engine.spec_types": words._replace(value=listed)} if listed else {}


def outside_settings(probe: Probe) -> list[OutsideSetting]:
    """What this program's variables and configuration files set."""
    from gezel_rules.engines.llama_cpp.outside_settings import settings_outside

    program, patience = probe.program, patience_by(probe.policies)
    build = read_build(engine_at(program.kind, program.command, probe.cache, probe.environ, patience=patience))
    return settings_outside(probe.environ, flags=build.flags, variables=build.variables)
