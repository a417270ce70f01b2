"""``policy diff`` as people read it: a few lines, or one page that needs nothing else."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gezel_rules.places import catalog_dir, policies_dir

MODELS, HOSTS = ("llama-3.2-1b", "mamba-2.8b"), ("cpu-32g", "rtx-4090", "rtx-4090-pair")
SIDES = "then/policies → <b>now/policies"


@pytest.fixture
def small(place) -> tuple[str, str]:
    """The option that names a catalog of two models and three hosts."""
    for kind, names in (("models", MODELS), ("hosts", HOSTS)):
        folder = place.here / "catalog" / kind
        folder.mkdir(parents=True)
        for name in names:
            shutil.copy(catalog_dir() / kind / f"{name}.yaml", folder)
    return ("--catalog", "catalog")


@pytest.fixture
def folders(place) -> tuple[str, str]:
    """Two folders of policies, of which one line is another."""
    for name in ("then", "<b>now"):
        shutil.copytree(policies_dir(), place.here / name / "policies")
    path = place.here / "<b>now" / "policies" / "llama-cpp" / "kv.yaml"
    path.write_text(path.read_text().replace("then: \"'f16'\"", "then: \"'q8_0'\""))
    return "then/policies", "<b>now/policies"


def line() -> int:
    return (policies_dir() / "llama-cpp" / "kv.yaml").read_text().partition("- id: f16\n")[0].count("\n") + 1


def test_one_line_changed(place, small, folders):
    said = place.call(*small, "policy", "diff", *folders)
    assert (said.status, said.err) == (0, "")
    first, _, edit, _, *rest = said.out.splitlines()
    assert first == f"{SIDES}: 6 of 6 launches change; 2 of 2 models, on 3 of 3 hosts"
    assert edit == f"rule f16 of kv.finest, changed: policies/llama-cpp/kv.yaml:{line()}"
    assert "  --cache-type-k f16 → q8_0, --cache-type-v f16 → q8_0: 5 launches" in rest
    rows = [row.split() for row in rest if row.startswith("    llama")]
    assert [row[:3] for row in rows][:2] == [["llama-3.2-1b", "cpu-32g", "host"], ["llama-3.2-1b", "rtx-4090", "CUDA0"]]
    at = next(number for number, row in enumerate(rest) if "--tensor-split" in row)
    assert rest[at].endswith(": 1 launch") and rest[at + 1].startswith("    llama-3.2-1b  rtx-4090-pair  CUDA0 ")


def test_nothing_differs(place, small, folders):
    said = place.call(*small, "policy", "diff", folders[0], folders[0])
    sides = f"{folders[0]} → {folders[0]}"
    assert said == (0, f"{sides}: no rule and no table differs in what it does, so no launch changes\n", "")


def test_the_policies_as_they_are_stand_on_the_right(place, small, folders):
    said = json.loads(place.call(*small, "--policies", folders[1], "policy", "diff", folders[0], "--json").out)
    assert (said["before"], said["after"], said["changed"]) == (folders[0], folders[1], 6)


class Reader(HTMLParser):
    """Tags and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_else(place, small, folders):
    said = place.call(*small, "policy", "diff", *folders, "--html", "diff.html")
    assert said.status == 0
    page = Path("diff.html").read_text("utf-8")
    reader = Reader()
    reader.feed(page)
    assert not {"script", "link", "img", "iframe", "b"} & set(reader.tags) and not {"src", "href"} & reader.names
    assert "://" not in page and "url(" not in page and "@import" not in page
    assert reader.tags.count("tr") == 2 + 6  # two tables, six launches
    assert f"{SIDES}: 6 of 6 launches change" in reader.text
    assert "--cache-type-k f16 → q8_0" in reader.text and "llama-3.2-1b" in reader.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required: A"),
        (("a", "b", "c"), "unrecognized arguments: c"),
        (("nonsuch",), "nonsuch: neither a folder nor a git revision"),
    ],
)
def test_bad_input(refused, words, said):
    assert said in refused("policy", "diff", *words)


def test_a_page_that_cannot_be_written(refused, folders):
    assert "no/where.html: no such file or directory" in refused(
        "policy", "diff", folders[0], folders[0], "--html", "no/where.html"
    )


def test_check_takes_one_directory(refused):
    assert "unrecognized arguments: b" in refused("policy", "check", "a", "b")
