"""Where a verdict and the model part, in words."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

import xbuild as xb
from interpreter import Limits, Stopped, execute

from .model.judge import Judgement, all_data, interleavings, judged, outcomes, run
from .model.machine import Data, Orders
from .program import Computation, Program
from .text import parsed
from .values import Code, compiled

LIMITS = Limits(seconds=20)
MOST_RUNS = 3
STRUCTURE = ("nest_mismatch", "missing_participant", "companion_conflict")


@frozen(eq=False)
class Compared:
    """A program's judgement and verdict, what is unsound in the verdict, and whether it says less than is so."""

    judgement: Judgement
    verdict: Any
    unsound: str | None
    vague: bool

    @property
    def kind(self) -> str:
        return f"{self.judgement.kind or 'unknown'}, verdict {self.verdict.kind}"


def check(program: Program, module: Any) -> Any:
    infeed = None if program.infeed is None else dict(enumerate(program.infeed))
    return xb.check(module, send_buffers=program.send_buffers, infeed=infeed)


def compared(program: Program, *, runs: bool = False) -> Compared:
    """The verdict against all orders and data; with `runs` the model also against runs and all interleavings."""
    module = parsed(program)
    verdict = check(program, module)
    judgement = judged(program, is_every_asked=verdict.scope == "every")
    wrong = _schedule(program, verdict) or _scope(program, verdict)
    if "each device has an order of its own" not in str(verdict):  # the model has one for all devices of one program
        wrong = against(judgement, verdict) or wrong
    if runs and not wrong:
        wrong = against_runs(program, module, verdict)
    vague = verdict.kind == "depends" and judgement.kind in ("ok", "deadlock")
    return Compared(judgement, verdict, wrong, vague)


def against(judgement: Judgement, verdict: Any) -> str | None:
    """What a verdict claims that is not so."""
    if verdict.kind == "ok" and judgement.some is False:
        return f"it ends {'never' if judgement.ever is False else 'with some data only'}, and the verdict is ok"
    if verdict.kind == "ok" and verdict.scope == "every" and judgement.every is False:
        return "in some order it does not end, and the verdict is ok in every order"
    if verdict.refused and judgement.ever:
        structure = verdict.kind == "error" and verdict.findings[0].kind in STRUCTURE
        if not (structure and not judgement.some):
            return f"it ends {'always' if judgement.some else 'with some data'}, and the verdict is {verdict.kind}"
    return None


def _schedule(program: Program, verdict: Any) -> str | None:
    """The order that a verdict tells for a program that has none: it ends with all data."""
    if verdict.kind != "ok" or program.is_given:
        return None
    orders = tuple(_order(program.entries[d], verdict.orders(d)) for d in range(program.devices))
    return None if outcomes(program, orders) == {True} else "the verdict is ok, and its order does not end"


def _order(entry: Computation, told: Any) -> Orders:
    names = {computation.name: [each.name for each in order] for computation, order in told}
    found: dict[Computation, Code] = {}
    for computation in entry.reached():
        if computation.name in names:
            by_name = {each.name: each for each in computation.instructions}
            found[computation] = compiled(computation, [by_name[name] for name in names[computation.name]])
    return found


def _scope(program: Program, verdict: Any) -> str | None:
    """A deadlock in every order is one in each of the orders that the given one is not."""
    if verdict.kind != "deadlock" or verdict.scope != "every" or not program.is_given or program.seed % 4:
        return None
    free = judged(evolve(program, is_given=False))
    return "the verdict is deadlock in every order, and in another it ends" if free.ever else None


def against_runs(program: Program, module: Any, verdict: Any) -> str | None:
    """Real runs with some data end as the model says, and so do all interleavings."""
    if not program.is_given:
        return None
    for number, data in enumerate(all_data(program)):
        ends = run(program, data).ends
        if number == 0 and interleavings(program, data) not in (None, {ends}):
            return f"with {data} the model ends in {interleavings(program, data)} by how devices take turns"
        if number < MOST_RUNS or number % 17 == 0:
            came = run_ends(program, module, data, checks=not verdict.refused)
            if came is not ends:
                return f"with {data} the run {'ends' if came else 'stops'}, and the model {'ends' if ends else 'not'}"
    return None


def run_ends(program: Program, module: Any, data: Data, *, checks: bool = False) -> bool:
    """Whether a run with this data comes to its end."""
    from .builder import SLOTS

    inputs = [[[*row, *[0] * (SLOTS - len(row))], [1.0, 2.0]] for row in data]
    counts = program.infeed or (0,) * program.devices
    infeed = {device: [0] * count for device, count in enumerate(counts)}
    try:
        execute(module, _arrays(inputs), infeed=infeed, send_buffers=program.send_buffers, limits=LIMITS, check=checks)
    except Stopped as stopped:
        if stopped.report.kind not in ("deadlock", "infeed_starved", "collective_mismatch", "transfer_mismatch"):
            raise
        return False
    return True


def _arrays(inputs: list[list[Any]]) -> list[list[Any]]:
    import numpy as np

    return [[np.array(numbers, np.int32), np.array(x, np.float32)] for numbers, x in inputs]
