"""What an engine's log says: whether the GPU is in use, what failed, and what a person can do about it.

The rules are data (log policies). Lines are looked at only when one of a rule's literals stands in them: the
literals are searched in blocks of 64 KiB first, all at once. A log is untrusted: line length, memory and time are
bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gezel_rules.logs.lines import LONGEST, Words, ignored, matches, opens, shown, unwrap
from gezel_rules.logs.model import LogPolicy, Pattern, Place, Quote, version_of
from gezel_rules.logs.verdict import Evidence, Verdict, ends_the_start, judge
from gezel_rules.record import NamedTuple
from gezel_rules.regex import Literals

__all__ = ["Evidence", "Place", "Verdict", "Watch", "classify"]

BLOCK = 64 << 10  # bytes searched for literals at once
UNENDING = 64  # quotations without an end, after which none is looked for
STAMPED_WITHIN = 256 << 10  # bytes in which the first line with the engine's stamp is looked for


class _Need(NamedTuple):
    """A literal and what asks for it."""

    literal: str
    patterns: tuple[Pattern, ...]
    quotes: tuple[Quote, ...]


def classify(
    lines: Iterable[str],
    policy: LogPolicy,
    backend: str | None = None,
    exit_status: int | None = None,
    engine_version: str | None = None,
) -> Verdict:
    """The verdict on a whole log, given as lines with or without their ends."""
    return judge(policy, gathered(lines, policy, backend, engine_version), backend, exit_status)


def gathered(
    lines: Iterable[str], policy: LogPolicy, backend: str | None = None, engine_version: str | None = None
) -> Mapping[str, Evidence]:
    """What a whole log is evidence of, by pattern; ``verdict.judge`` says what follows."""
    watch = Watch(policy, backend, engine_version)
    for line in lines:
        watch.feed((line.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
    return watch.evidence()


class Watch:
    """Follows a log as it grows: ``feed`` bytes in any pieces, ask for the ``verdict`` at any time.

    ``backend`` is the build's own (its rules alone then speak of a GPU; None: all); ``engine_version`` leaves out
    rules of versions that print otherwise (unknown: all apply). Keeps one piece of evidence per rule and less than
    two blocks of text, however long the log.
    """

    def __init__(self, policy: LogPolicy, backend: str | None = None, engine_version: str | None = None) -> None:
        self.policy, self.backend = policy, backend
        self._needs = _needs(policy, backend, version_of(engine_version or ""))
        self._literals = Literals(need.literal for need in self._needs)
        self._evidence: dict[str, Evidence] = {}
        self._carry = b""
        self._skipping = False
        self._offset = 0  # bytes before the carry
        self._stamp_at: int | None = None  # offset of the first line with the engine's stamp
        self._stamp_sought = 0
        self._unending = 0

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the log."""
        self._carry = self._carry + chunk if self._carry else chunk
        while len(self._carry) >= BLOCK:
            before = len(self._carry)
            self._take(final=False)
            if len(self._carry) == before:
                break

    def verdict(self, exit_status: int | None = None) -> Verdict:
        """What is known so far; the unfinished last line counts as it stands. ``exit_status`` as Python gives it."""
        kept = (dict(self._evidence), self._carry, self._offset, self._skipping, self._stamp_at, self._stamp_sought)
        self._take(final=True)
        verdict = judge(self.policy, self._evidence, self.backend, exit_status)
        self._evidence, self._carry, self._offset, self._skipping, self._stamp_at, self._stamp_sought = kept
        return verdict

    def evidence(self) -> Mapping[str, Evidence]:
        """What was seen in a log that has ended, by pattern."""
        self._take(final=True)
        return self._evidence

    def _take(self, final: bool) -> None:
        """Read the whole lines of the carry (all of it when ``final``) and drop what was read."""
        if self._skipping and not self._end_of_skipped(final):
            return
        data = self._carry
        end = len(data) if final else data.rfind(b"\n") + 1
        if end == 0 and len(data) >= 2 * BLOCK:  # a line without an end: its beginning counts, the rest is dropped
            self._skipping, end = True, len(data)
        if end:
            read = self._read(data[:end], final or len(data) >= 2 * BLOCK)
            self._carry, self._offset = data[read:], self._offset + read

    def _end_of_skipped(self, final: bool) -> bool:
        at = self._carry.find(b"\n") + 1
        if at == 0 and not final:
            self._offset, self._carry = self._offset + len(self._carry), b""
            return False
        cut = at or len(self._carry)
        self._carry, self._offset, self._skipping = self._carry[cut:], self._offset + cut, False
        return True

    def _read(self, block: bytes, final: bool) -> int:
        """Evidence from whole lines; returns how many bytes are done with (less when a quotation is still open)."""
        self._seek_stamp(block)
        hits = self._hits(block)
        past = 0
        for start in hits:
            if start < past:
                continue
            line = block[start : _line_end(block, start)]
            words = unwrap(line, self.policy.lines)
            quote = self._quote(words, (q for need in hits[start] for q in need.quotes))
            if quote is not None:
                past, open_end = self._quoted(block, start, quote, words.stamped)
                if open_end and not final:
                    return start
                continue
            self._line(words, start, hits[start])
        return len(block)

    def _hits(self, block: bytes) -> dict[int, list[_Need]]:
        """Lines (by their offset) that hold a literal where they are read, with the literals' owners."""
        hits: dict[int, list[_Need]] = {}
        at = self._literals.next_in(block, 0)
        while at >= 0:
            start, end = block.rfind(b"\n", 0, at) + 1, _line_end(block, at)
            found = self._literals.found_in(block[start : min(end, start + LONGEST)])
            if found:
                hits[start] = [self._needs[place] for place in found]
            at = self._literals.next_in(block, end)
        return hits

    def _quote(self, words: Words, quotes: Iterable[Quote]) -> Quote | None:
        """The quotation a line opens; after ``UNENDING`` that never ended none is looked for (they cost time)."""
        if self._unending >= UNENDING:
            return None
        return next((quote for quote in quotes if opens(quote, words)), None)

    def _quoted(self, block: bytes, start: int, quote: Quote, stamped: bool) -> tuple[int, bool]:
        """Where the line after a quotation starts (the line after its first when it does not end), and whether the
        block ended before that could be known."""
        first = at = _line_end(block, start) + 1
        closed = False
        for _ in range(quote.lines):
            if at >= len(block):
                return (at if closed else first), not closed
            end = _line_end(block, at)
            words = unwrap(block[at:end], self.policy.lines)
            if words.stamped == stamped and _ends(quote, words, closed):
                return at, False
            closed = quote.closes is not None and quote.closes.search(words.text) is not None
            at = end + 1
        self._unending += 1
        return first, False

    def _line(self, words: Words, start: int, needs: list[_Need]) -> None:
        if ignored(words.text, self.policy.lines):
            return
        loose = not words.stamped and self._stamp_at is not None and self._offset + start > self._stamp_at
        for pattern in dict.fromkeys(p for need in needs for p in need.patterns):
            if (pattern.raw or not loose) and matches(pattern, words):
                self._enter(pattern, words.text)

    def _enter(self, pattern: Pattern, text: str) -> None:
        if pattern.id in self.policy.settled_by:
            self._settle()
        for other in [p for p in self._evidence if pattern.id in self.policy.patterns[p].until]:
            del self._evidence[other]
        if pattern.id not in self._evidence:
            found = pattern.match.search(text)
            named = {k: shown(v, 120) for k, v in (found.groupdict() if found else {}).items() if v}
            self._evidence[pattern.id] = Evidence(pattern.id, shown(text), named, len(self._evidence))

    def _settle(self) -> None:
        """The engine got past it: what looked fatal before was not final."""
        for name in [p for p in self._evidence if ends_the_start(self.policy, self.policy.patterns[p])]:
            del self._evidence[name]

    def _seek_stamp(self, block: bytes) -> None:
        at = 0
        while self._stamp_at is None and self._stamp_sought < STAMPED_WITHIN and at < len(block):
            end = _line_end(block, at)
            words = unwrap(block[at : min(end, at + LONGEST)], self.policy.lines)
            if words.stamped:
                self._stamp_at = self._offset + at
            quote = self._quote(words, self.policy.lines.quotes)
            after = end + 1 if quote is None else self._quoted(block, at, quote, words.stamped)[0]
            self._stamp_sought += after - at
            at = after


def _ends(quote: Quote, words: Words, closed: bool) -> bool:
    """Whether a line, written like the one that opened the quotation, comes after it."""
    if quote.closes is None and words.stamped:
        return True
    return (closed or quote.closes is None) and quote.then.search(words.text) is not None


def _line_end(block: bytes, start: int) -> int:
    end = block.find(b"\n", start)
    return len(block) if end < 0 else end


def _needs(policy: LogPolicy, backend: str | None, version: tuple[int, ...] | None) -> tuple[_Need, ...]:
    """Every literal once, with the patterns that apply to this build and the quotations that ask for it."""
    owners: dict[str, tuple[list[Any], list[Any]]] = {}
    spoken = {name for pattern in policy.patterns.values() for name in pattern.backends}
    for pattern in policy.patterns.values():
        if _applies(pattern, backend, version, spoken):
            for literal in pattern.needs:
                owners.setdefault(literal, ([], []))[0].append(pattern)
    for quote in policy.lines.quotes:
        for literal in quote.needs:
            owners.setdefault(literal, ([], []))[1].append(quote)
    return tuple(_Need(literal, tuple(p), tuple(q)) for literal, (p, q) in owners.items())


def _applies(pattern: Pattern, backend: str | None, version: tuple[int, ...] | None, spoken: set[str]) -> bool:
    """``spoken``: the backends of which some pattern speaks."""
    if pattern.engine is not None and not pattern.engine.holds(version):
        return False
    return not pattern.backends or backend not in spoken or backend in pattern.backends
