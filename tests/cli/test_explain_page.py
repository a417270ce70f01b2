"""``explain MODEL --html FILE``: every decision on one page that needs nothing else, as a browser shows it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium_at_hand import seen

from gezel_rules.cli.explain_page import entry
from gezel_rules.places import catalog_dir

SHORT = ("mistral-small-24b", "--host", "rtx-4090")
OPEN_ENDED = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """A page as a strict reader sees it: tags closed in order, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in OPEN_ENDED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, each, value in self.attributes if each == name]


def written(place, *words: str) -> str:
    said = place.call("explain", *words, "--html", "page.html")
    assert (said.status, said.out, said.err) == (0, "", "")
    return Path("page.html").read_text("utf-8")


def test_every_decision_is_there_with_the_rule_that_made_it(place) -> None:
    page = Reader(written(place, *SHORT))
    plan = json.loads(place.call("plan", *SHORT, "--json").out)
    names = [each["name"] for each in plan["decisions"]]
    assert [value for tag, name, value in page.attributes if (tag, name) == ("details", "id")] == names
    assert sorted(page.values("href")) == sorted(f"#{name}" for name in names)  # the graph leads to each
    for decision in plan["decisions"]:
        assert decision["because"] in page.text
    assert "- id: whole-window\n  when: gives.way == 'precision' or model.experts > 0\n" in page.text
    assert "kv.coarsest: q8_0: q8_0 may be taken" in page.text
    assert "finest-enough: concessions[gives.way].cache is coarser, not finest" in page.text


def test_memory_is_a_bar_for_each_device(place) -> None:
    page = Reader(written(place, "mistral-small-24b", "--host", "rtx-4090-pair"))
    bars = [label.split(":")[0] for label in page.values("aria-label")]
    assert bars == ["CUDA0", "CUDA1", "host", "graph of decisions"]
    widths = [
        float(style.removeprefix("width: ").removesuffix("%")) for style in page.values("style") if "width" in style
    ]
    assert len(widths) == 3 * 4
    assert all(0 <= width <= 100 for width in widths)


def test_a_launch_that_is_refused_says_why(place) -> None:
    page = Reader(written(place, "deepseek-v3", "--host", "cpu-32g"))
    assert "There is no launch: needs 377" in page.text


def test_it_needs_nothing_else(place) -> None:
    text = written(place, *SHORT)
    page = Reader(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _, _ in page.attributes}
    assert "<script" not in text and "url(" not in text and "@import" not in text
    assert page.values("src") == []
    assert all(value.startswith("#") for value in page.values("href"))


HOSTILE = "<script>alert(1)</script>"


def hostile(place) -> str:
    """A page of a host and of arguments whose names are markup."""
    host = (catalog_dir() / "hosts" / "rtx-4090.yaml").read_text("utf-8")
    named = host.replace("host: rtx-4090", "host: '\"><i>host'")
    (place.here / '"><i>host.yaml').write_text(named, "utf-8")
    return written(place, "qwen3-8b", "--host", '"><i>host.yaml', "--set", f"extra_args=--alias {HOSTILE}")


def test_names_that_are_markup_are_text(place) -> None:
    text = hostile(place)
    page = Reader(text)
    assert "<script" not in text and "<i>" not in text
    assert HOSTILE in page.text
    assert 'qwen3-8b on "><i>host' in page.text


@pytest.mark.parametrize("launch", [SHORT, ("deepseek-v3", "--host", "cpu-32g")], ids=lambda words: words[0])
def test_a_browser_shows_it_without_complaint(place, tmp_path: Path, launch: tuple[str, ...]) -> None:
    written(place, *launch)
    shown = seen(Path("page.html").absolute(), tmp_path)
    assert shown.console == []
    assert len(set(shown.pixels)) > 100


def test_a_browser_would_complain(tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><script>nowhere()</script>", "utf-8")
    shown = seen(page, tmp_path)
    assert len(shown.console) == 1 and "nowhere is not defined" in shown.console[0]
    assert len(set(shown.pixels)) < 10


TEXT = """decisions:
  one:
    rules:
      - id: first
        because: >-
          said

          in two parts

      # what comes next
      - {id: second, then: 1}
  two: {then: 2}
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (4, "- id: first\n  because: >-\n    said\n\n    in two parts"),
        (11, "- {id: second, then: 1}"),
        (12, "two: {then: 2}"),
        (99, ""),
    ],
)
def test_the_source_of_a_rule_is_its_entry(line: int, found: str) -> None:
    assert entry(TEXT, line) == found


RULE = "{id: broken-driver, after: operator, when: engine.backend == 'cuda', then: \"'off'\", because: it breaks}"


def test_a_layer_is_quoted_from_its_own_file(place) -> None:
    layer = place.here / "driver.yaml"
    head = "version: 1.0.0\nsummary: Our driver.\ndecisions:\n  kv.flash_attn:\n    rules:\n"
    layer.write_text(f"{head}      - {RULE}\n", "utf-8")
    said = place.call("--layer", str(layer), "explain", *SHORT, "--html", "page.html")
    assert said.status == 0, said
    page = Reader(Path("page.html").read_text("utf-8"))
    assert f"{layer}:6 · rule broken-driver" in page.text
    assert f"- {RULE}" in page.text


BAD = [
    (("-ctk",), "--html shows every decision"),
    (("--json",), "--html shows every decision"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_it_does_not_go_with(refused, words: tuple[str, ...], said: str) -> None:
    assert said in refused("explain", *SHORT, *words, "--html", "page.html")
    assert not Path("page.html").exists()


def test_a_page_that_cannot_be_written(refused) -> None:
    assert "no/where.html: no such file" in refused("explain", *SHORT, "--html", "no/where.html")
