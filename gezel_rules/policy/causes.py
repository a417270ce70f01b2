"""One mistake, one message: what only follows from a mistake is left out, and what misses one name is said once.

A name that is nowhere is missed wherever it is spoken of. Where something else is called almost so, and nothing speaks
of that, its name is the misspelt one, and it is said there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gezel_rules.documents.node import Node
from gezel_rules.errors import Problem

if TYPE_CHECKING:
    from gezel_rules.policy.load import Drafts

LETTERS_PER_SLIP = 6  # one letter in so many may differ in two names of which one is taken for the other misspelt
UNSPOKEN = "nothing speaks of this"
"""How a message begins that is said where a name is written, and not where it is missed."""
_WORD = re.compile(r"[\w.-]*\w")
_KEY = re.compile(r"^\s*([\w.-]*\w:)", re.MULTILINE)


def by_cause(problems: Iterable[Problem], drafts: Drafts) -> list[Problem]:
    """The problems, each once, without those that follow from others; in the order in which they were found. What
    something broken may define, nobody misses."""
    groups: dict[str | Problem, list[Problem]] = {}
    roots, shape = [source.root for source in drafts.sources], set(drafts.shape)
    for problem in problems:
        if problem in shape or not _may_be_there(problem.misses, drafts.doubtful):
            groups.setdefault(problem.misses or problem, []).append(problem)
    said = [_as_one(group, roots) for group in groups.values()]
    return list(_once_a_place(said))


def _once_a_place(said: Sequence[Problem]) -> Iterator[Problem]:
    """Without what is said again, in other words, of a name that is at fault where it is written."""
    places = {problem.span for problem in said if not problem.message.startswith(UNSPOKEN)}
    for problem in said:
        if problem.message.startswith(UNSPOKEN):
            if problem.span in places:
                continue
            places.add(problem.span)
        yield problem


def _may_be_there(missed: str, doubtful: Collection[str]) -> bool:
    """Whether something broken may define the name, or what a column of is read."""
    if missed in doubtful:
        return True
    return any(f"{missed[: dot.start()]}:" in doubtful for dot in re.finditer(r"\.", missed))


def _as_one(group: list[Problem], roots: Sequence[Node]) -> Problem:
    """The one problem behind several that miss one name."""
    first, *more = sorted(dict.fromkeys(group), key=lambda problem: (problem.span is None, problem.place))
    if not first.misses:
        return first
    misspelt = _misspelt(first.misses, roots)
    if misspelt is not None:
        return _at_its_definition(first, misspelt)
    places = [problem for problem in more if problem.span]
    also = f" (and in {len(places)} more place{'s'[: len(places) != 1]})" if places else ""
    return first._replace(message=first.message + also)


def _at_its_definition(problem: Problem, name: Node) -> Problem:
    where = f"{problem.span.file}:{problem.span.line} speaks" if problem.span else "this program speaks"
    said = f"{UNSPOKEN}; did you mean '{problem.misses}', of which {where} and which is not there?"
    return name.problem(said)._replace(misses=problem.misses)


def _misspelt(missed: str, roots: Sequence[Node]) -> Node | None:
    """The one name that is almost as the missed one, and of which nothing speaks, while several speak of that."""
    import difflib  # needed only for a message

    names = {word: node for root in roots for word, node in _defined(root)}
    slips = max(1, len(missed) // LETTERS_PER_SLIP)
    like = difflib.get_close_matches(missed, names, n=5, cutoff=max(0.5, 1 - (slips + 0.1) / len(missed)))
    lonely = [word for word in like if ("." in word) == ("." in missed) and _mentions(word, roots) == 1]
    return names[lonely[0]] if lonely and _mentions(missed, roots) != 1 else None


def _defined(node: Node) -> Iterator[tuple[str, Node]]:
    """Every key and id, with the node it is written at."""
    waiting = [node]
    while waiting:
        value = waiting.pop().value
        if isinstance(value, dict):
            yield from ((key, child.key) for key, child in value.items() if child.key is not None)
            if "id" in value and isinstance(value["id"].value, str):
                yield value["id"].value, value["id"]
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value


def _mentions(word: str, roots: Sequence[Node]) -> int:
    """How often a word stands in the files, with nothing before or after that would make it another."""
    found = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-]|\.\w)")
    return sum(len(found.findall(root.text.text)) for root in roots)


def in_order(problems: Iterable[Problem], drafts: Sequence[Drafts]) -> list[Problem]:
    """Each problem once: files that are no YAML first, then what needs no expression to be seen, then the rest; each
    in file order."""
    unread = {name for each in drafts for name in each.unread}
    shape = {problem.span for each in drafts for problem in each.shape}

    def place(problem: Problem) -> tuple[int, tuple[str, int, int]]:
        early = problem.span is None or problem.span.file in unread
        return 0 if early else 1 if problem.span in shape else 2, problem.place

    return sorted(dict.fromkeys(problems), key=place)


def words_of(text: str) -> set[str]:
    """Every word of a file that cannot be read: each may have been the name of something; keys with their colon too."""
    return {*_WORD.findall(text), *_KEY.findall(text)}


def names_of(root: Node) -> set[str]:
    """Every key and id of a file that could be read."""
    return {word for word, _ in _defined(root)}


def blamed(problems: Iterable[Problem], root: Node) -> set[str]:
    """The tables and decisions of a file that problems stand in."""
    sections = root.value if isinstance(root.value, dict) else {}
    entries = [
        (node.key.line, node.key.column, name)
        for section in ("tables", "decisions")
        if section in sections and isinstance(sections[section].value, dict)
        for name, node in sections[section].value.items()
        if node.key is not None
    ]
    places = [problem.place[1:] for problem in problems if problem.span and problem.span.file == root.text.name]
    before = [[entry for entry in entries if entry[:2] <= place] for place in places]
    return {max(found)[2] for found in before if found}


def home_of(drafts: Drafts, word: str) -> Node | None:
    """The outcome of a rule that gives this word."""
    judging = [draft for draft in drafts.decisions.values() if draft.decision.hit != "search"]
    rules = [pair for draft in judging for pair in zip(draft.decision.rules, draft.places, strict=True)]
    return next((place.then for rule, place in rules if rule.then == repr(word)), None)
