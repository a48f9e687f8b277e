"""Differences between a verdict and the model, as text, with a smaller program that shows them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import evolve

import xbuild as xb
from interpreter import Limits, Stopped, execute
from xbuild.checking import Verdict
from xbuild.core.memos import memos

from .programs import Data, Op, Ops, Program
from .runs import Judgement, all_data, ends, judged
from .writer import Written, written

LIMITS = Limits(seconds=20)
SAMPLES = 2


def checked(program: Program) -> tuple[Written, Verdict]:
    made = written(program)
    return made, xb.check(made.module, send_buffers=program.send_buffers, infeed=program.infeed)


def disagreement(program: Program, *, is_small: bool = True, runs: bool = True) -> str | None:
    """What is wrong with the verdict, or None; of a large program only by running it."""
    return compared(program, is_small=is_small, runs=runs)[1]


def compared(program: Program, *, is_small: bool, runs: bool) -> tuple[Verdict, str | None]:
    """The verdict, and what is wrong with it."""
    made, verdict = checked(program)
    judgement = judged(program) if is_small else None
    if judgement is not None and (wrong := _against(judgement, verdict)):
        return verdict, wrong
    return verdict, (_runs(program, made, verdict) or _repair(program, made, verdict) if runs else None)


def _against(judgement: Judgement, verdict: Verdict) -> str | None:
    kind = "deadlock" if verdict.refused else verdict.kind
    if kind != judgement.kind:
        return f"{judgement.kind} in all runs, and the verdict is {verdict.kind}: {verdict}"
    if kind == "ok" and verdict.scope == "every" and not judgement.every:
        return f"ok for every schedule, and some do not run: {verdict}"
    return None


def outcome(made: Written, data: Data, *, check: bool) -> Any:
    """The results of a run, or its report where it stops."""
    buffers = made.program.send_buffers
    try:
        inputs, infeed = made.inputs(data), made.infeed()
        return execute(made.module, inputs, infeed=infeed, send_buffers=buffers, limits=LIMITS, check=check)
    except Stopped as stopped:
        return stopped.report


def _samples(program: Program) -> list[Data]:
    """Some data, drawn by what the program is; where there is little to decide, all of it."""
    rng = random.Random(str(program.domains))
    drawn = [
        tuple(tuple(rng.choice(domain) for domain in program.domains) for _ in range(program.devices))
        for _ in range(SAMPLES)
    ]
    alike = [(tuple(domain[n % len(domain)] for domain in program.domains),) * program.devices for n in (0, 1)]
    return list(dict.fromkeys([*alike, *drawn]))


def _runs(program: Program, made: Written, verdict: Verdict) -> str | None:
    for data in _samples(program):
        result = outcome(made, data, check=not verdict.refused)
        stops = not isinstance(result, list)
        if stops and result.kind not in ("deadlock", "infeed_starved"):
            return f"the run came to no end: {result}"
        if stops and not (result.cause and any(state.cause for state in result.devices)):
            return f"the report names no cause: {result}"
        if (verdict.kind == "ok" and stops) or (verdict.refused and not stops):
            return f"the verdict is {verdict.kind}, and with {data} the run {'stops' if stops else 'ends'}: {verdict}"
        if program.is_given and stops == ends(program, data):
            return f"with {data} the run {'stops' if stops else 'ends'}, and the model not: {result}"
    return None


def _repair(program: Program, made: Written, verdict: Verdict) -> str | None:
    """Each repair is right: checked again it is ok, it runs, and gives what any order gives."""
    if verdict.repair is None:
        return None
    data = next(all_data(program))
    buffers = program.send_buffers
    schedule: Any = {device: dict(orders) for device, orders in verdict.repair.orders.items()}
    mended = xb.check(made.module, schedule=schedule, send_buffers=buffers, infeed=program.infeed)
    if mended.refused or any(found.cause != "STARVED" for found in mended.findings):
        return f"repaired it is {mended.kind}: {verdict}\n{mended}"
    memos(made.module, "verdicts")[buffers] = mended
    free = written(evolve(program, is_given=False))
    first, second = outcome(made, data, check=True), outcome(free, data, check=True)
    same = isinstance(first, list) and isinstance(second, list) and all(map(np.array_equal, first, second))
    return None if same else f"repaired it gives {first}, and free {second}: {verdict}"


def smallest(program: Program) -> Program:
    """The program with all left out that is not needed for the disagreement."""
    while True:
        smaller = next((each for each in _smaller(program) if _disagrees(each)), None)
        if smaller is None:
            return program
        program = smaller


def _disagrees(program: Program) -> bool:
    try:
        return disagreement(program) is not None
    except Exception:
        return False


def _smaller(program: Program) -> Iterator[Program]:
    """The program without an event or a unit, without one of its edges, or with a unit's inside in its place."""
    names = dict.fromkeys(name for ops in program.lists for name in _names(ops))
    for name in names:
        yield evolve(program, lists=tuple(_without(ops, name) for ops in program.lists))
    for name in names:
        yield evolve(program, lists=tuple(_loose(ops, name) for ops in program.lists))


def _names(ops: Ops) -> Iterator[str]:
    for op in ops:
        yield op.name
        for inner in op.inside:
            yield from _names(inner)


def _without(ops: Ops, name: str) -> Ops:
    """Without an op, and without all of its event; who came after it comes after nothing."""
    number = next((op.number for op in ops if op.name == name and op.number), None)
    gone = {op.name for op in ops if op.name == name or (number is not None and op.number == number)}
    return tuple(
        evolve(op, after=op.after - gone, inside=tuple(_without(inner, name) for inner in op.inside))
        for op in ops
        if op.name not in gone
    )


def _loose(ops: Ops, name: str) -> Ops:
    def loosened(op: Op) -> Op:
        needed = {other.name for other in ops if other.number == op.number and op.number}
        after = op.after & (needed | {"agreed"}) if op.name == name else op.after
        return evolve(op, after=after, inside=tuple(_loose(inner, name) for inner in op.inside))

    return tuple(map(loosened, ops))
