"""Settings from the environment, --set and site files: what wins, what it beat, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.errors import BadInput
from gezel_rules.facts.setting_values import WrongValueError, value_of
from gezel_rules.facts.settings import SettingSpec, settings

WORDS = {
    spec.name: spec
    for spec in (
        SettingSpec("window", "integer", unit="tokens", minimum=1),
        SettingSpec("slots", "integer", minimum=1),
        SettingSpec("headroom", "integer", unit="bytes", minimum=0),
        SettingSpec("budget", "integer", unit="tokens", minimum=-1),
        SettingSpec("spec_type", "text", ("none", "draft-mtp", "ngram-mod")),
        SettingSpec("similarity", "number", minimum=0),
        SettingSpec("vision", "flag"),
        SettingSpec("extra_args", "list"),
        SettingSpec("draft_model", "text"),
        SettingSpec("api_key", "integer"),
    )
}


def site(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def given_by(environ=None, files=(), assignments=(), model=None):
    return settings(WORDS, environ or {}, files, assignments, model)


def value(name: str, **sources):
    return given_by(**sources)[f"settings.{name}"].value


def mistakes(**sources) -> list[str]:
    with pytest.raises(BadInput) as caught:
        given_by(**sources)
    assert all("\n" not in str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


# --- what wins ---


def test_nothing_set_is_none_for_every_setting():
    found = given_by()
    assert set(found) == {f"settings.{name}" for name in WORDS}
    assert all(fact == (None, "not set", "", (), "") for fact in found.values())


def test_precedence_and_what_was_beaten(tmp_path):
    machine = site(
        tmp_path / "machine.yaml",
        "settings:\n  window: 1k\n  slots: 1\nmodels:\n  m: {window: 2k}\n  other: {window: 9}\n",
    )
    user = site(tmp_path / "user.yaml", "settings:\n  window: 3k\nmodels:\n  m:\n    window: 4k\n")
    found = given_by(
        environ={"GEZEL_WINDOW": "7k"},
        files=(machine, user),
        assignments=("window=5k", "window=6k"),
        model="m",
    )
    window = found["settings.window"]
    assert (window.value, window.source, window.level) == (7168, "environment GEZEL_WINDOW", "environment")
    assert window.beaten == (
        ("operator", 6144, "--set"),
        ("operator", 5120, "--set"),
        ("operator", 4096, f"site {user}:5"),
        ("operator", 2048, f"site {machine}:5"),
        ("machine", 3072, f"site {user}:2"),
        ("machine", 1024, f"site {machine}:2"),
    )
    assert found["settings.slots"] == (1, f"site {machine}:3", "machine", (), "")


def test_a_section_of_another_model_does_not_count(tmp_path):
    file = site(tmp_path / "site.yaml", "models:\n  a: {window: 2k}\n")
    assert value("window", files=(file,), model="b") is None
    assert value("window", files=(file,)) is None
    assert value("window", files=(file,), model="a") == 2048


def test_an_explicit_none_is_a_value(tmp_path):
    file = site(tmp_path / "site.yaml", "settings: {spec_type: draft-mtp}\nmodels: {m: {spec_type: none}}\n")
    fact = given_by(files=(file,), model="m")["settings.spec_type"]
    assert fact.value == "none"
    assert fact.beaten[0][1] == "draft-mtp"


def test_an_empty_variable_and_a_missing_or_empty_file_set_nothing(tmp_path):
    empty = site(tmp_path / "empty.yaml", "# nothing yet\n")
    files = (tmp_path / "missing.yaml", empty, empty / "below-a-file.yaml")
    assert value("window", environ={"GEZEL_WINDOW": ""}, files=files) is None


@pytest.mark.parametrize("spelling", ["spec_type", "spec-type", "settings.spec_type"])
def test_spellings_of_a_name(spelling):
    assert value("spec_type", assignments=(f"{spelling}=ngram-mod",)) == "ngram-mod"


# --- what a value may be ---


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("window", "65536", 65536),
        ("window", "64k", 65536),
        ("window", "64 K", 65536),
        ("window", "1M", 1 << 20),
        ("window", "0.5k", 512),
        ("window", "65,536", 65536),
        ("window", "65_536", 65536),
        ("headroom", "24 GiB", 24 << 30),
        ("headroom", "24GB", 24 * 10**9),
        ("headroom", "24g", 24 << 30),
        ("headroom", "1.5 GiB", 3 << 29),
        ("headroom", "500 MB", 500 * 10**6),
        ("headroom", "0", 0),
        ("headroom", "10 B", 10),
        ("budget", "-1", -1),
        ("slots", "2", 2),
        ("similarity", "0.5", 0.5),
        ("vision", "on", True),
        ("vision", "False", False),
        ("vision", "0", False),
        ("extra_args", "--mlock --override-kv 'a b=int:1'", ["--mlock", "--override-kv", "a b=int:1"]),
        ("draft_model", "/m/drafter = 1.gguf", "/m/drafter = 1.gguf"),
    ],
)
def test_values_from_text(name, text, expected):
    assert value(name, assignments=(f"{name}={text}",)) == expected
    assert value(name, environ={f"GEZEL_{name.upper()}": text}) == expected


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("window: 64k", "window", 65536),
        ("window: 65536", "window", 65536),
        ("headroom: 24 GiB", "headroom", 24 << 30),
        ("similarity: 1", "similarity", 1.0),
        ("vision: true", "vision", True),
        ("vision: on", "vision", True),
        ("extra_args: [--mlock, --threads, 4]", "extra_args", ["--mlock", "--threads", "4"]),
        ("draft_model: 1.10", "draft_model", "1.10"),
    ],
)
def test_values_from_a_site_file(tmp_path, line, name, expected):
    assert value(name, files=(site(tmp_path / "s.yaml", f"settings:\n  {line}\n"),)) == expected


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("window=big", "--set: 'window' must be a whole number of tokens (65536 or 64k), not 'big'"),
        ("window=", "--set: 'window' must be a whole number of tokens (65536 or 64k), not ''"),
        ("window=1.5", "--set: 'window' must be a whole number of tokens (65536 or 64k), not '1.5'"),
        ("window=1e5", "--set: 'window' must be a whole number of tokens (65536 or 64k), not '1e5'"),
        ("window=24 GiB", "--set: 'window' must be a whole number of tokens (65536 or 64k), not '24 GiB'"),
        ("window=0", "--set: 'window' must be a whole number of tokens (65536 or 64k), at least 1, not '0'"),
        ("slots=99999999999999999999", "--set: 'slots' must be a whole number, not '99999999999999999999'"),
        ("slots=9223372036854775808", "--set: 'slots' must be a whole number, not '9223372036854775808'"),
        ("slots=2k", "--set: 'slots' must be a whole number, not '2k'"),
        ("headroom=24 iB", "--set: 'headroom' must be a whole number of bytes (24 GiB, 500 MB or 1024), not '24 iB'"),
        ("similarity=nan", "--set: 'similarity' must be a number, not 'nan'"),
        ("vision=maybe", "--set: 'vision' must be on or off, not 'maybe'"),
        ("extra_args='open", "--set: 'extra_args' must be a list of words: no closing quotation"),
        (
            "spec_type=draft-mpt",
            "--set: 'spec_type' must be one of none, draft-mtp, ngram-mod, not 'draft-mpt'; did you mean 'draft-mtp'?",
        ),
        ("windwo=1", "--set: no setting 'windwo'; did you mean 'window'?"),
        ("window", "--set needs NAME=VALUE"),
        ("api_key=hunter2", "--set: 'api_key' must be a whole number, not what was given"),
    ],
)  # fmt: skip
def test_a_wrong_assignment_is_one_line(assignment, said):
    assert mistakes(assignments=(assignment,)) == [said]


def test_a_wrong_variable_is_one_line():
    assert mistakes(environ={"GEZEL_SLOTS": "two"}) == [
        "environment GEZEL_SLOTS: 'slots' must be a whole number, not 'two'"
    ]


def test_a_variable_that_looks_like_a_setting_misspelt_is_said_and_a_strangers_is_not():
    assert mistakes(environ={"GEZEL_WINDWO": "1"}) == [
        "environment GEZEL_WINDWO: no such setting; did you mean 'GEZEL_WINDOW'?"
    ]
    assert value("window", environ={"GEZEL_ACCOUNT_URL": "x", "GEZEL_STORE": "/s", "GEZELWINDOW": "3"}) is None


def test_a_secret_is_never_in_an_error(tmp_path):
    file = site(tmp_path / "s.yaml", "settings: {api_key: hunter2}\n")
    said = mistakes(environ={"GEZEL_API_KEY": "hunter2"}, files=(file,), assignments=("api_key=hunter2", "hunter2"))
    assert len(said) == 4
    assert not any("hunter2" in line for line in said)


def test_control_characters_do_not_reach_the_terminal():
    (said,) = mistakes(assignments=("window=\x1b[2J",))
    assert said.isprintable()


def test_everything_wrong_with_a_site_file_at_once_each_with_its_place(tmp_path):
    file = site(
        tmp_path / "site.yaml",
        "settings:\n  window: [1]\n  slotz: 2\n  spec_type: null\n  vision: 3\n"
        "models:\n  a: 7\n  b:\n    slots: 0\nmore: 1\n",
    )
    assert mistakes(files=(file,)) == [
        f"{file}:10:1: a site file has no key 'more'; did you mean 'models'?",
        f"{file}:2:11: 'window' must be a whole number of tokens (65536 or 64k), not a list",
        f"{file}:3:3: no setting 'slotz'; did you mean 'slots'?",
        f"{file}:4:14: 'spec_type' must be one of none, draft-mtp, ngram-mod, not nothing",
        f"{file}:5:11: 'vision' must be on or off, not '3'",
        f"{file}:7:6: the settings of 'a' must be a mapping",
        f"{file}:9:12: 'slots' must be a whole number, at least 1, not '0'",
    ]


def test_broken_yaml_and_a_directory(tmp_path):
    (said,) = mistakes(files=(site(tmp_path / "s.yaml", "settings: {window: 1\n"),))
    assert said.startswith(f"{tmp_path}/s.yaml:2:1: not valid YAML")
    assert mistakes(files=(tmp_path,)) == [f"{tmp_path}: is a directory, not a file"]


def test_a_site_file_that_is_there_and_cannot_be_read_is_said(tmp_path):
    loop = tmp_path / "s.yaml"
    loop.symlink_to(loop)
    assert mistakes(files=(loop,)) == [f"{loop}: too many levels of symbolic links"]


@given(st.integers(0, 10**6), st.sampled_from(["k", "M", "K", "m"]), st.sampled_from(["", " "]))
def test_token_counts_scale_by_1024(number, scale, space):
    expected = number << {"k": 10, "m": 20}[scale.lower()]
    assert value_of(SettingSpec("w", "integer", unit="tokens"), f"{number}{space}{scale}") == expected


@given(st.integers(-(1 << 62), 1 << 62))
def test_whole_numbers_in_the_spellings_traces_use(number):
    spec = SettingSpec("n", "integer")
    assert value_of(spec, str(number)) == value_of(spec, f"{number:,}") == value_of(spec, f"{number:_}") == number


@given(st.decimals(0, 1000, places=3), st.sampled_from([("KiB", 2**10), ("MB", 10**6), ("GiB", 2**30), ("T", 2**40)]))
def test_byte_sizes_are_exact_or_refused(number, unit):
    spec, exact = SettingSpec("b", "integer", unit="bytes"), number * unit[1]
    if exact == int(exact):
        assert value_of(spec, f"{number:f} {unit[0]}") == int(exact)
    else:
        with pytest.raises(WrongValueError):
            value_of(spec, f"{number:f} {unit[0]}")


@given(
    st.sampled_from(list(WORDS.values())),
    st.text(max_size=30) | st.none() | st.booleans() | st.floats() | st.lists(st.none()),
)
def test_any_value_is_taken_or_refused_in_one_printable_line(spec, raw):  # fmt: skip
    try:
        value_of(spec, raw)
    except WrongValueError as wrong:
        assert str(wrong).isprintable()
