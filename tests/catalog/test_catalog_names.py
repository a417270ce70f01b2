"""Names from a catalog: whatever passes stays one visible file below its directory, on every operating system."""

from __future__ import annotations

import ntpath
import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.catalog import names

nasty = st.lists(
    st.sampled_from([*"abC.-_ /\\:~%$\0\n\u202e\u00e9<>|?*\"'", "..", "con", "lpt1", "nul"]), max_size=12
).map("".join)


@given(st.one_of(nasty, st.text(max_size=30)))
def test_an_accepted_file_name_is_one_component_everywhere(name: str) -> None:
    if names.file_name_fault(name):
        return
    assert PurePosixPath("/store/model", name).parent == PurePosixPath("/store/model")
    windows = PureWindowsPath("C:/store/model", name)
    assert windows.parent == PureWindowsPath("C:/store/model")
    assert windows.name == name
    assert not windows.is_reserved()
    assert ntpath.splitdrive(name)[0] == ""
    assert Path("/store/model", name).resolve().parent == Path("/store/model")
    assert name.isprintable() and not name.startswith((".", "-"))


@given(st.one_of(nasty, st.text(max_size=30)))
def test_an_accepted_path_stays_below(path: str) -> None:
    if not names.relative_path_fault(path):
        assert Path("/root/deep", path).resolve().is_relative_to("/root/deep")
        assert PureWindowsPath("C:/root/deep", path).is_relative_to("C:/root/deep")


FOR_EDITORS = {
    names.ID: names.id_fault,
    names.REPO: names.repo_fault,
    names.REVISION: names.revision_fault,
    names.DIGEST: names.digest_fault,
    names.DISTRIBUTION: names.distribution_fault,
    names.FILE_NAME: names.file_name_fault,
    names.RELATIVE_PATH: names.relative_path_fault,
    names.RESOURCE: names.resource_fault,
    names.ABSOLUTE_PATH: names.absolute_path_fault,
    names.URL: names.url_fault,
}
fitting = st.sampled_from(sorted(FOR_EDITORS)).flatmap(st.from_regex)
lead = st.sampled_from(
    ["", "/", "~/", "C:\\", "https://a.b/", "HTTP://[::1]:8080/", "module/", "user/", "https://a/x@"]
)


@given(st.sampled_from(sorted(FOR_EDITORS)), lead, st.one_of(nasty, fitting, st.text(max_size=30)))
def test_editors_refuse_nothing_that_is_accepted(pattern: str, start: str, rest: str) -> None:
    if not FOR_EDITORS[pattern](start + rest):
        assert re.fullmatch(pattern, start + rest)


@pytest.mark.parametrize(
    "name",
    [
        "model.gguf",
        "Qwen3-8B-Q4_K_M-00001-of-00009.gguf",
        "mmproj model (f16).gguf",
        "modèle.gguf",
        "console.gguf",
        "com10",
    ],
)
def test_usual_names_pass(name: str) -> None:
    assert names.file_name_fault(name) == ""


@pytest.mark.parametrize("name", ["AUX", "com1.gguf", "Lpt9.tar.gz", "nul .txt", "conin$", "com².x", "MANIFEST.json"])
def test_names_that_mean_something_else_do_not(name: str) -> None:
    assert names.file_name_fault(name)


@pytest.mark.parametrize(
    "repo", ["user", "user/", "/repo", "user/repo/more", "user/..", "a..b/c", ".user/repo", "us er/repo"]
)
def test_what_is_no_repository(repo: str) -> None:
    assert names.repo_fault(repo) == "must be user/repo"


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://example.org/a.gguf", True),
        ("http://127.0.0.1:8080/x/a.gguf?download=true", True),
        ("https://[::1]/a.gguf", True),
        ("https://", False),
        ("https:///a.gguf", False),
        ("file:///etc/passwd", False),
        ("https://token@example.org/a.gguf", False),
        ("https://example.org:port/a.gguf", False),
        ("https://[bad/a.gguf", False),
        ("https://example.org/ä.gguf", False),
        ("https://example.org/a\n.gguf", False),
    ],
)
def test_urls(url: str, good: bool) -> None:
    assert (names.url_fault(url) == "") is good


@given(st.text())
def test_no_text_is_too_odd_to_be_judged(text: str) -> None:
    for fault in (
        names.file_name_fault,
        names.relative_path_fault,
        names.id_fault,
        names.repo_fault,
        names.revision_fault,
        names.distribution_fault,
        names.resource_fault,
        names.url_fault,
    ):
        assert isinstance(fault(text), str)
        assert "\n" not in fault(text)
