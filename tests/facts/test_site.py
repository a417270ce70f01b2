"""What is said of site files to editors: every setting there is, and nothing refused that the reader takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gezel_rules.documents.json_schema import json_schema
from gezel_rules.errors import BadInput
from gezel_rules.facts.setting_values import FLAGS
from gezel_rules.facts.settings import SettingSpec
from gezel_rules.facts.settings import settings as read_settings
from gezel_rules.facts.site import site
from gezel_rules.facts.vocabulary import Word

WORDS = [
    Word("settings.window", "integer", "context window", "", "tokens", minimum=1),
    Word("settings.slots", "integer", "conversations", "", minimum=0),
    Word("settings.headroom", "integer", "memory kept free", "", "bytes"),
    Word("settings.share", "number", "a share", ""),
    Word("settings.vision", "flag", "load the projector", ""),
    Word("settings.kv_type", "text", "precision", "", rows_of="kv_types"),
    Word("settings.draft_model", "text", "a path", ""),
    Word("settings.extra_args", "list", "arguments", ""),
]
SCHEMA = json_schema("site.schema.json", "Site", site(WORDS))
SPECS = {
    name: SettingSpec(name, word.kind, ("f16", "q8_0") if word.rows_of else None, word.unit, word.minimum)
    for word in WORDS
    for name in [word.name.removeprefix("settings.")]
}
single = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**62), st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=6), st.sampled_from(["64k", "24 GiB", " 1,024 ", "1.5m", "f16", "q8_0", "x y", " On", "0"]),
    st.sampled_from(sorted(FLAGS)).map(str.upper),
)  # fmt: skip


def taken(path: Path, file: Any) -> bool:
    path.write_text(json.dumps(file))
    try:
        read_settings(SPECS, {}, [path], [])
    except BadInput:
        return False
    return True


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(SPECS)), st.one_of(single, st.lists(single, max_size=3)))
def test_editors_refuse_nothing_that_is_read(tmp_path: Path, name: str, value: Any) -> None:
    for file in ({"settings": {name: value}}, {"models": {"some-model": {name: value}}}):
        if taken(tmp_path / "site.yaml", file):
            assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(file)] == []


@pytest.mark.parametrize(
    "file",
    [
        {"settings": {"windw": 1}},
        {"settings": {"window": 0}},
        {"settings": {"slots": "2k"}},
        {"settings": {"vision": "maybe"}},
        {"settings": {"kv_type": ["f16"]}},
        {"settings": {"draft_model": " "}},
        {"settings": None},
        {"models": {"some-model": {"window": True}}},
        {"models": {"some-model": 3}},
        {"setings": {}},
    ],
)
def test_what_nobody_would_read_is_refused_by_both(tmp_path: Path, file: Any) -> None:
    assert not taken(tmp_path / "site.yaml", file)
    assert not Draft202012Validator(SCHEMA).is_valid(file)


def test_every_setting_says_what_it_means() -> None:
    told = SCHEMA["$defs"]["settings"]["properties"]
    assert {name: told[name]["description"] for name in ("window", "headroom", "kv_type")} == {
        "window": "Context window, in tokens.",
        "headroom": "Memory kept free, in bytes.",
        "kv_type": "Precision.",
    }
