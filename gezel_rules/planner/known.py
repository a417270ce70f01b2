"""What the plans of one session have in common, each read once: policies, catalog entries, the models they describe.

Whoever plans more than one launch holds one and hands it over with every request; a request without one gets its own.
What people said, what is installed and what this machine offers is looked at anew for every plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gezel_rules.engines import registry
from gezel_rules.errors import BadInput
from gezel_rules.planner.policies import read_policies

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.catalog.read import Further
    from gezel_rules.engines.protocol import ModelFile
    from gezel_rules.policy.model import PolicySet


class Known:
    """Policies by engine family, with the ``layers`` laid over them, and the catalog's entries: as they are when they
    are first asked for."""

    def __init__(self, policies: Path, catalog: Path, cache: Path | None, layers: Sequence[Path] = ()) -> None:
        self._policies, self._catalog, self._cache, self._layers = policies, catalog, cache, layers
        self._sets: dict[str, PolicySet] = {}

    def policies(self, family: str) -> PolicySet:
        """The policies of an engine family. Raises BadInput with every problem."""
        if family not in self._sets:
            known = registry.family(family)
            self._sets[family] = read_policies(self._policies, known, self._cache, self._layers)
        return self._sets[family]

    @cached_property
    def entries(self) -> Entries:
        """The catalog's entries, held against the policies."""
        from gezel_rules.catalog.find import ids
        from gezel_rules.planner.catalog_words import checks

        further = checks(lambda family: self.policies(family).tables, lambda: ids(self._catalog))
        return Entries(self._catalog, self._cache, further)


class Entries:
    """The entries of a catalog, and the models they describe. ``further``: what else must hold of an entry."""

    def __init__(self, catalog: Path, cache: Path | None, further: Further | None = None) -> None:
        self._catalog, self._cache, self._further = catalog, cache, further
        self._entries: dict[str, Entry] = {}
        self._models: dict[tuple[str, str], ModelFile | None] = {}

    def entry(self, model: str) -> Entry:
        """The entry of that id. Raises BadInput, with the nearest id when it is unknown."""
        if model not in self._entries:
            from gezel_rules.catalog.find import find

            self._entries[model] = find(self._catalog, model, self._cache, self._further)
        return self._entries[model]

    def model(self, entry: Entry) -> ModelFile | None:
        """The model as its entry describes it. Raises BadInput with what is wrong with all its descriptions."""
        return self._described("model", registry.family(entry.engine).described_model, entry)

    def drafter(self, entry: Entry) -> ModelFile | None:
        """Its drafter, in the same way."""
        return self._described("drafter", registry.family(entry.engine).described_drafter, entry)

    def _described(self, what: str, read: Callable[[Entry], ModelFile | None], entry: Entry) -> ModelFile | None:
        if (entry.id, what) not in self._models:
            try:
                self._models[entry.id, what] = read(entry)
            except BadInput as error:
                from gezel_rules.planner.catalog_words import header_faults

                raise BadInput(header_faults(entry.values) or error.problems) from None
        return self._models[entry.id, what]
