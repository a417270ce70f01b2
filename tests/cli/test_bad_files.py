"""Files that are no GGUF, or lie about their lengths: one line at exit 2, and what they claim takes no memory."""

from __future__ import annotations

import os
import random
import struct

import pytest

READERS = ("inspect", "memory", "plan", "explain", "run", "serve", "pull")
HUGE = 1 << 60


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf(tensors: int = 0, keys: int = 0, body: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body


ARCH = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
BAD_FILES = {
    "truncated.gguf": (gguf(1, 2, ARCH + text(b"general.name")), "left in the file"),
    "cut-in-a-number.gguf": (gguf()[:13], "left in the file"),
    "v1.gguf": (gguf(version=1), "GGUF v1 is not supported"),
    "random.gguf": (random.Random(1).randbytes(4096), "not a GGUF file"),
    "empty.gguf": (b"", "empty file"),
}
HUGE_FILES = {
    "tensors.gguf": gguf(tensors=HUGE),
    "keys.gguf": gguf(keys=HUGE),
    "key-length.gguf": gguf(keys=1, body=struct.pack("<Q", HUGE) + bytes(64)),
    "text-length.gguf": gguf(keys=1, body=text(b"a") + struct.pack("<IQ", 8, HUGE) + bytes(64)),
    "array-length.gguf": gguf(keys=1, body=text(b"a") + struct.pack("<IIQ", 9, 4, HUGE) + bytes(64)),
    "array-of-texts.gguf": gguf(keys=1, body=text(b"a") + struct.pack("<IIQ", 9, 8, HUGE) + bytes(64)),
    "dimension.gguf": gguf(1, 1, ARCH + text(b"t") + struct.pack("<IQIQ", 1, HUGE, 0, 0) + bytes(64)),
    "offset.gguf": gguf(1, 1, ARCH + text(b"t") + struct.pack("<IQIQ", 1, 32, 0, HUGE) + bytes(192)),
}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_gguf(refused, place, command, name):
    (place.here / name).write_bytes(BAD_FILES[name][0])
    line = refused(command, name)
    assert name in line and BAD_FILES[name][1] in line


@pytest.mark.parametrize("command", READERS)
def test_a_directory_instead_of_a_file(refused, place, command):
    (place.here / "folder.gguf").mkdir()
    assert "irectory" in refused(command, "folder.gguf")


@pytest.mark.parametrize("command", [*READERS, "log"])
@pytest.mark.parametrize("name", ["missing.gguf", "no/such/folder/missing.gguf", "./missing.gguf"])
def test_a_missing_file(refused, command, name):
    line = refused(command, name)
    assert "missing.gguf: " in line and "no such file" in line.lower()


@pytest.mark.parametrize("command", [("log", "."), ("memory", "."), ("inspect", "/"), ("plan", "..")])
def test_other_directories(refused, command):
    assert "irectory" in refused(*command)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("command", READERS)
def test_a_pipe_is_not_waited_for(refused, place, command):
    os.mkfifo(place.here / "pipe.gguf")
    assert "pipe.gguf" in refused(command, "pipe.gguf")


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="no peak memory of a child here")
def test_a_huge_length_takes_no_memory(place):
    """Peak memory is that of a file whose fault is seen at its first byte; and every such file is refused."""
    (place.here / "plain.gguf").write_bytes(BAD_FILES["random.gguf"][0])
    _, plain = peak(place, "inspect", "plain.gguf")
    for name, content in HUGE_FILES.items():
        (place.here / name).write_bytes(content)
        err, used = peak(place, "inspect", name)
        assert err.count("\n") == 1 and name in err and "Traceback" not in err, err
        assert used < plain + (16 << 10), f"{name}: {used:,} KiB, {plain:,} KiB for a plain refusal"


def peak(place, *words: str) -> tuple[str, int]:
    """stderr and the peak resident memory, in KiB as Linux counts it, of a command refused at exit 2."""
    child = place.start(*words)
    assert child.stderr is not None and child.stdout is not None
    err = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    child.stdout.close()
    assert child.returncode == 2, err
    return err, usage.ru_maxrss


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("name", HUGE_FILES)
def test_a_huge_length(refused, place, command, name):
    (place.here / name).write_bytes(HUGE_FILES[name])
    line = refused(command, name)
    assert name in line or (command == "memory" and "this GGUF has no llama.block_count" in line)
