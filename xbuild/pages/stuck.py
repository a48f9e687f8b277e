"""Data of a stopped run for a step page: where each device stands, whom it waits for, the cause and the repair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from ..core.graph import Instruction, Module
from ..traces import Spot, Trace


def with_standing(trace: Trace) -> Trace:
    """The trace with additional spots for the instructions at which devices stand and which no device has executed."""
    known = set(trace.spots)
    wanted = dict.fromkeys(spot for spot in _standing(trace).values() if spot not in known)
    return evolve(trace, spots=(*trace.spots, *wanted)) if wanted else trace


def stopped(trace: Trace) -> dict[str, Any] | None:
    """The report of a stopped run, in which each device has the number of its spot and a short text of its wait."""
    if trace.stop is None:
        return None
    number = {spot: place for place, spot in enumerate(trace.spots)}
    stands = {device: number[spot] for device, spot in _standing(trace).items()}
    cycle = {(step["device"], step["instruction"]): step for finding in _findings(trace) for step in finding["cycle"]}
    devices = [
        {**each, "spot": stands.get(each["device"], -1), "wants": _wants(each, cycle)} for each in trace.stop["devices"]
    ]
    return {**trace.stop, "devices": devices}


def reasons(trace: Trace) -> list[list[str]]:
    """The cause, the repair and a note, each with its label, from the refusing verdict, else from the run."""
    if not (trace.verdict and trace.verdict["refused"]):
        told = trace.stop or {}
        through = told.get("let_through")
        check = through and f"let it through, for data decide: {through}"
        pairs = [("cause", told.get("cause")), ("repair", told.get("repair")), ("check", check)]
        return [[name, text] for name, text in pairs if text]
    found = [pair for finding in _findings(trace)[:1] for pair in _of_finding(finding, trace.verdict.get("repair"))]
    return found + ([["further", "the report has more findings"]] if len(_findings(trace)) > 1 else [])


def _of_finding(finding: Mapping[str, Any], edit: Mapping[str, Any] | None) -> Iterator[list[str]]:
    yield ["cause", finding["explanation"] or finding["message"]]
    if edit is not None:
        yield ["repair", f"{edit['text']} (checked: ok)"]
    elif finding["repair"]:
        yield ["repair", finding["repair"]]
    if finding["note"]:
        yield ["note", finding["note"]]


def _findings(trace: Trace) -> list[Mapping[str, Any]]:
    return list((trace.verdict or {}).get("findings", ()))


def _wants(state: Mapping[str, Any], cycle: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    """What a device waits for and, in the cycle, the instruction after which the other device executes it."""
    step = cycle.get((state["device"], state["instruction"]))
    if step is not None:
        behind = re.match(r"after \S+", step["behind"] or "")
        return [step["waits_for"], *([behind[0]] if behind else [])]
    words = state["waits_for"] or ""
    if not state["missing"]:
        return [part for part in words.partition(", ")[::2] if part]
    return [words.partition(" to ")[2].removeprefix("come to ")]


def _standing(trace: Trace) -> dict[int, Spot]:
    """The spot of each device that stands at an instruction, read from the report: `sum in while.20, trip 2`."""
    found: dict[int, Spot] = {}
    for state in (trace.stop or {}).get("devices", ()):
        if state["stands_at"]:
            inner, *around = state["stands_at"].split(" in ")
            instruction = _named(trace, state["device"], inner.partition(",")[0], state["instruction"])
            if instruction is not None:
                found[state["device"]] = Spot(instruction, tuple(map(_label, reversed(around))))
    return found


def _label(place: str) -> str:
    """The label in the path of a spot of a place in the report, such as `conditional.2, branch 0, trip 3`."""
    name, *rest = place.split(", ")
    branch = next((_BRANCHES.get(each, each) for each in rest if each.startswith(("branch ", *_BRANCHES))), None)
    return name if branch is None else f"{name} {branch}"


_BRANCHES = {"true_computation": "branch 0", "false_computation": "branch 1"}


def _named(trace: Trace, device: int, *names: str) -> Instruction | None:
    module = trace.program if isinstance(trace.program, Module) else trace.program.modules[device]
    found = {each.name: each for computation in module.computations for each in computation.instructions}
    return next((found[name] for name in names if name in found), None)
