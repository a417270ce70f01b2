"""Settings from outside: read as the engine reads them. What is claimed of files and variables is tried on one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from engine_at_hand import real_llama_server
from hypothesis import given
from hypothesis import strategies as st

from gezel_rules.engines.llama_cpp.builds import engine_at, read_build
from gezel_rules.engines.llama_cpp.engine_output import parse_help
from gezel_rules.engines.llama_cpp.outside_settings import OutsideSetting, config_files, settings_outside
from gezel_rules.facts.secrets import HIDDEN, is_secret, without_secrets

HELP = parse_help((Path(__file__).parents[2] / "data/engine-help/llama-server-0.6.0-dev.help.txt").read_text())


def found(environ=None, root=Path("/nowhere"), platform="linux") -> list[OutsideSetting]:
    return settings_outside(environ or {}, root, flags=HELP.flags, variables=HELP.variables, platform=platform)


def standing(settings: list[OutsideSetting]) -> dict[str, str]:
    return {setting.option: setting.value for setting in settings if setting.stands}


def config(folder: Path, text: str) -> Path:
    path = folder / "llama.cpp/config.ini"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_nothing_set_outside():
    assert found({"PATH": "/bin", "HOME": "/nowhere", "LLAMA_CACHE": "/c"}) == []


def test_variables_are_mapped_by_the_engines_own_help():
    settings = found({"LLAMA_ARG_CTX_SIZE": "4096", "LLAMA_ARG_KV_OFFLOAD": "0", "MTMD_BACKEND_DEVICE": "X"})
    assert settings[0] == OutsideSetting(
        "--ctx-size", "4096", "environment LLAMA_ARG_CTX_SIZE", ("-c", "--ctx-size"), True
    )
    assert standing(settings) == {"--ctx-size": "4096", "--kv-offload": "0", "--mmproj-device": "X"}


def test_a_negated_variable_switches_off_whatever_its_value():
    settings = found({"LLAMA_ARG_NO_KV_OFFLOAD": "0", "LLAMA_ARG_KV_OFFLOAD": "1"})
    assert [(s.option, s.source, s.stands) for s in settings] == [
        ("--no-kv-offload", "environment LLAMA_ARG_NO_KV_OFFLOAD", True)
    ]


def test_a_variable_the_engine_does_not_read_is_said():
    (setting,) = found({"LLAMA_ARG_CTX_SIZ": "4096"})
    assert (setting.stands, setting.names, setting.why) == (False, (), "this engine does not read it")


def test_secrets_are_shown_as_set(tmp_path):
    config(tmp_path, 'api-key = hunter2\nhf-token=hunter2\nmcp-servers-json = {"t": "hunter2"}\nbad-token = hunter2\n')
    environ = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "LLAMA_API_KEY": "hunter2",
        "HF_TOKEN": "hunter2",
        "LLAMA_ARG_SECRET": "hunter2",
        "LLAMA_ARG_MODEL_URL": "https://me:hunter2@host/m.gguf?sig=hunter2",
        "LLAMA_ARG_API_KEY_FILE": "/etc/keys",
    }
    settings = found(environ)
    assert len(settings) == 9
    assert "hunter2" not in str(settings)
    assert standing(settings)["--api-key"] == HIDDEN
    assert standing(settings)["--api-key-file"] == "/etc/keys"
    assert standing(settings)["--model-url"] == "https://…@host/m.gguf?…"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("--api-key", True),
        ("LLAMA_API_KEY", True),
        ("HF_TOKEN", True),
        ("--image-max-tokens", False),
        ("--api-key-file", False),
        ("--cache-type-k", False),
        ("--mcp-servers-json", True),
        ("db.password", True),
    ],
)
def test_which_names_are_secret(name, secret):
    assert is_secret(name) is secret


def test_a_path_and_a_plain_url_are_not_touched():
    for value in ("/models/a b?c.gguf", "https://host/m.gguf", "me@host"):
        assert without_secrets(value) == value


def test_the_machines_file_the_users_file_and_the_environment(tmp_path):
    system = config(tmp_path / "etc", "ctx-size = 1\nthreads = 1 ; why\nmlock-typo = 1\n")
    user = config(tmp_path / "xdg", "[*]\nc = 2\n\n[default]\nctx-size = 3\n[elsewhere]\nc = 9\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "LLAMA_ARG_CTX_SIZE": "4"}
    by_env = "beaten by environment LLAMA_ARG_CTX_SIZE"
    assert [(s.option, s.value, s.source, s.stands, s.why) for s in found(environ, tmp_path)] == [
        ("--ctx-size", "1", f"{system}:1", False, by_env),
        ("mlock-typo", "1", f"{system}:3", False, "this engine has no such option"),
        ("--threads", "1", f"{system}:2", True, ""),
        ("-c", "2", f"{user}:2", False, by_env),
        ("--ctx-size", "3", f"{user}:5", False, by_env),
        ("--ctx-size", "4", "environment LLAMA_ARG_CTX_SIZE", True, ""),
    ]


def test_an_option_without_a_variable_is_known_by_its_name(tmp_path):
    config(tmp_path, "keep = 5\nversion = 1\n")
    assert standing(found({"XDG_CONFIG_HOME": str(tmp_path)})) == {"--keep": "5"}


def test_a_file_the_engine_cannot_parse_is_said_with_its_line(tmp_path):
    path = config(tmp_path, "threads = 2\n indented = 3\n")
    (setting,) = found({"XDG_CONFIG_HOME": str(tmp_path)})
    assert (setting.source, setting.stands) == (f"{path}:2", False)
    assert "will not start" in setting.why


def test_an_engine_that_names_no_variables_reads_nothing(tmp_path):
    config(tmp_path, "threads = 2\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "LLAMA_ARG_THREADS": "3"}
    assert settings_outside(environ, tmp_path, flags=["--threads"], variables={}) == []


def test_where_the_files_are():
    at = Path("/r")
    assert config_files({"HOME": "/h"}, at, "linux")[1] == Path("/h/.config/llama.cpp/config.ini")
    assert config_files({"HOME": "/h", "XDG_CONFIG_HOME": ""}, at, "darwin")[1] == Path(
        "/h/.config/llama.cpp/config.ini"
    )
    assert config_files({}, at, "linux") == [Path("/r/etc/llama.cpp/config.ini")]
    assert config_files({"APPDATA": "/a"}, at, "win32") == [Path("/a/llama.cpp/config.ini")]


@given(st.text(max_size=200))
def test_any_file_gives_one_line_settings(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("xdg")
    config(folder, text.encode("utf-8", "replace").decode())
    for setting in found({"XDG_CONFIG_HOME": str(folder)}):
        assert (setting.option + setting.value + setting.why).isprintable()


# What the engine itself makes of files and variables: it says its verbosity, and refuses a file it cannot parse.
FILES = {
    "before any section": ("verbosity = 4\n", {}),
    "every": ("[*]\nverbosity = 4\n", {}),
    "default": ("[default]\nverbosity = 4\n", {}),
    "default over every": ("[default]\nverbosity = 5\n[*]\nverbosity = 4\n", {}),
    "another section": ("[llama-server]\nverbosity = 4\n", {}),
    "a section twice starts anew": ("[default]\nverbosity = 5\n[default]\nthreads = 4\n", {}),
    "a key twice": ("verbosity = 2\nverbosity=4\n", {}),
    "two names, later letters win": ("verbosity = 4\nlv = 5\n", {}),
    "comment after a value": ("lv = 4 ; hi\n", {}),
    "a variable's name": ("LLAMA_ARG_LOG_VERBOSITY = 4\n", {}),
    "an option it does not know": ("bogus = 4\n", {}),
    "environment over file": ("verbosity = 4\n", {"LLAMA_ARG_LOG_VERBOSITY": "5"}),
    "indented": (" verbosity = 4\n", {}),
    "dashes": ("--verbosity = 4\n", {}),
    "no value": ("verbosity\n", {}),
}


READS = ("using config file", "failed to parse server config file")


def logged(argv: list[str], environ: dict[str, str], *expected: str) -> str:
    """What the engine logs. A thread of it writes the log, and an engine that ends at once now and then loses lines:
    it is asked a few times for one of those that ought to be there."""
    for _ in range(5):
        said = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60).stderr
        if any(line in said for line in expected):
            break
    return said


@pytest.mark.engine
@pytest.mark.parametrize("case", FILES)
def test_the_real_engine_reads_files_as_we_do(tmp_path, case):
    if Path("/etc/llama.cpp/config.ini").exists():
        pytest.skip("this machine configures its engines in /etc/llama.cpp/config.ini")
    text, variables = FILES[case]
    config(tmp_path, text)
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path), **variables}
    engine = real_llama_server()
    argv = [*engine.command, "-m", str(tmp_path / "missing.gguf")]
    said = logged(argv, environ, *READS)
    build = read_build(engine_at(engine.kind, engine.command, tmp_path / "cache", {}))
    ours = settings_outside(environ, tmp_path / "no-root", flags=build.flags, variables=build.variables)
    if not any(line in said for line in READS):
        pytest.skip("this llama-server is from before configuration files")
    if any("will not start" in setting.why for setting in ours):
        assert "failed to parse server config file" in said
        return
    names = build.variables["LLAMA_ARG_LOG_VERBOSITY"]
    level = next((s.value for s in ours if s.stands and s.names == names), "3")
    assert f"verbosity = {level} " in said


@pytest.mark.engine
def test_the_real_engine_switches_off_by_a_negated_variable(tmp_path):
    engine = real_llama_server()
    argv = [*engine.command, "-m", str(tmp_path / "missing.gguf")]

    def first_line(**environ: str) -> str:
        environ = {"HOME": str(tmp_path), **environ}
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60).stderr.splitlines()[0]

    assert first_line()[:2] == "0."
    assert first_line(LLAMA_ARG_NO_LOG_PREFIX="0", LLAMA_ARG_LOG_PREFIX="1")[:2] != "0."
