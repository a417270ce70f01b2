"""``run`` on a model that ``serve`` holds: its engine answers and goes on running, unless another is asked for."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def environ(environ):
    """No engine is chosen by a variable: what ``serve`` runs is what is meant."""
    return {name: value for name, value in environ.items() if name != "GEZEL_LLAMA_SERVER"}


@pytest.fixture
def served(gezel, answering, model):
    """An engine that ``serve`` holds, ready: the command and what it announced."""
    child = gezel("serve", model, "--engine", answering(), "--set", "slots=1", "--json")
    return child, json.loads(child.stdout.readline())


@pytest.fixture
def asked(gezel, model, state):
    """Asks ``run`` for "one two" of the model: its status, what it said on both streams, and how many engines have been
    started so far."""

    def ask(*words: str, model: str = model):
        child = gezel("run", model, "one two", *words)
        out, err = child.communicate(timeout=120)
        return child.returncode, out, err.strip(), len(list((state / "journal").glob("*.json")))

    return ask


def test_13_the_engine_of_serve_answers_and_goes_on_running(served, asked, state):
    child, shown = served
    using = f"gezel-rules: using the engine that 'serve' runs for {shown['model']} at {shown['url']}"
    assert asked() == (0, "one two \n", using, 1)
    assert asked("--json")[:2] == (0, json.dumps({
        "model": shown["model"], "engine": "llama-server", "endpoint": "completion", "answer": "one two ",
    }) + "\n")  # fmt: skip
    assert child.poll() is None and psutil.pid_exists(shown["pid"])
    assert Path(shown["key_file"]).read_text().strip() not in using


def test_13_other_names_of_the_file_are_the_same_model(served, asked, model, tmp_path, monkeypatch):
    (tmp_path / "away").symlink_to(Path(model).parent)
    monkeypatch.chdir(Path(model).parent)
    for name in (f"{tmp_path}/away/small.gguf", "small.gguf"):
        assert asked(model=name)[::3] == (0, 1)


def test_13_another_file_of_that_name_is_another_model(served, asked, model, tmp_path, answering):
    shutil.copy(model, tmp_path / "small.gguf")
    assert asked("--engine", answering(), model=str(tmp_path / "small.gguf")) == (0, "one two \n", "", 2)


@pytest.mark.parametrize(
    ("words", "environment"),
    [(("--set", "slots=1"), {}), (("--engine", "FAKE"), {}), ((), {"GEZEL_SLOTS": "1"})],
)
def test_13_what_it_was_started_with_may_be_asked_for(served, asked, answering, environ, words, environment):
    environ |= environment
    assert asked(*[word.replace("FAKE", answering()) for word in words])[::3] == (0, 1)


def test_13_what_the_plan_came_to_may_be_asked_for(served, asked, state):
    (record,) = [json.loads(path.read_text()) for path in (state / "journal").glob("*.json")]
    assert asked("--set", f"window={record['summary']['window']}")[::3] == (0, 1)


@pytest.mark.parametrize(
    ("words", "environment", "lacks"),
    [
        (("--set", "window=1k", "--set", "slots=1"), {}, "window=1024"),
        ((), {"GEZEL_SLOTS": "2"}, "slots=2"),
        (("--engine", "OTHER"), {}, "the engine OTHER"),
        (("--policies", "COPY"), {}, "the policies in COPY"),
    ],
)
def test_13_what_it_was_not_started_with_starts_another(
    served, asked, answering, environ, tmp_path, words, environment, lacks
):
    names = {"OTHER": tmp_path / "other" / "fake-llama-server", "COPY": tmp_path / "policies"}
    names["OTHER"].parent.mkdir()
    shutil.copy(answering(), names["OTHER"])
    shutil.copytree(Path(__file__).parents[2] / "policies", names["COPY"])
    text = names["COPY"] / "llama-cpp" / "window.yaml"
    text.write_text(text.read_text().replace("65536", "32768"))
    environ |= {"GEZEL_LLAMA_SERVER": answering(), **environment}

    def real(word: str) -> str:
        return next((word.replace(name, str(path)) for name, path in names.items() if name in word), word)

    status, out, err, started = asked(*map(real, words))
    assert (status, out, started) == (0, "one two \n", 2)
    said = f"the engine that 'serve' runs for small was not started with {real(lacks)}: starting another one"
    assert err.splitlines()[0] == f"gezel-rules: {said}"
    assert served[0].poll() is None and psutil.pid_exists(served[1]["pid"])


def test_13_an_engine_that_does_not_answer_is_not_waited_for(served, asked, answering):
    os.kill(served[1]["pid"], signal.SIGSTOP)
    try:
        status, out, err, started = asked("--engine", answering())
    finally:
        os.kill(served[1]["pid"], signal.SIGCONT)
    assert (status, out, started) == (0, "one two \n", 2)
    assert "the engine that 'serve' runs for small does not answer: starting another one" in err


def test_13_ending_run_leaves_the_engine(gezel, answering, model, state):
    serve = gezel("serve", model, "--engine", answering("endless"), "--json")
    shown = json.loads(serve.stdout.readline())
    run = gezel("run", model, "word")
    assert run.stdout.read(5) == "word "
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    assert serve.poll() is None and psutil.pid_exists(shown["pid"])
    assert len(list((state / "running").glob("*.json"))) == 1


@pytest.mark.engine
def test_13_a_real_engine_that_is_served_answers(gezel, real_engine, real_model, asked, state):
    serve = gezel("serve", str(real_model), "--engine", real_engine, "--set", "window=512", "--json")
    shown = json.loads(serve.stdout.readline())
    status, out, err, started = asked("--max-tokens", "8", "--set", "window=512", model=str(real_model))
    assert (status, started) == (0, 1) and out.strip() and f"at {shown['url']}" in err
    status, _, err, started = asked(
        "--max-tokens", "2", "--set", "window=1024", "--engine", real_engine, model=str(real_model)
    )
    assert (status, started) == (0, 2) and "was not started with window=1024" in err
    assert psutil.pid_exists(shown["pid"])
