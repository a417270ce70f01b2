"""What an engine's code uses of this processor: asked of the engine, which says it in its log and nowhere else.

The shortest way to that line is to have it load a model that is not there (llama.cpp 0.6.0-dev: 20 to 40 ms, exit 1).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules.engines.kept_answers import Kept
from gezel_rules.engines.patience import SilentError
from gezel_rules.errors import BadInput, EngineFailed

if TYPE_CHECKING:
    from gezel_rules.engines.llama_cpp.memory.tables import Processor
    from gezel_rules.engines.patience import Patience

Processors = Mapping[str, "Processor"]
"""Policy's table: the features that each kind of processor is known by."""
QUESTION = ("-lv", "4", "-m", str(Path(os.devnull) / "no-model.gguf"), "--port", "0")
STEERING = "LLAMA_ARG_"  # variables of a launch, some of which download

_CPU = Path("/proc/cpuinfo")
_TELLING = ("model name", "flags", "Features", "CPU implementer", "CPU part")


def known_features(
    command: Sequence[str], environ: Mapping[str, str], kept: Kept, answers: dict[str, Any] | None = None,
    patience: Patience | None = None,
) -> list[str] | None:  # fmt: skip
    """The features as ``kept`` for this build and processor, else asked for and kept, a refusal too. ``answers`` are
    those read before; a new one is added to them. Raises SilentError."""
    answers, cpu = kept.read() if answers is None else answers, cpu_digest()
    match answers.get("features"):
        case [int() as then, None] if then == cpu:
            return None
        case [int() as then, [*names]] if then == cpu and all(isinstance(name, str) for name in names):
            return list(names)
    found = read_features(command, environ, patience)
    answers["features"] = [cpu, found]
    kept.write(answers)
    return found


def read_features(
    command: Sequence[str], environ: Mapping[str, str], patience: Patience | None = None
) -> list[str] | None:
    """The features by name, sorted; ``None`` when the engine does not say. Raises SilentError when it hangs."""
    from gezel_rules.engines.ask import ask
    from gezel_rules.engines.llama_cpp.engine_output import parse_features

    plain = {name: value for name, value in environ.items() if not name.startswith(STEERING)}
    try:
        said = ask([*command, *QUESTION], plain, patience=patience, any_status=True)
    except SilentError:
        raise
    except (BadInput, EngineFailed):
        return None
    found = parse_features(said.err) or parse_features(said.out)
    return None if found is None else list(found)


def processor_of(features: Sequence[str] | None, processors: Processors) -> str | None:
    """The last row of policy's ``processors`` that asks for no feature which is not there; ``None``: none does."""
    found = [name for name, row in processors.items() if set(row.features) <= set(features or ())]
    return found[-1] if found else None


def cpu_digest() -> int:
    """A number that is another one on another kind of processor: one build may bring code for several."""
    try:
        with _CPU.open("rb") as file:
            first = file.read(8192).partition(b"\n\n")[0].decode("utf-8", "replace")
    except OSError:
        import platform

        first = f"flags {platform.machine()} {platform.processor()}"
    return zlib.crc32("\n".join(line for line in first.splitlines() if line.startswith(_TELLING)).encode())
