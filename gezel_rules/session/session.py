"""What one user can ask for, with plain arguments: plan, pull, launch, serve. Directories are resolved once.

Commands parse, call this, and print; what is done here does not know that there is a command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gezel_rules import DEFAULT_FAMILY, places
from gezel_rules.errors import BadInput, Refused
from gezel_rules.record import NamedTuple

if TYPE_CHECKING:
    from gezel_rules.catalog import Entry
    from gezel_rules.catalog.references import Reference
    from gezel_rules.engines.family import Program
    from gezel_rules.engines.protocol import Family
    from gezel_rules.planner.known import Known
    from gezel_rules.planner.plan import Plan, Request
    from gezel_rules.planner.subject import Places, Remote
    from gezel_rules.policy.model import PolicySet
    from gezel_rules.runtime.interrupts import Interrupts
    from gezel_rules.runtime.launch import Death
    from gezel_rules.runtime.order import Guide, Launched, Order
    from gezel_rules.runtime.rules import Supervision
    from gezel_rules.runtime.supervise import Access
    from gezel_rules.store.wanted import InstalledFile


class Conditions(NamedTuple):
    """What a plan depends on besides MODEL: settings as ``NAME=VALUE``, a described host (a file, or a name in the
    catalog), and the program to use (a path, or the family's word for one)."""

    settings: tuple[str, ...] = ()
    host: str | None = None
    engine: str | None = None


HERE = Conditions()
"""This machine, the engine found, nothing set."""


class Prepared(NamedTuple):
    """A plan ready to be launched: the order, the kind of request that fits the model, whom to ask on the way, the
    rules the engine is supervised by, and the files of the store that it uses, as they are recorded."""

    order: Order
    endpoint: str
    guide: Guide
    rules: Supervision
    files: tuple[InstalledFile, ...] = ()


class Directories(NamedTuple):
    """Directories, environment, site files and layers of policies (both lowest precedence first) of one user."""

    policies: Path
    catalog: Path
    store: Path
    state: Path
    cache: Path
    environ: Mapping[str, str]
    sites: tuple[Path, ...]
    layers: tuple[Path, ...] = ()


class Session(Directories):
    """What that user can ask for."""

    # ---- plan

    @cached_property
    def known(self) -> Known:
        """Policies and catalog, as they are when they are first asked for."""
        from gezel_rules.planner.known import Known

        return Known(self.policies, self.catalog, self.cache, self.layers)

    def family(self, name: str | None = None) -> Family:
        """The engine family of that name, or the one meant when nobody names any. Raises BadInput."""
        from gezel_rules.engines import registry

        return registry.family(name or DEFAULT_FAMILY)

    def policies_for(self, family: Family) -> PolicySet:
        """The policies that hold for a family. Raises BadInput with every problem."""
        return self.known.policies(family.name)

    def request(self, model: str, conditions: Conditions = HERE) -> Request:
        """What the planner is asked. Raises BadInput for a host that is not there."""
        from gezel_rules.planner.plan import Request

        return Request(
            model=model, policies=self.policies, cache=self.cache, environ=self.environ,
            places=self.places(), sites=self.sites,
            assignments=conditions.settings, host=self._host(conditions.host),
            program=lambda family: self.program(family, conditions.engine),
            held=self._held(), broke=self._broke, known=self.known,
        )  # fmt: skip

    def places(self) -> Places:
        """Where a MODEL is looked for."""
        from gezel_rules.planner.subject import Places

        return Places(self.catalog, self.store, self.on_shelf, self.cache, self._elsewhere)

    def _elsewhere(self, reference: Reference) -> Remote:
        from gezel_rules.session.offered import elsewhere

        return elsewhere(self, reference)

    def plan(self, model: str, conditions: Conditions = HERE) -> Plan:
        """The launch that policy decides for MODEL. Raises BadInput."""
        from gezel_rules.planner.plan import make_plan

        return make_plan(self.request(model, conditions))

    def program(self, family: Family, engine: str | None = None) -> Program | None:
        """The family's program; ``None`` when none is found. Raises BadInput when one was named and is not there."""
        try:
            return family.find(engine, self.environ, places.chosen(self.policies))
        except BadInput:
            if engine or self.environ.get(family.variable):
                raise
            return None

    def on_shelf(self, model: str) -> Any:
        """What the store holds of a model; the store's code is loaded only when there is something to read."""
        if not self.store.is_dir() or ("/" not in model and not (self.store / model).is_dir()):
            return None  # a catalog id's directory has its name
        from gezel_rules.store.shelf import find_installed

        return find_installed(self.store, model, to_stderr)

    def _host(self, host: str | None) -> Path | None:
        if not host:
            return None
        given, named = Path(host), self.catalog / "hosts" / f"{host}.yaml"
        return given if given.exists() or "/" in host or not named.is_file() else named

    def _held(self) -> dict[str, int]:
        if not (self.state / "leases").is_dir():
            return {}
        from gezel_rules.runtime.leases import held

        return held(self.state)

    def _broke(self, build: str, part: str) -> bool:
        if not self.state.is_dir():
            return False
        from gezel_rules.runtime.recover import is_broken

        return is_broken(self.state, build, part)

    # ---- catalog

    def entry(self, model: str) -> Entry:
        """A catalog entry by its id, held against the policies it will be planned by. Raises BadInput."""
        from gezel_rules.catalog import find, ids
        from gezel_rules.planner.catalog_words import checks

        return find(self.catalog, model, self.cache, checks(self.tables, lambda: ids(self.catalog)))

    def tables(self, family: str) -> Mapping[str, Any]:
        """The tables of a family's policies. Raises BadInput."""
        return self.policies_for(self.family(family)).tables

    # ---- pull

    def pull(self, plan: Plan) -> None:
        """Install what a planned launch needs. Raises BadInput, TransferFailed."""
        from gezel_rules.session.installs import installs_for
        from gezel_rules.store.install import install
        from gezel_rules.store.progress import progress_for

        progress = progress_for()
        try:
            for wanted in installs_for(self, plan):
                install(wanted, self.store, progress)
        finally:
            progress.close()

    # ---- launch

    def rules(self, family: Family) -> Supervision:
        """How a family's engines are supervised. Raises BadInput."""
        from gezel_rules.runtime.rules import supervision

        return supervision(self.policies_for(family))

    def prepare(self, model: str, conditions: Conditions, say: Callable[[str], None]) -> Prepared:
        """The order for MODEL, pulled if needed: planned, pulled, and planned again on the real header. ``say`` hears
        what is worth a line on the way. Raises BadInput, Refused when policy says no, TransferFailed."""
        from gezel_rules.runtime.supervise import wanted_address
        from gezel_rules.session.ordering import guide_of, order_of
        from gezel_rules.store.launch_files import used_by

        plan = self._launchable(model, conditions)
        rules = self.rules(plan.subject.family)
        wanted_address(plan.argv, rules)  # a port that is taken is said before anything is fetched
        if not plan.subject.installed:
            self.pull(plan)
            plan = self._launchable(model, conditions)
        order, endpoint = order_of(plan), plan.trace.value("prompt.endpoint")
        return Prepared(order, endpoint, guide_of(plan, say, self._held), rules, used_by(order.argv, self.store))

    def _launchable(self, model: str, conditions: Conditions) -> Plan:
        """The plan for this machine. Raises BadInput without an engine, Refused when policy says no."""
        from gezel_rules.planner.report import explainer, refusal

        plan = self.plan(model, conditions)
        if plan.program is None:
            plan.subject.family.find(conditions.engine, self.environ, places.chosen(self.policies))  # says why
        found = refusal(plan, explainer(plan))
        if found is None:
            return plan
        nearest = f"; nearest: {found['nearest']}" if "nearest" in found else ""
        raise Refused(f"{plan.subject.id}: {found['because']}{nearest}")

    @contextmanager
    def launched(
        self, prepared: Prepared, interrupts: Interrupts, tick: Callable[[float], None] | None = None,
        access: Access | None = None,
    ) -> Iterator[Launched]:  # fmt: skip
        """A ready engine for the length of the block; ``tick`` hears the seconds waited for it; ``access``: how clients
        reach it already. Raises Refused for a file of the store that is not what was installed, EngineFailed when the
        engine does not start and every recovery step is spent, BadInput."""
        from gezel_rules.runtime.launch import launched
        from gezel_rules.runtime.supervise import NO_CLIENTS
        from gezel_rules.store.launch_files import confirmed

        confirmed(self.store, prepared.files, prepared.guide.say)
        guide, known = prepared.guide._replace(tick=tick), access or NO_CLIENTS
        with launched(prepared.order, guide, prepared.rules, self.state, self.environ, interrupts, known) as engine:
            yield engine

    @contextmanager
    def holding(self, prepared: Prepared) -> Iterator[Prepared]:
        """The same, its files known to be those that were installed, and kept for the length of the block: an update or
        a removal leaves them until then. Raises Refused."""
        from gezel_rules.store.holds import holding
        from gezel_rules.store.launch_files import confirmed, generations
        from gezel_rules.store.leftovers import tidy

        folders = generations(prepared.files)
        try:
            with holding(folders):
                files = confirmed(self.store, prepared.files, prepared.guide.say)
                yield prepared._replace(files=files)
        finally:
            tidy(self.store, {folder.parent.name for folder in folders})

    def death(self, prepared: Prepared, engine: Launched) -> Death | None:
        """How an engine ended that ended on its own, or does within a second; ``None`` while it lives."""
        from gezel_rules.runtime.launch import death_of

        return death_of(engine, prepared.guide, self.state) if engine.ended(1.0) else None


def session_for(
    policies: Path | None, catalog: Path | None, store: Path | None, layers: Sequence[Path] = ()
) -> Session:  # fmt: skip
    """The session of this process's user: directories as chosen, else as variables and platform say; ``layers`` above
    those of site and user. Raises BadInput when the store is a file."""
    where = store or places.store_dir()
    if where.is_file():
        raise BadInput(f"{where}: is a file, not a store of models")
    environ = places.with_layers(os.environ, layers)  # engines of this package are started with it, and see them too
    return Session(
        policies or places.policies_dir(), catalog or places.catalog_dir(), where, places.state_dir(),
        places.cache_dir(), environ, places.site_files(), places.layer_files(environ),
    )  # fmt: skip


def to_stderr(line: str) -> None:
    """A line for the person who waits."""
    print(f"gezel-rules: {line}", file=sys.stderr, flush=True)
