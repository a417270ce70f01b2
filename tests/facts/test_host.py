"""Host facts against trees of real files laid out as kernels lay them out, and against this very process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.facts.fact import UNKNOWN
from gezel_rules.facts.host import host_facts

GIB = 1 << 30
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def machine(root: Path, files: dict[str, str], total: int = 64 * GIB, available: int = 60 * GIB) -> Path:
    meminfo = (
        f"MemTotal:       {total >> 10} kB\nMemFree:  1 kB\nMemAvailable:   {available >> 10} kB\nHugePages_Total: 0\n"
    )
    return lay_out(root, {"proc/meminfo": meminfo, **files})


def facts(root: Path, cpus: int | None = 16):
    return host_facts(root, platform="linux", affinity=lambda: cpus)


def test_no_limits_leaves_the_machine(tmp_path):
    found = facts(machine(tmp_path, {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2_MOUNT}))
    assert found["host.cpus"][:2] == (16, "CPU affinity of this process")
    assert found["host.ram_total"][:2] == (64 * GIB, "/proc/meminfo MemTotal")
    assert found["host.ram_free"][:2] == (60 * GIB, "/proc/meminfo MemAvailable")


def test_the_smallest_limit_along_a_nested_version_2_path(tmp_path):
    group = "sys/fs/cgroup/kubepods.slice"
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/kubepods.slice/pod1/box\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            f"{group}/cpu.max": "1200000 100000\n",
            f"{group}/memory.max": f"{32 * GIB}\n",
            f"{group}/memory.current": f"{30 * GIB}\n",
            f"{group}/memory.stat": f"anon 5\ninactive_file {4 * GIB}\nactive_file 9\n",
            f"{group}/pod1/cpu.max": "350000 100000\n",
            f"{group}/pod1/memory.max": f"{16 * GIB}\n",
            f"{group}/pod1/memory.current": f"{6 * GIB}\n",
            f"{group}/pod1/box/cpu.max": "max 100000\n",
            f"{group}/pod1/box/memory.max": "max\n",
            f"{group}/pod1/box/memory.current": "77\n",
        },
    )
    found = facts(root)
    assert found["host.cpus"][:2] == (3, "cgroup /sys/fs/cgroup/kubepods.slice/pod1/cpu.max")
    assert found["host.ram_total"][:2] == (16 * GIB, "cgroup /sys/fs/cgroup/kubepods.slice/pod1/memory.max")
    # the parent leaves 32 - (30 - 4) = 6 GiB, less than the 10 GiB the pod has left
    assert found["host.ram_free"].value == 6 * GIB
    assert "/kubepods.slice/memory.max" in found["host.ram_free"].source


def test_a_container_sees_its_group_at_the_mount_point(tmp_path):
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
        },
    )
    found = facts(root)
    assert found["host.cpus"].value == 1, "half a CPU is still one thread"
    assert found["host.ram_free"].value == 0, "over the limit is not negative"


def test_version_1_with_the_host_path_in_a_bind_mounted_hierarchy(tmp_path):
    mounts = (
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro master:1 - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
    )
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc/inner\n3:cpuset:/\n2:cpu,cpuacct:/docker/abc\n0::/elsewhere\n",
            "proc/self/mountinfo": mounts,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{5 * GIB}\n",
            "sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB}\n",
            "sys/fs/cgroup/memory/inner/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/inner/memory.usage_in_bytes": "5\n",
        },
    )
    found = facts(root)
    assert found["host.cpus"].value == 4
    assert found["host.ram_total"].value == 8 * GIB
    assert found["host.ram_free"].value == 4 * GIB


def test_no_quota_in_version_1_is_minus_one(tmp_path):
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "2:cpu:/\n",
            "proc/self/mountinfo": "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert facts(root)["host.cpus"].value == 16


def test_both_versions_side_by_side_each_bind(tmp_path):
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/a\n0::/b\n",
            "proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{20 * GIB}",
            "sys/fs/cgroup/unified/b/cpu.max": "200000 100000",
            "sys/fs/cgroup/unified/b/memory.high": f"{12 * GIB}",
        },
    )
    found = facts(root)
    assert found["host.cpus"].value == 2
    assert found["host.ram_total"][:2] == (12 * GIB, "cgroup /sys/fs/cgroup/unified/b/memory.high")


def test_a_mount_point_with_a_space(tmp_path):
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "31 23 0:28 / /odd\\040place rw - cgroup2 none rw\n",
            "odd place/cpu.max": "300000 100000\n",
        },
    )
    assert facts(root)["host.cpus"][:2] == (3, "cgroup /odd place/cpu.max")


def test_a_path_above_the_namespace_never_leaves_the_mount(tmp_path):
    root = machine(
        tmp_path / "root",
        {
            "proc/self/cgroup": "0::/../../../outside\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
            "outside/memory.max": "1\n",
        },
    )
    assert facts(root)["host.ram_total"].value == 4 * GIB


def test_what_the_system_does_not_say_stays_unknown(tmp_path):
    root = lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": V2_MOUNT,
            "proc/meminfo": "MemTotal: lots\n",
            "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/memory.current": "0\n",
        },
    )
    found = facts(root, cpus=None)
    assert [found[n].value for n in ("host.cpus", "host.ram_total", "host.ram_free")] == [UNKNOWN] * 3
    assert all(found[n].settle for n in ("host.cpus", "host.ram_total", "host.ram_free"))


@given(
    st.lists(
        st.tuples(st.none() | st.integers(1, 1 << 40), st.integers(0, 1 << 40), st.none() | st.integers(1000, 10**7)),
        min_size=1,
        max_size=5,
    )
)
def test_nested_limits_are_minima(tmp_path_factory, levels):
    path = "".join(f"/g{i}" for i in range(len(levels)))
    files = {"proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": V2_MOUNT}
    for i, (limit, used, quota) in enumerate(levels):
        directory = "sys/fs/cgroup" + "".join(f"/g{j}" for j in range(i + 1))
        files[f"{directory}/memory.max"] = "max\n" if limit is None else f"{limit}\n"
        files[f"{directory}/memory.current"] = f"{used}\n"
        files[f"{directory}/cpu.max"] = "max 100000\n" if quota is None else f"{quota} 100000\n"
    found = facts(machine(tmp_path_factory.mktemp("host"), files))
    limits = [limit for limit, _, _ in levels if limit is not None]
    assert found["host.ram_total"].value == min([64 * GIB, *limits])
    left = [max(0, limit - used) for limit, used, _ in levels if limit is not None]
    assert found["host.ram_free"].value == min([60 * GIB, *left])
    assert found["host.cpus"].value == min([16, *(max(1, q // 100000) for *_, q in levels if q is not None)])


@given(st.text(max_size=200), st.text(max_size=200), st.binary(max_size=100))
def test_any_text_in_the_kernel_files_gives_facts(tmp_path_factory, cgroup, mountinfo, limit):
    root = tmp_path_factory.mktemp("host")
    lay_out(root, {"proc/meminfo": "", "sys/fs/cgroup/x": ""})
    (root / "proc/self").mkdir()
    (root / "proc/self/cgroup").write_text("0::/\n" + cgroup, encoding="utf-8")
    (root / "proc/self/mountinfo").write_text(V2_MOUNT + mountinfo, encoding="utf-8")
    (root / "sys/fs/cgroup/cpu.max").write_bytes(limit)
    assert 1 <= facts(root)["host.cpus"].value <= 16


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity to change")
def test_a_process_pinned_to_one_cpu_sees_one():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from gezel_rules.facts.host import host_facts; print(host_facts()['host.cpus'].value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_this_machine():
    found = host_facts()
    assert found["host.os"].value in ("linux", "macos", "windows")
    assert 1 <= found["host.cpus"].value <= (os.cpu_count() or 1)
    assert 0 < found["host.ram_free"].value <= found["host.ram_total"].value <= psutil.virtual_memory().total


def test_the_system_that_psutil_serves():
    found = host_facts(platform="darwin", affinity=lambda: 8)
    assert found["host.os"].value == "macos"
    assert found["host.cpus"].value == 8
    assert found["host.ram_total"][:2] == (psutil.virtual_memory().total, "psutil total")
