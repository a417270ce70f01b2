"""Why a process got SIGKILL: lack of memory only where the system shows it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from shipped_rules import shipped_judge, shipped_rules

from gezel_rules.runtime.killed import line_on, look

PID = 4242


@pytest.fixture
def machine(tmp_path):
    """A machine's files: ``machine(oom_kill=1)`` writes its count, ``machine(full=50)`` its memory pressure."""
    for folder in ("proc/self", "proc/pressure", "sys/fs/cgroup/unit", "dev"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/unit\n")
    (tmp_path / "proc/self/mountinfo").write_text("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")

    def write(oom_kill: int = 0, full: float = 0.0) -> Path:
        (tmp_path / "sys/fs/cgroup/unit/memory.events").write_text(f"low 0\noom 0\noom_kill {oom_kill}\n")
        (tmp_path / "proc/pressure/memory").write_text(
            f"some avg10=90.00 avg60=0.00 avg300=0.00 total=1\nfull avg10={full:.2f} avg60=0.00 avg300=0.00 total=1\n"
        )
        return tmp_path

    write()
    return write


def verdict(status, before, log=()):
    lines = line_on(status, PID, before, shipped_rules().short_memory)
    return shipped_judge("cpu")([*log, *lines], status)


@pytest.mark.parametrize("status", [-signal.SIGKILL, 137])
def test_12_a_plain_sigkill_is_from_outside(machine, status):
    """Also in a shell's words."""
    for log in ((), ("Killed",)):
        found = verdict(status, look(machine()), log)
        assert found.failure == "killed-from-outside" and "quant" not in found.advice


def test_12_a_kill_for_memory_in_the_control_group(machine):
    before = look(machine(oom_kill=2))
    machine(oom_kill=3)
    found = verdict(-9, before)
    assert found.failure == "host-oom-killed"
    assert "memory.events rose from 2 to 3" in found.line


def test_12_an_older_kill_in_the_group_is_no_sign(machine):
    assert verdict(-9, look(machine(oom_kill=3))).failure == "killed-from-outside"


def test_12_memory_pressure_at_the_time(machine):
    before = look(machine())
    machine(full=71.5)
    found = verdict(-9, before)
    assert found.failure == "host-oom-killed" and "71.50 %" in found.line


def test_12_the_kernels_log(machine):
    before = look(machine())
    late, early = int(before.clock * 1e6) + 5, 5
    words = "Out of memory: Killed process {} (llama-server) total-vm:1kB"
    log = machine() / "dev/kmsg"
    for stamp, pid, expected in (
        (late, PID, "host-oom-killed"), (early, PID, "killed-from-outside"), (late, 77, "killed-from-outside"),
    ):  # fmt: skip
        log.write_text(f"6,1,{stamp},-;{words.format(pid)}\n")
        assert verdict(-9, before).failure == expected


def test_12_the_log_itself_may_say_so(machine):
    found = verdict(137, look(machine()), ["Memory cgroup out of memory: OOMKilled", "Killed"])
    assert found.failure == "host-oom-killed"


def test_12_version_1_control_groups(tmp_path):
    group = tmp_path / "sys/fs/cgroup/memory/unit"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/unit\n")
    (tmp_path / "proc/self/mountinfo").write_text("30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
    count = group / "memory.oom_control"
    count.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    before = look(tmp_path)
    count.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert verdict(-9, before).failure == "host-oom-killed"


@pytest.mark.parametrize("status", [None, 0, 1, -11])
def test_other_ends_need_no_witness(machine, status):
    assert line_on(status, os.getpid(), look(machine()), 30) == ()
