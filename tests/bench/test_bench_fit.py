"""Our plan beside the engine's own ``--fit``, for the catalog's models on the described hosts: window, slots, KV type
and share of the weights on the GPUs, and where ours has less, why.

With benchmarks on, every model on every host, and a real engine asked wherever a card can be posed over RPC; else a
sample. The table comes at the end of the session (with ``--benchmark-enable`` or ``-s``).
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from engine_asked import asked, repacked
from engine_fit import MARGIN, MIB, MOE, Fit, Machine, computed, estimated
from engine_processor import processor
from fit_table import GOOD, PART, WORSE, Row, Table, benching

from gezel_rules.engines.llama_cpp.loading import loading_of
from gezel_rules.engines.llama_cpp.memory.estimate import Estimate, estimate_geometry
from gezel_rules.engines.llama_cpp.memory.host_buffers import HOST
from gezel_rules.engines.pools import gpus
from gezel_rules.planner.plan import Plan, plan_with
from gezel_rules.planner.report import explainer, refusal
from gezel_rules.planner.summary import summary

TESTS = Path(__file__).parents[1]
MEMORY = TESTS / "engines" / "llama_cpp" / "memory"
sys.path[:0] = [str(path) for path in (TESTS, MEMORY, TESTS / "planner") if str(path) not in sys.path]

from engine_truth import index, shape, sparse  # noqa: E402
from rpc_servers import binaries, lending  # noqa: E402
from shipped import HOSTS, MODELS, plan  # noqa: E402

SAMPLE = ("rtx-4090", "cpu-32g")
POSED = ("llama-3.1-8b", "qwen3-30b-a3b")
"""Models a real engine is asked about where benchmarks are off."""


@pytest.fixture(scope="session")
def table(pytestconfig) -> Table:
    """The table of this session."""
    found = Table()
    pytestconfig.pluginmanager.register(found)
    return found


def on_gpu(found: Estimate, full: Estimate) -> float | None:
    """Weights on devices, as a share of those that can be."""
    here, there = (sum(pool.model_bytes for pool in each.pools[:-1]) for each in (found, full))
    return here / there if there else None


def our_share(made: Plan) -> float | None:
    """The share a plan puts on the GPUs."""
    placed = made.fit.placed(loading_of(made.trace))
    whole = placed.launch._replace(n_gpu_layers=None, n_cpu_moe=0, override_tensor=())
    return on_gpu(placed.estimate, estimate_geometry(made.fit.geometry, whole))


def machine_of(made: Plan, *, copies: bool = True) -> Machine:
    """The described host as --fit sees it; its cards copy host weights as ours are planned to."""
    facts = made.trace.facts
    free = tuple(card["free_bytes"] for card in gpus(facts["devices"].value).cards)
    return Machine(free, facts["host.ram_total"].value, copies, tuple(size - MARGIN for size in free))


def whole(fit: Fit) -> bool:
    """Every weight is on a device."""
    return not any(part.part for part in fit.parts)


def plain(fit: Fit) -> Fit:
    """Without the kind of a part that there is none of."""
    return fit._replace(parts=tuple(p if p.part else p._replace(kind=MOE) for p in fit.parts))


def row_of(model: str, host: str, answer: Fit | None = None, uncounted: int = 0) -> Row:
    """One row; ``answer``: what a real engine said, where every weight is on the devices; ``uncounted``: what it would
    overlook of the RAM."""
    made = plan(model, host)
    geo, machine = made.fit.geometry, machine_of(made)._replace(uncounted=uncounted)
    fit = answer or computed(geo, machine)
    found = estimated(fit, geo, machine)
    theirs = on_gpu(found, estimated(Fit(fit.ctx), geo, machine))
    over = any(pool.total > free for pool, free in zip(found.pools, machine.free, strict=False))
    verdict, settings = judged(made, fit, theirs, machine)
    source, same = "asked" if answer else "computed", fine(made, fit, theirs, verdict, settings)
    return Row(model, host, said(made), our_share(made), f"{fit.ctx:,}", theirs, source, verdict, settings, same, over)


def fine(made: Plan, fit: Fit, share: float | None, verdict: str, settings: dict[str, Any]) -> bool | None:
    """Where ours reaches theirs with a coarser cache than the engine's own: whether it does with that one too, in one
    slot as theirs."""
    own = made.trace.policies.tables["engine_defaults"]["memory"]["cache_type"]
    if not (settings or verdict == GOOD) or plan_with(made, settings).trace.value("kv.type") == own:
        return None
    return reaches(plan_with(made, {"window": fit.ctx, **ASKING[-1][1], "kv_type": own}), fit.ctx, share)


def said(made: Plan) -> str:
    """Window × slots, KV type and drafts of a plan."""
    if made.refused:
        return f"refused: {made.trace.value('refusal')}"
    window, slots, kv, spec = (made.trace.value(n) for n in ("window.tokens", "slots.count", "kv.type", "spec.type"))
    return f"{window:,} × {slots} {kv}{'' if spec == 'none' else ' ' + spec}"


def reaches(made: Plan, window: int, share: float | None) -> bool:
    """Whether a plan has that window in each slot and that share of the weights on the GPUs."""
    own = our_share(made)
    return not made.refused and made.trace.value("window.tokens") >= window and (share is None or (own or 0) >= share)


ASKING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    (" with one slot", {"slots": 1}),
    (" without drafts", {"slots": 1, "spec_type": "none"}),
    (" without drafts and vision", {"slots": 1, "spec_type": "none", "vision": False}),
)


def judged(made: Plan, fit: Fit, share: float | None, machine: Machine) -> tuple[str, dict[str, Any]]:
    """The verdict, and the settings under which our plan reaches theirs."""
    if reaches(made, fit.ctx, share):
        return GOOD, {}
    if made.refused:
        return "; ".join(filter(None, (f"refused: {_refusal(made)}", _overdrawn(made, fit, machine)))), {}
    for how, settings in ASKING:
        wish = {"window": fit.ctx, **settings}
        again = plan_with(made, wish)
        if reaches(again, fit.ctx, share):
            aims = f"policy aims for {made.trace.value('window.wanted'):,}"
            return f"{aims}; asked for {fit.ctx:,}{how} it gives {said(again)}{_at(again)}", wish
    return _overdrawn(made, fit, machine) or _less(again, fit, machine), {}


def _less(bare: Plan, fit: Fit, machine: Machine) -> str:
    """What is missing when even the barest plan of their window has less; the engine may split one layer's experts per
    device, ours move as wholes."""
    geo = bare.fit.geometry
    theirs = sum(pool.model_bytes for pool in estimated(fit, geo, machine).pools[:-1])
    missing = theirs - sum(pool.model_bytes for pool in bare.fit.estimate(bare.trace).pools[:-1])
    layer = max(sum(w.bytes for w in geo.weights if w.experts and w.place == n) for n in range(geo.trunk))
    split = sum(bool(part.part) and part.kind != MOE for part in fit.parts)
    small = reaches(bare, fit.ctx, None) and missing <= split * layer
    gives = f"asked for {fit.ctx:,} it gives {said(bare)}{_at(bare)} {_refusal(bare)}".strip()
    return f"{PART if small else WORSE}: {gives}, {missing / MIB:,.0f} MiB less on the GPU"


def _at(made: Plan) -> str:
    share = our_share(made)
    return "" if share is None else f", {share:.1%} on the GPU"


def _refusal(made: Plan) -> str:
    found = refusal(made, explainer(made))
    if found is None:
        return ""
    missing = found.get("shortfall_bytes")
    return found["because"] + (f" ({missing / MIB:,.0f} MiB short)" if missing else "")


def _overdrawn(made: Plan, fit: Fit, machine: Machine) -> str:
    """What the engine's own choice would take that is not there: it looks at the RAM's size, not at what is free, and
    not at all beside a GPU."""
    need = estimated(fit, made.fit.geometry, machine).pools[-1].total
    ram = made.fit.inputs.ram
    usable = ram.usable or 0
    if need <= usable:
        return ""
    return f"--fit takes {need / MIB:,.0f} MiB of RAM, of which {usable / MIB:,.0f} may be used ({ram.why})"


# ---- the real engine


def posing(machine: Machine, memory: int) -> tuple[int, ...] | None:
    """Margins in MiB that make devices of ``memory`` bytes look like these; ``None``: they are too large."""
    margins = tuple((memory - target) // MIB for target in machine.target)
    return margins if margins and min(margins) >= 0 else None


@cache
def _offered() -> int:
    """Bytes an RPC device on loopback reports: the machine's RAM."""
    import psutil

    return psutil.virtual_memory().total


@cache
def header_file(model: str) -> str | None:
    """The real header with the catalog entry's tensors."""
    squeezed = model.replace("-", "")
    names = [name for name in index() if name.removesuffix(".gguf").replace("-", "") == squeezed]
    if not names:
        return None
    ours = {(w.name, w.bytes) for w in plan(model, HOSTS[0]).fit.geometry.weights}
    theirs = {(w.name, w.bytes) for w in shape(names[0]).weights}
    return names[0] if ours == theirs else None


@cache
def engine_says(model: str, margins: tuple[int, ...], directory: Path) -> Fit | None:
    """A real engine's answer for devices with those margins."""
    name, (server, lender) = header_file(model), binaries()
    if name is None:
        return None
    path = sparse(name, directory)
    try:
        with lending(lender, len(margins)) as rpc:
            return asked(server, rpc, path, shape(name).trained, margins)
    finally:
        path.unlink()


def overlooked(made: Plan, directory: Path) -> int:
    """Bytes that fit forgets without a GPU: asked where the engine at hand packs as the plan says, else the plan's."""
    name = header_file(made.subject.id)
    if name is None:
        return 0
    if made.trace.value("processor.used") != processor(binaries()[:1]):
        return sum(size for buffer, size in made.estimate.buffers.items() if buffer != HOST)
    path = sparse(name, directory)
    try:
        return repacked(binaries()[0], path)
    finally:
        path.unlink()


def ask(model: str, host: str, directory: Path, table: Table) -> None:
    """The engine's answer where the host's cards can be posed: held against the computed one, and kept for the rows
    where it leaves no weight on the host (a posed card copies no host weights for large batches, a real one does)."""
    made = plan(model, host)
    machine = machine_of(made, copies=False)
    margins = posing(machine, _offered())
    answer = engine_says(model, margins, directory) if margins else None
    if answer is not None and margins is not None:
        table.agreed.append((model, host, agrees(made, margins, answer)))
        if whole(answer) and not answer.failed:
            table.answers[model, host] = answer


def agrees(made: Plan, margins: tuple[int, ...], answer: Fit) -> bool:
    """Whether the computation gives the engine's answer, window and layers."""
    free = (_offered(),) * len(margins)
    posed = Machine(free, _offered(), False, tuple(_offered() - margin * MIB for margin in margins))
    return plain(computed(made.fit.geometry, posed)) == plain(answer)


@pytest.mark.engine
def test_the_computed_fit_is_the_engines_on_smaller_cards(tmp_path):
    for model in POSED:
        for gib in ((6,), (3, 5)):
            margins = tuple(_offered() // MIB - size * 1024 for size in gib)
            answer = engine_says(model, margins, tmp_path)
            assert answer is not None
            assert agrees(plan(model, HOSTS[0]), margins, answer), (model, gib, answer)


@pytest.mark.engine
@pytest.mark.parametrize("model", POSED)
def test_the_computed_fit_of_the_ram_is_the_engines(model, table, tmp_path):
    name, target = header_file(model), 6 << 30
    path, geo = sparse(name, tmp_path), shape(name)
    machine = Machine((), target + MARGIN, False, (), repacked(binaries()[0], path), processor(binaries()[:1]))
    answer = asked(binaries()[0], (), path, geo.trained, ((_offered() - target) // MIB,))
    # what the engine repacks is printed in whole MiB: a few tokens of window
    assert abs(computed(geo, machine).ctx - answer.ctx) <= 512, (computed(geo, machine), answer)


@pytest.mark.engine
@pytest.mark.parametrize("host", HOSTS)
def test_the_engine_is_asked_about_cards_that_can_be_posed(host, table, tmp_path, pytestconfig):
    machine = machine_of(plan(MODELS[0], host))
    if not machine.free:  # its rows are computed, with what this engine overlooks
        table.overlooked |= {model: overlooked(plan(model, host), tmp_path) for model in MODELS}
    if posing(machine, _offered()) is None:
        return  # no cards, or larger than this machine's memory: its rows are computed
    begun = len(table.agreed)
    for model in MODELS if benching(pytestconfig) else POSED[:1]:
        ask(model, host, tmp_path, table)
    new = table.agreed[begun:]
    assert sum(right for _, _, right in new) >= 0.9 * len(new), [row for row in new if not row[2]]


@pytest.mark.parametrize("host", HOSTS)
def test_a_plan_reaches_what_fit_reaches_or_says_why_not(host, table, pytestconfig):
    whole_table = benching(pytestconfig)
    for model in MODELS if whole_table else MODELS[:: 1 if host in SAMPLE else 10]:
        row = row_of(model, host, table.answers.get((model, host)), table.overlooked.get(model, 0))
        table.rows.append(row)
        assert row.verdict, (model, host)
        if row.settings:
            wishes = tuple(f"{name}={str(value).lower()}" for name, value in row.settings.items())
            again = plan(model, host, wishes)
            figures = summary(again, explainer(again))
            assert not again.refused and figures["window"] >= row.settings["window"], (model, host, figures)
