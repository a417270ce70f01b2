"""Pipes that close, disks that are full, terminals that know little, Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODEL, HOST = "gemma-3-270m", ("--host", "rtx-4090")


@pytest.mark.parametrize(
    "words", [["explain", MODEL, *HOST], ["plan", MODEL, *HOST, "--json"], ["policy", "show", "--json"], ["--help"]],
    ids=" ".join,
)  # fmt: skip
def test_a_reader_that_has_enough(place, words):
    """``| head -1``: the pipe closes early, nobody complains."""
    child = place.start(*words)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.read(1)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(60) == 0


@pytest.mark.parametrize("words", [["explain", MODEL, *HOST], ["policy", "show"]])
def test_a_reader_that_never_reads(place, words):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "gezel_rules.cli", *words], stdout=theirs, stderr=subprocess.PIPE, timeout=60
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_disk_that_is_full(place):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "gezel_rules.cli", "explain", MODEL, *HOST], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "gezel-rules: output: no space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="closing a stream for a child needs a POSIX shell")
def test_closed_streams(place):
    """A daemon's surroundings: no stdout, no stdin; the status still tells."""
    for words, status in ((f"plan {MODEL} {' '.join(HOST)}", 0), ("plan no-such-model", 2)):
        line = f'"{sys.executable}" -m gezel_rules.cli {words} >&- <&-'
        done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == status and "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_terminal_that_knows_only_ascii(place):
    said = place.run("plan", MODEL, *HOST, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert said.status == 0 and said.err == "" and said.out.isascii()


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to one child needs POSIX")
def test_ctrl_c_is_130_without_a_word(place):
    """``log -`` waits for its input; it is interrupted once it has taken some."""
    import fcntl
    import struct
    import termios

    child = subprocess.Popen(
        [sys.executable, "-m", "gezel_rules.cli", "log", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.write(b"first line\n")
    child.stdin.flush()
    deadline = time.monotonic() + 60
    while struct.unpack("i", fcntl.ioctl(child.stdin, termios.FIONREAD, bytes(4)))[0]:
        assert time.monotonic() < deadline, "nobody reads"
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to one child needs POSIX")
def test_ctrl_c_while_a_download_stalls(place):
    """The server accepts, promises a file and sends only its start."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = place.start("pull", f"http://127.0.0.1:{server.getsockname()[1]}/x.gguf")
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nGGUF")
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and out == b"" and b"Traceback" not in err
