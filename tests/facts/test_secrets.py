"""What carries a secret is shown as set, its value never."""

from __future__ import annotations

import pytest

from gezel_rules.facts.secrets import HIDDEN, blotted, hidden, is_secret, secret_arguments, secret_values


@pytest.mark.parametrize("name", ["--api-key", "HF_TOKEN", "GEZEL_PASSWORD", "--auth-token", "x.headers"])
def test_names_that_carry_secrets(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["--api-key-file", "--cache-type-k", "launch.arguments", "model.tokens", ""])
def test_names_that_do_not(name):
    assert not is_secret(name)


def test_values_of_options_that_carry_secrets_are_not_shown():
    argv = ["-c", "512", "--api-key", "s3cret", "--password=s3cret", "--api-key-file", "key", "--token"]
    shown = ["-c", "512", "--api-key", HIDDEN, f"--password={HIDDEN}", "--api-key-file", "key", "--token"]
    assert hidden(argv) == shown
    assert list(secret_arguments(argv)) == ["s3cret", "s3cret", ""]


def test_a_secret_that_looks_like_an_option_is_one():
    assert hidden(["--api-key", "--api-key", "-c", "1"]) == ["--api-key", HIDDEN, "-c", "1"]


def test_variables_that_carry_secrets():
    environ = {"HF_TOKEN": "hf_abcdefgh", "SHORT_KEY": "1", "PATH": "/usr/bin", "OPENAI_API_KEY": "sk-12345"}
    assert secret_values(environ) == ("hf_abcdefgh", "sk-12345")


def test_texts_are_blotted_wherever_they_stand():
    data = {"s3cret": ["a s3cret", {"url": "https://me:pw@host/x?token=1"}, 3, None, True], "deep": ("s3cret",)}
    blot = {"s3cret": ["a ***", {"url": "https://…@host/x?…"}, 3, None, True], "deep": ["***"]}
    assert blotted(data, ["s3cret", ""]) == blot
