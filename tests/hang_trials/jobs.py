"""A job: groups of ranks, a program of nested loops, a fault, and what each rank launches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

Groups = list[list[int]]
Position = tuple[int, int, int, int]  # epoch, phase, step, call


@dataclasses.dataclass(frozen=True)
class Call:
    """One line of a training script: a collective of a role's group, or `wait` for all that was started."""

    op: str
    role: str = ""
    numel: int = 0
    every: int = 1
    later: bool = False
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Phase:
    name: str
    steps: int
    calls: tuple[Call, ...]


@dataclasses.dataclass(frozen=True)
class Role:
    """One group for each part of the job, such as the tensor parallel groups; a rank is in one of them or in none."""

    description: str
    groups: Groups


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    ranks: tuple[int, ...]
    at: Position = (0, 0, 0, 0)
    change: tuple[tuple[str, Any], ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.change).get(key, default)


@dataclasses.dataclass(frozen=True)
class Launch:
    """What one rank does at one place: launch a call in its group, or something that is no collective."""

    call: Call
    group: tuple[int, ...] = ()
    position: Position = (0, 0, 0, 0)

    @property
    def signature(self) -> tuple[str, int, str]:
        uneven = self.call.op == "all_to_all_uneven"
        return self.call.op, 0 if uneven else self.call.numel, self.call.dtype


@dataclasses.dataclass(frozen=True)
class Job:
    world: int
    layout: str
    roles: dict[str, Role]
    epochs: int
    setup: Phase | None
    phases: tuple[Phase, ...]
    fault: Fault | None = None
    ring: int = 2000
    dump_name: str = "trace_rank_{}"

    def group(self, role: str, rank: int) -> tuple[int, ...]:
        return next((tuple(group) for group in self.roles[role].groups if rank in group), ())

    def launches(self, rank: int) -> Iterator[Launch]:
        """What a rank does in order, with the fault if the job has one. Phase -1 is the setup."""
        fault = self.fault if self.fault and rank in self.fault.ranks else None
        if fault and fault.kind == "frozen":
            yield Launch(Call("frozen"))
            return
        loops = [(0, -1, self.setup)] if self.setup else []
        loops += [(epoch, index, phase) for epoch in range(self.epochs) for index, phase in enumerate(self.phases)]
        for epoch, index, phase in loops:
            for step in range(phase.steps):
                if fault and fault.kind == "uneven" and fault.at[:2] == (epoch, index) and step >= fault.at[2]:
                    if fault.get("then") != "continue":
                        yield Launch(Call("return"))
                        return
                    break
                calls = [call for call in phase.calls if step % call.every == call.every - 1]
                places = [n for n, call in enumerate(phase.calls) if step % call.every == call.every - 1]
                here = fault is not None and fault.kind != "uneven" and fault.at[:3] == (epoch, index, step)
                for place, call in zip(places, calls, strict=True):
                    if here and fault:
                        call = _changed(fault, place, phase) or call
                        if fault.kind == "skip" and fault.at[3] == place:
                            continue
                        if fault.kind in ("die", "sleep") and fault.at[3] == place:
                            yield Launch(Call(fault.kind))
                            return
                    group = self.group(call.role, rank) if call.role else ()
                    if group or not call.role:
                        yield Launch(call, group, (epoch, index, step, place))
        yield Launch(Call("end"))


def _changed(fault: Fault, place: int, phase: Phase) -> Call | None:
    """The call at a place of the faulty step, if the fault changes it."""
    first = fault.at[3]
    if fault.kind == "swap":
        second = fault.get("other")
        return {first: phase.calls[second], second: phase.calls[first]}.get(place)
    if fault.kind in ("size", "type", "op") and place == first:
        return dataclasses.replace(phase.calls[place], **dict(fault.change))
    return None
