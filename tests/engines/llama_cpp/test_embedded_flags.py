"""llama-server's command line as the embedded engine reads it; the wheel is not needed for this."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.documents.source import load_yaml
from gezel_rules.engines.llama_cpp.embedded_flags import (
    _OF_WORDS,
    _READERS,
    MIB,
    Adapter,
    Member,
    Setting,
    embedded_table,
    help_text,
    read_argv,
    version_of,
)
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.errors import BadInput
from gezel_rules.places import policies_dir
from gezel_rules.planner.policies import read_policies

HELP = Path(__file__).parents[2] / "data" / "engine-help" / "llama-server-0.6.0-dev.help.txt"
TABLE = embedded_table(read_policies(policies_dir(), FAMILY, None))


def test_every_way_a_value_is_written_can_be_read() -> None:
    """The words of the column ``takes`` are those this module knows, and each is used."""
    path = policies_dir() / "llama-cpp" / "embedded.yaml"
    takes = load_yaml(path).plain()["tables"]["embedded_flags"]["columns"]["takes"]["words"]
    assert set(takes) == {*_READERS, *_OF_WORDS, "on", "off", "experts", "all experts"}
    assert {flag.takes for flag in TABLE.flags.values()} == set(takes)


def test_a_flag_of_words_names_their_table(tmp_path: Path) -> None:
    shutil.copytree(policies_dir(), tmp_path / "policies")
    path = tmp_path / "policies" / "llama-cpp" / "embedded.yaml"
    path.write_text(path.read_text().replace("{takes: words, words: embedded_numa,", "{takes: words,"))
    with pytest.raises(BadInput, match="--numa takes words, and its row names no table of them"):
        embedded_table(read_policies(tmp_path / "policies", FAMILY, None))


def read(*argv: str) -> list[tuple[str, object]]:
    return [(setting.parameter, setting.value) for setting in read_argv(argv, TABLE)]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["-c", "4096"], [("n_ctx", 4096)]),
        (["--ctx-size", "0"], [("n_ctx", 0)]),
        (["--temp", "0.5"], [("sampling.temp", 0.5)]),
        (["-ngl", "all"], [("n_gpu_layers", -2)]),
        (["-ngl", "auto"], [("n_gpu_layers", -1)]),
        (["--n-gpu-layers", "12"], [("n_gpu_layers", 12)]),
        (["--swa-full"], [("swa_full", True)]),
        (["-nkvo"], [("no_kv_offload", True)]),
        (["-kvo"], [("no_kv_offload", False)]),
        (["--no-warmup"], [("warmup", False)]),
        (["-fit", "off"], [("fit_params", False)]),
        (["-fitt", "512,2048"], [("fit_params_target", [512 * MIB, 2048 * MIB])]),
        (["-ts", "3,1"], [("tensor_split", [3.0, 1.0])]),
        (["-to", "5"], [("timeout_read", 5), ("timeout_write", 5)]),
        (["--alias", "a,b"], [("model_alias", ["a", "b"])]),
        (["--chat-template-kwargs", '{"a": true, "b": "x"}'], [("default_template_kwargs", {"a": "true", "b": '"x"'})]),
        (["-ctk", "q8_0"], [("cache_type_k", Member("ggml_type.GGML_TYPE_Q8_0"))]),
        (["--lora", "a,b"], [("lora_adapters", [Adapter("a", 1.0), Adapter("b", 1.0)])]),
        (["--lora-scaled", "C:/a:0.5"], [("lora_adapters", [Adapter("C:/a", 0.5)])]),
        (["-ot", "a=CPU,b=CPU"], [("tensor_buft_overrides", ["a=CPU", "b=CPU"])]),
    ],
)  # fmt: skip
def test_values(argv, expected):
    assert read(*argv) == expected


def test_experts_become_tensor_rules():
    ((_, every),) = read("-cmoe")
    assert every == [r"\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"]
    ((_, two),) = read("--n-cpu-moe", "2")
    assert two == [rf"blk\.{layer}\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU" for layer in range(2)]
    assert read("--n-cpu-moe", "0") == [("tensor_buft_overrides", [])]


def test_spec_types_are_a_list_and_one_turns_on_more():
    ((parameter, types),) = read("--spec-type", "ngram-mod,draft-mtp")
    assert parameter == "speculative.types"
    assert [member.turns_on for member in types] == ["", "load_mtp"]


@pytest.mark.parametrize(
    "flag", ["--rpc", "--device", "-dev", "--hf-repo", "--models-dir", "--api-key", "--nonsense", "x"]
)
def test_what_cannot_be_honoured_is_refused_by_name(flag):
    said = f"error: invalid argument: {flag}: the embedded engine cannot honour {flag}"
    with pytest.raises(BadInput) as caught:
        read("-c", "4096", flag, "value")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-c"], 'error while handling argument "-c": expected value for argument'),
        (["-c", "many"], 'error while handling argument "-c": many: invalid literal'),
        (["--temp", "warm"], 'error while handling argument "--temp": warm: could not convert'),
        (["-ctk", "q3_9"], 'error while handling argument "-ctk": q3_9: the embedded engine knows f32, f16,'),
        (["--spec-type", "none,magic"], "the embedded engine knows none, draft-simple"),
        (["-ncmoe", "-1"], "-1: expected a number of layers"),
        (["-ncmoe", "100000000"], "expected a number of layers"),
        (["--slot-save-path", "/no/such/folder"], "not a directory"),
        (["--api-key-file", "/no/such/file"], "No such file"),
        (["--chat-template-kwargs", "[]"], "not a JSON object"),
        (["-ngl", "most"], "most: invalid literal"),
    ],
)  # fmt: skip
def test_wrong_values_are_one_line_in_llama_servers_words(argv, said):
    with pytest.raises(BadInput) as caught:
        read(*argv)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@given(st.lists(st.sampled_from([*TABLE.flags]) | st.text(max_size=8), max_size=6))
def test_no_argv_breaks_the_reader(argv):
    try:
        settings = read_argv(argv, TABLE)
    except BadInput as error:
        assert str(error).startswith("error")
    else:
        assert all(isinstance(setting, Setting) and setting.by in argv for setting in settings)


def test_files_are_read_where_llama_server_reads_them(tmp_path):
    (tmp_path / "keys").write_text("# comment\nfirst\n\n second \n")
    (tmp_path / "template").write_text("{{ messages }}")
    assert read("--api-key-file", str(tmp_path / "keys")) == [("api_keys", ["first", "second"])]
    assert read("--chat-template-file", str(tmp_path / "template")) == [("chat_template", "{{ messages }}")]
    assert read("--slot-save-path", str(tmp_path)) == [("slot_save_path", f"{tmp_path}/")]


def spellings(text: str) -> set[str]:
    """Every option name a help text defines: what stands at a line's start, before the description's column."""
    heads = (line[:39] if len(line) > 39 and line[38] == " " else line for line in text.splitlines() if line[:1] == "-")
    words = (word.rstrip(",") for head in heads if not head.startswith("-----") for word in head.split())
    return {word for word in words if word.startswith("-")}


def test_every_flag_is_one_llama_server_knows():
    assert spellings(help_text(TABLE)) - spellings(HELP.read_text()) == set()


def test_the_help_lists_exactly_what_is_honoured():
    assert spellings(help_text(TABLE)) == {*TABLE.flags, "-h", "--help", "--version", "--list-devices"}


@pytest.mark.parametrize(("build", "version"), [(11434, "0.6.0-dev"), (11549, "0.6.0-dev"), (9000, "unknown")])
def test_versions(build, version):
    assert version_of(build, TABLE) == version
