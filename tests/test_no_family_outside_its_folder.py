"""One family's words stand in its folder: elsewhere only where a reason is given."""

from __future__ import annotations

import re
from pathlib import Path

CODE = Path(__file__).parent.parent / "gezel_rules"
WORDS = re.compile(r"llama|gguf|ggml", re.IGNORECASE)
FAMILY = ("engines/llama_cpp/",)
ALLOWED = {
    "__init__.py": "the family meant where none is named",
    "engines/registry.py": "the list of families",
    "gguf/": "the file format, which is a room of its own",
    "store/repository.py": "'-GGUF' at the end of a hub repository's name is no part of the model's",
    "policy/file.py": "the precedence level of what a model's header says, as records and traces have always named it",
    "decisions/explain.py": "the same level in words",
    "catalog/references.py": "hub repositories and URLs name single model files by their suffix",
    "cli/__init__.py": "the help names the variable of the default family's program",
}


def test_no_other_module_speaks_of_llama_cpp() -> None:
    found = {
        path.relative_to(CODE).as_posix()
        for path in CODE.rglob("*.py")
        if WORDS.search(path.read_text()) and not path.relative_to(CODE).as_posix().startswith(FAMILY)
    }
    assert {name for name in found if not any(name.startswith(place) for place in ALLOWED)} == set()
    unneeded = {place for place in ALLOWED if not any(name.startswith(place) for name in found)}
    assert unneeded == set(), "an exception that nothing needs any more"
