"""A log policy that cannot be right is refused at load, all problems at once, each with its place."""

from __future__ import annotations

import json
import shutil

import jsonschema
import pytest
from log_cases import shipped

from gezel_rules.documents.source import load_yaml
from gezel_rules.engines.llama_cpp.family import FAMILY
from gezel_rules.errors import BadInput
from gezel_rules.logs import load as logs_load
from gezel_rules.logs.lines import unwrap
from gezel_rules.logs.load import read_logs
from gezel_rules.logs.model import Condition, holds, range_of, version_of
from gezel_rules.logs.sealed import log_policy
from gezel_rules.places import policies_dir, schemas_dir
from gezel_rules.planner.policies import read_policies
from gezel_rules.policy.files import log_policy_paths
from gezel_rules.policy.sources import read_sources

HEAD = "policy: logs/own\nversion: 1.0.0\nsummary: Words.\n"
GOOD = "patterns:\n  - {id: lost, gpu: no-devices, needs: no GPU here, match: '^no GPU here', matches: [no GPU here]}\n"


@pytest.fixture
def load(tmp_path):
    def write(text, backends=None):
        directory = tmp_path / "policies" / "logs"
        directory.mkdir(parents=True, exist_ok=True)
        directory.joinpath("own.yaml").write_text(HEAD + text)
        return loaded(directory.parent, backends)

    return write


def loaded(directory, backends=None):
    """The log policies of a directory, for the family llama-cpp."""
    sources = read_sources(log_policy_paths(directory), directory, ["llama-cpp"])
    return read_logs(sources.of("llama-cpp"), backends or {})


def problems(load, text, backends=None):
    with pytest.raises(BadInput) as caught:
        load(text, backends)
    return [str(problem) for problem in caught.value.problems]


def test_a_good_policy_loads(load):
    policy = load(GOOD)
    assert policy.patterns["lost"].place == ("policies/logs/own.yaml", 5)
    assert policy.versions == {"logs/own": "1.0.0"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("'^no GPU here'", "'^no (GPU here'"), "5:65: not a regular expression: missing )"),
        (GOOD.replace("'^no GPU here'", "'^no (?!CPU)'"), "5:65: not a regular expression: invalid perl operator '"),
        (GOOD.replace("'^no GPU here'", r"'(\w) \1'"), r"5:66: not a regular expression: invalid escape sequence '\1'"),
        ("words: {gpu: 'GPU'}\n" + GOOD.replace("^no GPU", "no {{gpu}} ["), "6:72: not a regular expression: missing "),
        ("words: {gpu: x}\n" + GOOD.replace("^no", "{{gpuu}}"), "unknown word 'gpuu'; did you mean 'gpu'?"),
        (GOOD.replace("[no GPU here]", "[some GPU here]"), "5:86: 'lost' does not match this line"),
        (GOOD.replace("here]", "here], ignores: [no GPU here at all]"), "'lost' matches this line and must not"),
        (GOOD.replace("[no GPU here]", "[]"), "'matches' must name at least one line"),
        (GOOD.replace("needs: no GPU here", "needs: some GPU"), "none of the 'needs' literals of 'lost'"),
        (GOOD.replace("needs: no GPU here, ", ""), "a pattern has no 'needs'"),
        (GOOD.replace("needs: no GPU here", "needs: GPU"), "'needs' must have at least 4 characters"),
        (GOOD.replace("needs: no GPU here", "needs: 'a\"GPU'"), "'needs' may hold no double quotes"),
        (GOOD.replace("no-devices", "no-device"), "5:21: unknown verdict 'no-device'; did you mean 'no-devices'?"),
        (GOOD.replace("gpu: no-devices", "failure: lost-gpu"), "unknown failure class 'lost-gpu'"),
        (GOOD.replace("gpu:", "gqu:"), "a pattern has no key 'gqu'; did you mean 'gpu'?"),
        (GOOD + GOOD.split("\n", 1)[1], "id 'lost' is already used at policies/logs/own.yaml:5"),
        (GOOD.replace("gpu: no-devices", "engine: soon"), "'engine' must be a range such as >=0.4 or <b5400"),
        (GOOD.replace("gpu: no-devices", "levels: [eror]"), "unknown level 'eror'; did you mean 'error'?"),
        (GOOD.replace("gpu: no-devices", "until: [gone]"), "'lost' speaks of 'gone', which is no evidence"),
        (GOOD.replace("gpu: no-devices", "backends: [cudda]") + "backends: [cuda]\n", "unknown backend 'cudda'; did"),
        (GOOD + "rules:\n  - {id: r, gpu: unknown, any: [los]}\n", "'r' speaks of 'los', which is no evidence; did"),
        (GOOD + "rules:\n  - {id: r, gpu: unknown, any: [{al: [lost]}]}\n", "a condition has no key 'al'"),
        (GOOD + "failures:\n  - {id: f, says: x, advice: y, all: [{any: [losst]}]}\n", "'f' speaks of 'losst'"),
        (GOOD + "failures:\n  - {id: f, says: x}\n", "a failure class has no 'advice'"),
        (GOOD + "exits:\n  - {id: e, status: [minus four]}\n", "'status': expected whole number, not text"),
        (GOOD + "settled_by: [redy]\n", "'settled_by' speaks of 'redy'"),
        (GOOD.replace("gpu: no-devices", "detail: 'no {cards}'"), "5:24: 'lost' has no group 'cards'"),
        (GOOD + "without_gpu: [cpu]\n", "unknown backend 'cpu'"),
        (GOOD + "prefixes:\n  - {id: p, match: 'x: ', example: 'y: z'}\n", "the expression does not match this"),
        (GOOD + "quotes:\n  - {id: q, needs: quote, opens: '>$', then: '^x', lines: 9, example: x}\n", "not match"),
        (GOOD + "ignored:\n  - {match: no, example: no}\n", "an entry has no 'id'"),
        (GOOD + "ignored:\n  - {id: i, match: no, example: no}\n", "this line is among the 'ignored' ones"),
        (GOOD + "shoes: []\n", "a log policy file has no key 'shoes'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(load, text, said):
    found = problems(load, text)
    assert any(said in line for line in found), found
    assert all(line.startswith("policies/logs/own.yaml:") for line in found)


def test_all_problems_of_all_files_at_once(tmp_path):
    shutil.copytree(policies_dir(), tmp_path / "policies")
    directory = tmp_path / "policies" / "llama-cpp" / "logs"
    for name, before, after in (
        ("gpu-used", "gpu: in-use", "gpu: in-us"),
        ("model", "needs: [MTP layers", "needs: [MTP"),
    ):
        path = directory / f"{name}.yaml"
        path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(BadInput) as caught:
        loaded(tmp_path / "policies", {"cuda": True, "rocm": True, "vulkan": True, "sycl": True, "cpu": False})
    assert {problem.span.file for problem in caught.value.problems} == {
        "policies/llama-cpp/logs/gpu-used.yaml",
        "policies/llama-cpp/logs/model.yaml",
    }


def test_a_file_is_named_after_its_policy(tmp_path):
    directory = tmp_path / "policies" / "logs"
    directory.mkdir(parents=True)
    directory.joinpath("other.yaml").write_text(HEAD + GOOD)
    with pytest.raises(BadInput, match=r"other.yaml:1:9: policy must be named after its file: 'logs/other'"):
        loaded(directory.parent)


def test_no_files_is_an_error(tmp_path):
    shutil.copytree(policies_dir(), tmp_path / "policies", ignore=shutil.ignore_patterns("logs"))
    with pytest.raises(BadInput, match="no log policy files"):
        log_policy(read_policies(tmp_path / "policies", FAMILY, None))


def test_what_is_kept_is_what_was_read(tmp_path, monkeypatch):
    """The second time nothing is read and proved again, and the policy is the same."""
    first = log_policy(read_policies(policies_dir(), FAMILY, tmp_path))
    monkeypatch.setattr(logs_load, "read_logs", None)
    again = log_policy(read_policies(policies_dir(), FAMILY, tmp_path))
    assert again == first
    assert again.patterns["ready"].match.search("srv  llama_server: model loaded")
    (kept,) = tmp_path.glob("logs-*.json")
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(TypeError):  # cut short: it is read again, which is switched off here
        log_policy(read_policies(policies_dir(), FAMILY, tmp_path))


def test_backends_are_said_once(load):
    """Those that a build here may compute on are rows of a table; a log policy adds others."""
    table = {"cuda": True, "cpu": False}
    policy = load(GOOD + "backends: [hip, blas]\nwithout_gpu: [blas]\n", table)
    assert policy.backends == {"cuda", "cpu", "hip", "blas"}
    assert policy.without_gpu == {"cpu", "blas"}
    (said,) = problems(load, GOOD + "backends: [hip, cuda]\n", table)
    assert said.endswith("'cuda' is a row of the table 'backends' already")


def test_a_family_gives_classes_of_every_family_their_place(tmp_path):
    directory = tmp_path / "policies"
    shared = "failures:\n  - {id: killed, says: a, advice: b}\n  - {id: crashed, says: a, advice: b}\n"
    own = "failures:\n  - {id: worst, says: a, advice: b}\n  - {id: crashed}\n  - {id: vague, says: a, advice: b}\n"
    for name, text in {"logs/own": HEAD + shared, "llama-cpp/logs/own": f"{HEAD}engine: llama-cpp\n{own}"}.items():
        path = directory / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text.replace("policy: logs/own", f"policy: {name}"))
    assert [failure.id for failure in loaded(directory).failures] == ["worst", "crashed", "vague", "killed"]
    path.write_text(path.read_text().replace("{id: crashed}", "{id: crushed}"))
    with pytest.raises(BadInput, match=r"no failure class 'crushed' to stand here; did you mean 'crashed'\?"):
        loaded(directory)


def test_words_are_filled_in(load):
    policy = load(
        "words: {gpu: 'CUDA|ROCm'}\n" + GOOD.replace("no GPU here", "no CUDA here").replace("^no CUDA", "^no {{gpu}}")
    )
    assert policy.patterns["lost"].match.text == "^no (?:CUDA|ROCm) here"


def test_a_word_at_fault_is_one_problem(load):
    """However many patterns use it; they are not judged without it."""
    twice = GOOD.replace("^no", "{{gpu}}") + GOOD.split("\n", 1)[1].replace("lost", "gone").replace("^no", "{{gpu}}")
    (said,) = problems(load, "words: {gpu: 'a(b'}\n" + twice)
    assert said == "policies/logs/own.yaml:4:16: not a regular expression: missing )"


def test_a_prefix_ends_where_the_words_begin(load):
    """Where its expression looks further, the group says how far it goes; what it must not hold stands beside it."""
    prefix = r"{id: p, match: '\w+> (?P<words>\S+:)', but_not: '^mine', example: 'app> x: y'}"
    policy = load(GOOD + f"prefixes:\n  - {prefix}\n")
    assert [unwrap(line, policy.lines).text for line in ("app> x: no", "app> x no", "mine> x: no")] == [
        "x: no",
        "app> x no",
        "mine> x: no",
    ]


# ---- schema and loader say the same ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema():
    return json.loads((schemas_dir() / "log-policy.schema.json").read_text())


@pytest.mark.parametrize("path", log_policy_paths(policies_dir()), ids=lambda p: p.stem)
def test_shipped_files_follow_the_schema(path, schema):
    jsonschema.Draft202012Validator(schema).validate(load_yaml(path).plain())


# ---- the pieces -----------------------------------------------------------------------------------------------------


def test_versions_order_as_the_engine_was_released():
    tags = ["b1200", "b4799", "b10434", "0.1.0", "0.6.0-dev (build 0)", "v1.2"]
    assert [version_of(tag) for tag in tags] == sorted(version_of(tag) for tag in tags)
    assert version_of("mid-2025") is None


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        (">=0.4", "0.4.0", True),
        (">=0.4", "b9999", False),
        ("<b5400", "b5399", True),
        ("<b5400", "b5400", False),
        (">=b4000, <0.1.0", "b4799", True),
        (">=b4000, <0.1.0", "0.1.0", False),
        (">=b4000, <0.1.0", "whatever", True),
    ],
)
def test_ranges(text, version, inside):
    assert range_of(text).holds(version_of(version)) is inside


@pytest.mark.parametrize("text", ["", "0.4", ">=x", "<0.1, <0.2", "=0.4"])
def test_what_is_no_range(text):
    assert range_of(text) is None


@pytest.mark.parametrize(
    ("condition", "seen", "backend", "expected"),
    [
        (Condition(), "", None, True),
        (Condition(all=("a", "b")), "a", None, False),
        (Condition(all=("a", "b")), "ab", None, True),
        (Condition(any=("a", "b")), "b", None, True),
        (Condition(any=("a", "b")), "", None, False),
        (Condition(all=("a",), none=("b",)), "ab", None, False),
        (Condition(any=("c", Condition(all=("a", "b")))), "ab", None, True),
        (Condition(any=(("backend", "x"),)), "", "x", True),
        (Condition(any=(("backend", "x"),)), "", None, False),
    ],
)
def test_conditions(condition, seen, backend, expected):
    assert holds(condition, lambda name: name in seen, backend) is expected


def test_each_shipped_failure_class_can_be_reached():
    policy = shipped()
    reached = {p.failure for p in policy.patterns.values()} | {e.failure for e in policy.exits}
    assert {f.id for f in policy.failures if f.condition is None} <= reached
