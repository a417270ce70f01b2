"""A family of engines from outside the package: the one module that another package would bring.

Its models are JSON files, ``{"weights_bytes": …, "bytes_per_token": …, "text": …}``; its engine is ``toy_engine.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from gezel_rules.documents.declare import Anything
from gezel_rules.documents.source import Text, parse_yaml
from gezel_rules.engines import plain_functions
from gezel_rules.engines.family import (
    Contract,
    MemoryCommand,
    MemoryUse,
    OutsideSetting,
    PoolUse,
    Probe,
    Program,
    Report,
)
from gezel_rules.engines.openai_http import Address, Call, Piece, chat, status
from gezel_rules.engines.pools import PoolKind, ram_pool
from gezel_rules.errors import BadInput
from gezel_rules.facts.fact import Fact
from gezel_rules.facts.vocabulary import SHARED, Word, setting_word
from gezel_rules.lang.types import INTEGER, Function
from gezel_rules.policy.language import Needs

ENGINE = Path(__file__).with_name("toy_engine.py")
FLAGS = ["--model", "--port"]


class Toy(NamedTuple):
    """A model file as this family reads it; sizes in bytes."""

    weights_bytes: int
    bytes_per_token: int
    format: str = "toy"


class ToyFit:
    """All of the RAM or nothing: weights, and so many bytes for each token of the window."""

    share = 1.0

    def __init__(self, toy: Toy, facts: Mapping[str, Fact], ram: Any) -> None:
        self.toy, self._facts, self._ram = toy, facts, ram

    def facts(self) -> dict[str, Fact]:
        return {"ram.usable": Fact(self._ram.usable or 0, self._ram.why, "policy")}

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        return {**plain_functions.CALLABLES, "toy_bytes": self.needed}

    def needed(self, window: int) -> int:
        return self.toy.weights_bytes + self.toy.bytes_per_token * window

    def with_facts(self, facts: Mapping[str, Fact]) -> ToyFit:
        return ToyFit(self.toy, facts, self._ram)

    def under(self, policies: Any) -> ToyFit:
        return self

    def measured(self, facts: Mapping[str, Fact], held: Mapping[str, int]) -> ToyFit:
        return self.with_facts(facts)

    def degraded(self, memory: MemoryUse) -> None:
        return None

    def lessened(self, share: float) -> ToyFit:
        return self

    def exceeded_by(self, memory: MemoryUse) -> bool:
        return False

    def memory(self, trace: Any) -> MemoryUse:
        window = trace.value("toy.window")
        parts = {"weights": self.toy.weights_bytes, "tokens": self.toy.bytes_per_token * window}
        short = max(0, sum(parts.values()) - (self._ram.usable or 0))
        return MemoryUse((PoolUse("host", self._ram.usable, parts),), short, {"weights_bytes": self.toy.weights_bytes})

    def may_leave_out(self, trace: Any) -> list[str]:
        return []

    def might_hold(self, other: Any) -> bool:
        return other.weights_bytes <= (self._ram.usable or 0)


def ready(address: Address, key: str, seconds: float) -> bool:
    return status(address, "/up", key, seconds) == 200


def count(call: Call) -> Iterator[Piece]:
    """The other kind of request: how many words a text has."""
    body = json.dumps({"text": call.messages[-1]["content"]}).encode()
    request = Request(f"{call.address.url}/count", body, {"Authorization": f"Bearer {call.key}"})
    with urlopen(request, timeout=call.idle) as answer:
        yield Piece(f"{json.load(answer)['words']} words")


class ToyFamily:
    """See ``gezel_rules.engines.protocol.Family``."""

    name = "toy"
    label = "toy"
    variable = "GEZEL_TOY_ENGINE"
    leaves_out: Mapping[str, str] = {}
    contract = Contract("TOY_KEY", "", ready, {"chat": chat, "count": count})

    def vocabulary(self) -> Sequence[Word]:
        said = Word("model.toy_text", "text", "what the model says", "the model file")
        return (*SHARED, said, setting_word("toy_mood", "text", "how it answers"))

    def signatures(self) -> Mapping[str, Function]:
        bytes_ = INTEGER._replace(unit="bytes")
        tokens = INTEGER._replace(unit="tokens")
        return {**plain_functions.SIGNATURES, "toy_bytes": Function((tokens,), bytes_, "what a window takes")}

    def needs(self) -> Needs:
        return Needs({}, ("refusal", "prompt.endpoint", "toy.window"))

    def find(self, choice: str | None, environ: Mapping[str, str], policies: Path | None) -> Program:
        chosen = Path(choice or environ.get(self.variable) or ENGINE)
        if not chosen.is_file():
            raise BadInput(f"no such toy engine: {chosen}")
        return Program("toy-engine", (sys.executable, str(chosen)), chosen)

    def probe(self, probe: Probe) -> dict[str, Fact]:
        said = {"kind": "toy-engine", "backend": "cpu", "version": "1.0", "identity": "toy", "flags": FLAGS}
        facts = {f"engine.{name}": Fact(value, "toy", "probe") for name, value in said.items()}
        return facts | {"devices": Fact([], "toy", "probe"), "host.unified": Fact(False, "toy", "probe")}

    def outside_settings(self, probe: Probe) -> list[OutsideSetting]:
        return []

    def recognises(self, path: Path) -> bool:
        return path.suffix == ".toy"

    def read_model(self, path: str, cache: Path | None) -> Toy:
        try:
            said = json.loads(Path(path).read_bytes())
            return Toy(int(said["weights_bytes"]), int(said["bytes_per_token"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path}: no toy model: {error}") from None

    def read_elsewhere(self, name: str, first_bytes_of: Callable[[str], Any]) -> Toy:
        raise BadInput(f"{name}: this family reads models on disk only")

    def described_model(self, entry: Any) -> Toy | None:
        header = entry.header.plain() if entry.header is not None else None
        return Toy(header["weights_bytes"], header["bytes_per_token"]) if header else None

    def described_drafter(self, entry: Any) -> None:
        return None

    def description(self) -> Any:
        return Anything()

    def describe_file(self, path: str, origin: str) -> Any:
        return parse_yaml(Text(origin, self.describe(self.read_model(path, None), origin))).value["header"]

    def describe(self, model: Any, origin: str) -> str:
        return f"header: {{weights_bytes: {model.weights_bytes}, bytes_per_token: {model.bytes_per_token}}}\n"

    def described(self, text: str, name: str) -> Toy:
        return Toy(**parse_yaml(Text(name, text)).value["header"].plain())

    def check_description(self, node: Any, problems: list[Any]) -> None:
        return None

    def model_facts(self, subject: Any, settings: Any, policies: Any, cache: Path | None) -> dict[str, Fact]:
        return {"model.toy_text": Fact("hello", subject.source, "model")}

    def fit(
        self, subject: Any, policies: Any, facts: Mapping[str, Fact], held: Mapping[str, int], cache: Path | None
    ) -> ToyFit:
        return ToyFit(subject.model, facts, ram_pool(facts, policies.rows("pool_kinds", PoolKind), held, ()))

    def summary_of_model(self, path: str) -> dict[str, object]:
        self.read_model(path, None)
        return {"arch": "toy"}

    def inspect(self, path: str, tables: Any) -> Report:
        toy = self.read_model(path, None)
        return Report(toy._asdict(), [f"{path}: a toy model of {toy.weights_bytes} bytes"])

    @property
    def memory(self) -> MemoryCommand:
        return MemoryCommand(
            lambda parser: None,
            lambda args, policies, cache: self.inspect(args.file, {}),
        )


FAMILY = ToyFamily()
