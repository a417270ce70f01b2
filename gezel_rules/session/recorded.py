"""Records of launches as a person names them: ``@ID`` of this machine's journal, or a file from anywhere.

What is in a file is not believed: it is held against the record's schema before anything reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import places
from gezel_rules.errors import BadInput, GezelError, why
from gezel_rules.facts.printable import printable
from gezel_rules.facts.recorded import FORMAT
from gezel_rules.plain_file import read_plain
from gezel_rules.planner.record import plan_again, upgraded
from gezel_rules.record import NamedTuple
from gezel_rules.runtime.journal import FOLDER, records
from gezel_rules.runtime.state_files import MAX_BYTES

if TYPE_CHECKING:
    from gezel_rules.planner.plan import Plan
    from gezel_rules.session.session import Session

MARK = "@"
LAST = "last"


class Recorded(NamedTuple):
    """A record that fits the schema, and its name: the launch's, or the file's."""

    name: str
    record: dict[str, Any]


def is_recorded(word: str) -> bool:
    """Whether a word names a launch of the journal."""
    return word.startswith(MARK)


def find_record(session: Session, word: str) -> Recorded:
    """The record that is meant: ``@ID``, ``@`` and the beginning of one, ``@last``, or a file. Raises BadInput."""
    path = _in_journal(session.state, word[len(MARK) :]) if is_recorded(word) else Path(word)
    name = path.stem if is_recorded(word) else str(path)
    return Recorded(name, valid(_read(path), printable(name)))


def _in_journal(state: Path, wanted: str) -> Path:
    there = sorted((state / FOLDER).glob("[!.]*.json"))
    if wanted == LAST and there:
        return there[-1]
    found = [path for path in there if wanted and path.stem.startswith(wanted)]
    exact = [path for path in found if path.stem == wanted]
    if len(exact or found) == 1:
        return (exact or found)[0]
    asked = f"{MARK}{printable(wanted, 60)}"
    if found:
        raise BadInput(f"{asked}: {len(found)} launches begin like this, {MARK}{found[0].stem} among them")
    raise BadInput(f"{asked}: no such launch is recorded; 'gezel-rules history' lists those that are")


def _read(path: Path) -> Any:
    said = printable(str(path))
    try:
        return json.loads(read_plain(path, MAX_BYTES), parse_constant=_refused)
    except OSError as error:
        raise BadInput(f"{said}: {why(error)}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{said}: is no record of a launch: no JSON") from None


def _refused(word: str) -> Any:
    """NaN and the like, which no schema bounds, are no JSON."""
    raise ValueError(word)


def valid(data: Any, name: str) -> dict[str, Any]:
    """A record in today's form, held against its schema. Raises BadInput with what is wrong."""
    if not isinstance(data, Mapping):
        raise BadInput(f"{name}: is no record of a launch")
    if isinstance(number := data.get("format"), int) and number > FORMAT:
        raise BadInput(f"{name}: was written by a newer gezel-rules (format {number}, known up to {FORMAT})")
    record = upgraded(data)
    for error in _validator().iter_errors(record):
        where = ".".join(map(str, error.absolute_path))
        said = printable(f"{where}: {error.message}" if where else error.message, 160)
        raise BadInput(f"{name}: is no record of a launch: {said}")
    return record


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # only for whoever reads a record to its end

    return Draft202012Validator(json.loads((places.schemas_dir() / "record.schema.json").read_text("utf-8")))


def all_recorded(session: Session) -> Iterator[Recorded]:
    """Every record of the journal that fits the schema, oldest first."""
    for path, data in records(session.state):
        try:
            yield Recorded(path.stem, valid(data, path.stem))
        except BadInput:
            continue  # 'replay' of it says why


def decided_again(session: Session, recorded: Recorded) -> Plan:
    """The launch of a record, decided by the session's policies. Raises BadInput, also for facts that fit the schema
    and still make no sense."""
    record = recorded.record
    family = session.family(record["family"])
    request = session.request(record["model"])._replace(held=record.get("held", {}), environ={}, sites=())
    try:
        plan = plan_again(record, session.policies_for(family), request)
        plan.memory.pools  # noqa: B018 - arithmetic on nonsense fails here, not later
        return plan
    except GezelError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
        said = printable(f"{type(error).__name__} {error}", 120)
        raise BadInput(
            f"{printable(recorded.name)}: cannot be decided again, its facts make no sense: {said}"
        ) from None
