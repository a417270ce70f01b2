"""MODEL arguments: what each is taken for, how ambiguities end, and that no text breaks or escapes anything."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gezel_rules.catalog import has, names
from gezel_rules.catalog.references import DEFAULT_QUANT, Reference, file_name, parse_reference
from gezel_rules.errors import BadInput
from gezel_rules.places import catalog_dir


def shipped(model: str) -> bool:
    return has(catalog_dir(), model)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("qwen3-8b", Reference("catalog", "qwen3-8b")),
        ("not-there-yet", Reference("catalog", "not-there-yet")),
        ("model.gguf", Reference("file", "model.gguf")),
        ("Model.GGUF", Reference("file", "Model.GGUF")),
        ("./qwen3-8b", Reference("file", "./qwen3-8b")),
        ("/models/qwen3-8b", Reference("file", "/models/qwen3-8b")),
        ("models/small.gguf", Reference("file", "models/small.gguf")),
        ("a/b/c", Reference("file", "a/b/c")),
        ("..", Reference("file", "..")),
        ("-x.gguf", Reference("file", "./-x.gguf")),
        (r"C:\models\small.gguf", Reference("file", r"C:\models\small.gguf")),
        ("C:/models/small", Reference("file", "C:/models/small")),
        ("user/repo", Reference("hub", "user/repo", DEFAULT_QUANT)),
        ("user/repo:q8_0", Reference("hub", "user/repo", "Q8_0")),
        ("user/repo:UD-q4_K_xl", Reference("hub", "user/repo", "UD-Q4_K_XL")),
        ("unsloth/Qwen3.5-9B-MTP-GGUF:f16", Reference("hub", "unsloth/Qwen3.5-9B-MTP-GGUF", "F16")),
        ("hf://user/repo", Reference("hub", "user/repo", DEFAULT_QUANT)),
        ("HF://user/repo:iq4_xs", Reference("hub", "user/repo", "IQ4_XS")),
        ("hf://user/repo/deep/small.gguf", Reference("hub", "user/repo", file="deep/small.gguf")),
        ("hf://user/repo@0123abcd/small.gguf", Reference("hub", "user/repo", file="small.gguf", revision="0123abcd")),
        ("hf://user/repo@main:q8_0", Reference("hub", "user/repo", "Q8_0", revision="main")),
        ("hf://user/repo@refs%2Fpr%2F1:q8_0", Reference("hub", "user/repo", "Q8_0", revision="refs/pr/1")),
        ("hf://user/repo/big/", Reference("hub", "user/repo", folder="big")),
        ("hf://user/repo@v1/a/b:q8_0", Reference("hub", "user/repo", "Q8_0", revision="v1", folder="a/b")),
        ("user/repo/big:q8_0", Reference("hub", "user/repo", "Q8_0", folder="big")),
        ("user/repo/big:x.gguf", Reference("file", "user/repo/big:x.gguf")),
        ("file:///models/small%20one.gguf", Reference("file", "/models/small one.gguf")),
        ("file://localhost/models/small.gguf", Reference("file", "/models/small.gguf")),
        ("file:///C:/models/small.gguf", Reference("file", "C:/models/small.gguf")),
        (
            "https://example.org/x/small.gguf?download=true",
            Reference("url", "https://example.org/x/small.gguf?download=true"),
        ),
        ("http://127.0.0.1:8080/small.gguf", Reference("url", "http://127.0.0.1:8080/small.gguf")),
    ],
)
def test_what_it_is_taken_for(here: Path, text: str, reference: Reference) -> None:
    assert parse_reference(text, shipped) == reference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a model: '' (a catalog id, a model on disk, user/repo[:quant] or a URL)"),
        ("a\nb", r"not a model: 'a\nb' (a catalog id, a model on disk, user/repo[:quant] or a URL)"),
        ("Qwen3-8B", "not a model: 'Qwen3-8B'; did you mean 'qwen3-8b'?"),
        ("user/repo:", "not a model: 'user/repo:': after ':' comes a quant such as Q4_K_M"),
        ("user/repo:Q4 K", "not a model: 'user/repo:Q4 K': after ':' comes a quant such as Q4_K_M"),
        ("us er/repo", "not a model: 'us er/repo' is neither a file nor user/repo[:quant]"),
        ("user/", "not a model: 'user/' is neither a file nor user/repo[:quant]"),
        ("user/..", "not a model: 'user/..' is neither a file nor user/repo[:quant]"),
        ("hf://repo", "not a model: 'hf://repo' must be hf://user/repo, with :quant or /file if need be"),
        ("hf://user/repo/x.safetensors", "not a model: 'hf://user/repo/x.safetensors': the file must end in .gguf"),
        (
            "hf://user/repo/../x.gguf",
            "not a model: 'hf://user/repo/../x.gguf': the file must not start with '.' (in '..')",
        ),
        ("hf://user/repo/", "not a model: 'hf://user/repo/': the file is empty (in '')"),
        ("user/repo/../x:q8_0", "not a model: 'user/repo/../x:q8_0': the folder must not start with '.' (in '..')"),
        ("hf://user/repo/:q8_0", "not a model: 'hf://user/repo/:q8_0': the folder is empty (in '')"),
        (
            "hf://user/repo@a..b",
            "not a model: 'hf://user/repo@a..b': the revision must be a commit, tag or branch name",
        ),
        (
            "s3://bucket/x.gguf",
            "not a model: 's3://bucket/x.gguf': unknown scheme 's3' (hf, file, http and https are known)",
        ),
        (
            "file://models/x.gguf",
            "not a model: 'file://models/x.gguf' must be file:// and an absolute path, percent-encoded",
        ),
        ("file:///x%00.gguf", "not a model: 'file:///x%00.gguf' has control or invisible characters"),
        ("https://example.org/", "not a model: 'https://example.org/' names no file"),
        (
            "https://example.org/x.bin",
            "not a model: 'https://example.org/x.bin': the file's name 'x.bin' must end in .gguf",
        ),
        (
            "https://example.org/%2E%2E%2Fx.gguf",
            "not a model: 'https://example.org/../x.gguf': the file's name '../x.gguf' must be a plain file name,"
            " without '/' or '\\'",
        ),
    ],
)
def test_what_is_none_is_one_line(here: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_reference(text, shipped)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter2@example.org/x.gguf",
        "https://hunter2@example.org/x.gguf",
        "https://example.org/x.bin?X-Amz-Signature=hunter2",
        "https://example.org/x.bin#hunter2",
        "https://me:hunter2@[bad/x.gguf",
    ],
)
def test_no_secret_of_a_url_is_repeated(here: Path, url: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_reference(url)
    assert "hunter2" not in str(caught.value)


def test_a_catalog_id_comes_before_a_file_of_that_name(here: Path) -> None:
    (here / "qwen3-8b").write_bytes(b"")
    assert parse_reference("qwen3-8b", shipped).kind == "catalog"
    assert parse_reference("qwen3-8b") == Reference("file", "qwen3-8b")
    assert parse_reference(str(Reference("file", "qwen3-8b")), shipped) == Reference("file", "./qwen3-8b")


def test_a_file_that_exists_comes_before_a_repository_of_that_name(here: Path) -> None:
    assert parse_reference("user/repo").kind == "hub"
    (here / "user").mkdir()
    (here / "user" / "repo").write_bytes(b"")
    assert parse_reference("user/repo") == Reference("file", "user/repo")
    assert parse_reference("hf://user/repo").kind == "hub"


def test_a_name_in_upper_case_is_a_file_when_there_is_one(here: Path) -> None:
    (here / "My Model").write_bytes(b"")
    assert parse_reference("My Model") == Reference("file", "My Model")


def test_the_home_directory_is_filled_in(here: Path) -> None:
    assert parse_reference("~/x.gguf") == Reference("file", f"{here}/home/x.gguf")
    assert parse_reference("~nobody-here/x.gguf").kind == "file"


def test_the_file_a_reference_names() -> None:
    assert file_name(parse_reference("https://example.org/a/small%20one.gguf?x=1")) == "small one.gguf"
    assert file_name(parse_reference("hf://user/repo/deep/small.gguf")) == "small.gguf"
    assert file_name(parse_reference("user/repo")) == ""


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            ["hf://", "file://", "https://", "hf.co/", "/tree/main/", "user/repo", ":", "@", "/", "\\", "..", ".", "~"]
        ),
        st.sampled_from([".gguf", "q8_0", "qwen3-8b", "C:", "%2e", "%2F", "%00", "[", "]", "?", "#", " ", "\n", "-"]),
        st.text(max_size=6),
    ),
    max_size=8,
).map("".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500)
@given(pieces)
def test_any_text_is_understood_or_refused_and_reads_back(here: Path, text: str) -> None:
    try:
        reference = parse_reference(text, shipped)
    except BadInput as error:
        assert len(str(error).splitlines()) == 1
        return
    again = parse_reference(str(reference), shipped)
    assert str(again) == str(reference)
    if reference.kind == "file":
        assert PurePosixPath(again.name) == PurePosixPath(reference.name)
        assert not reference.name.startswith("-")
    else:
        assert again == reference
    if reference.kind == "catalog":
        assert names.id_fault(reference.name) == ""
    if reference.kind == "hub":
        assert names.repo_fault(reference.name) == ""
        assert bool(reference.quant or reference.folder) != bool(reference.file)
        for path in filter(None, (reference.file, reference.folder)):
            assert names.relative_path_fault(path) == ""
    if reference.kind == "url":
        assert names.file_name_fault(file_name(reference)) == ""


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}/[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True),
)
def test_the_case_of_a_quant_does_not_matter(repo: str, quant: str) -> None:
    spellings = {parse_reference(f"hf://{repo}:{spelled}") for spelled in (quant, quant.lower(), quant.upper())}
    assert spellings == {Reference("hub", repo, quant.upper())}
