"""Whatever stands in a data file, the commands that read it answer or say what is wrong, in bounded time and memory."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from data_uses import Kind, kinds, write
from fuzz_meter import Meter, command, rounds
from policy_mutants import mutants, text_of
from policy_uses import answered

SHARE, FULL = 300, 5_000
SEED = 11
PIECES = (
    "", "null", "NaN", "Infinity", "1e999", "-1e999", "9" * 5000, "1e-999", "\\ud800", "\\u0000", "\\u001b[31m", '"',
    "\0", "\ufeff", "[" * 3000, "{", "}", "]", ",", ":", "\n", "#", "&a ", "*a", "!!x ", "|", "<<: ", "é", "\ud800",
    "true", '"a": 1, ', "0x1F", "1_000", "2026-13-99",
)  # fmt: skip


def damaged(text: str, chance: random.Random) -> tuple[str, str]:
    """The text with one to three pieces put in, often in place of others; and what was done."""
    said = []
    for _ in range(chance.randint(1, 3)):
        start, piece = chance.randrange(len(text) + 1), chance.choice(PIECES)
        end = start + chance.choice((0, 0, 1, 3, 8, 40))
        said.append(f"{piece!r:.30} for {text[start:end]!r} at {start}")
        text = text[:start] + piece + text[end:]
    return text, "; ".join(said)


def changes(kind: Kind, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """Files of one kind with something changed, without end: name, text, and the change in words."""
    of_sense = mutants(dict(kind.files), chance)
    while True:
        if chance.random() < 0.25:
            name = chance.choice(list(kind.files))
            yield name, *damaged(json.dumps(kind.files[name]), chance)
        else:
            mutant = next(of_sense)
            yield mutant.file, text_of(mutant), mutant.says


@pytest.mark.filterwarnings("error")  # those of Python show people our code
def test_no_data_file_makes_a_command_fail_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, meter, all_kinds = random.Random(SEED), Meter(), kinds(tmp_path, monkeypatch)
    drawn = {name: changes(kind, chance) for name, kind in all_kinds.items()}
    for argv in (argv for kind in all_kinds.values() for name in kind.files for argv in kind.commands(tmp_path / name)):
        ran = command(*argv)  # as it is, every file is in order
        assert ran.status in (0, 1) and "skipped" not in ran.err, (argv, ran)
    for number in range(rounds(SHARE, FULL)):
        name = chance.choice(list(all_kinds))
        file, text, says = next(drawn[name])
        meter.counts[name] += 1
        _use(f"{number}: {file}: {says}", all_kinds[name], file, text, meter)
    meter.require_none()


def _use(what: str, kind: Kind, file: str, text: str, meter: Meter) -> None:
    path, before = kind.root / file, json.dumps(kind.files[file])
    write(path, text)
    for argv in kind.commands(path):
        meter.run(f"{what}: {' '.join(argv)}", lambda argv=argv: answered(command(*argv)))
    write(path, before)
