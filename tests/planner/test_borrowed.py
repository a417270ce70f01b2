"""Devices borrowed over RPC: planned like cards, and where the plan puts things is where the engine puts them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rpc_servers import binaries, free_port, lending

from gezel_rules.cli import main
from gezel_rules.engines.llama_cpp.memory.host_buffers import BUFFERS

MIB = 1 << 20
ROW = re.compile(r"- (RPC\d+|Host|CPU_REPACK|AMX).*\|.*?(\d+) = +(\d+) \+ +(\d+) \+ +(\d+)")


def test_a_silent_lender_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GEZEL_LLAMA_SERVER", raising=False)
    port = free_port()
    assert main(["plan", "gemma-3-270m", "--set", f"rpc=127.0.0.1:{port}"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"gezel-rules: rpc: 127.0.0.1:{port} does not answer (connection refused): "
        "start an RPC server there, or leave it out\n"
    )


@pytest.mark.parametrize("lender", ["nowhere", "127.0.0.1:0", "127.0.0.1:70000", "a b:1", "http://x:1"])
def test_what_is_no_address_is_bad_input(lender: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "gemma-3-270m", "--set", f"rpc='{lender}'"]) == 2
    assert f"rpc: '{lender}' is not host:port" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.parametrize("settings", [(), ("n_gpu_layers=9",)], ids=["resident", "half"])
def test_the_engine_puts_things_where_the_plan_said(
    settings: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GEZEL_STATE", str(tmp_path / "state"))
    server, lender = binaries()
    with lending(lender, 2) as lenders:
        chosen = [f"--set={item}" for item in (f"rpc={' '.join(lenders)}", "window=4096", *settings)]
        common = ["gemma-3-270m", "--engine", str(server), *chosen]
        assert main(["run", *common, "The capital of France is", "--max-tokens", "2"]) == 0
        capsys.readouterr()
        assert main(["plan", *common, "--json"]) == 0
    planned = {pool["name"]: pool for pool in json.loads(capsys.readouterr().out)["memory"]["pools"]}
    table = _printed(tmp_path / "state")
    host = [sum(parts) for parts in zip(*(table[n] for n in BUFFERS if n in table), strict=True)]
    for name, (model, context, compute) in {"GPU0": table["RPC0"], "GPU1": table["RPC1"], "host": host}.items():
        if name == "host":  # of a mapped file the engine shows the range, borrowed layers within it included
            assert planned[name]["model_bytes"] / MIB <= model + 3
        else:
            assert planned[name]["model_bytes"] / MIB == pytest.approx(model, rel=0.01, abs=3), name
        assert planned[name]["context_bytes"] / MIB == pytest.approx(context, rel=0.01, abs=3), name
        assert planned[name]["compute_bytes"] / MIB == pytest.approx(compute, rel=0.1, abs=32), name


def _printed(state: Path) -> dict[str, list[int]]:
    """The engine's own table at its end: name → MiB of model, context and compute buffers."""
    log = max((state / "logs").rglob("*.log"), key=lambda path: path.stat().st_mtime_ns)  # of the last start
    rows = [found for line in log.read_text(errors="replace").splitlines() if (found := ROW.search(line))]
    return {row[1]: [int(row[i]) for i in (3, 4, 5)] for row in rows}
