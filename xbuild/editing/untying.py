"""Mends a deadlock that tokens or control edges cause: an instruction gets a token of its own."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import TokenShape

from ..checking import check
from ..checking.model.verdict import Verdict
from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..ops import after_all
from .editor import edit
from .rebuild import Unchanged, rebuilt

_ROUNDS = 8
"""The greatest number of ties that are loosened, one after another."""


class _Loose(Unchanged):
    """A computation in which an instruction no longer waits for some of its control predecessors."""

    def __init__(self, computation: Computation, late: Instruction, dropped: set[Instruction]) -> None:
        super().__init__(computation)
        self.late, self.dropped = late, dropped

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        if key is not self.late:
            return key.control
        return tuple([each for each in key.control if each not in self.dropped])


def untied(verdict: Verdict) -> Verdict | None:
    """The verdict on the program with tokens and control edges loosened so that it no longer deadlocks; None otherwise.

    In each round one instruction that the cycle waits for is freed from one that it comes after on its device.
    Operands other than tokens stay, so that no value changes.
    """
    for _ in range(_ROUNDS):
        if verdict.kind != "deadlock" or not verdict.findings[0].cycle:
            break
        after = [check(program, send_buffers=_buffers(verdict)) for program in _loosened(verdict)]
        better = next((each for each in after if not each.refused), None) or next(iter(after), None)
        if better is None:
            return None
        verdict = better
    return None if verdict.refused else verdict


def _buffers(verdict: Verdict) -> float:
    return 0 if verdict.asked is None else verdict.asked.send_buffers


def _loosened(verdict: Verdict) -> Iterator[Module | ModuleGroup]:
    """The programs in each of which one tie of the cycle is loosened, with as few others as possible."""
    cycle = verdict.findings[0].cycle
    for number, wait in enumerate(cycle):
        early = cycle[(number + 1) % len(cycle)].instruction
        if wait.behind and early is not wait.partner:
            found = _without_tie(verdict, wait.partner_device, wait.partner, early)
            if found is not None:
                yield found


def _without_tie(verdict: Verdict, device: int, late: Instruction, early: Instruction) -> Module | ModuleGroup | None:
    assert verdict.asked is not None
    classes = verdict.asked.program.class_of
    module = classes[device].module
    home = next((each for each in module.computations if late in each.instructions), None)
    if home is None or early not in home.instructions:
        return None
    loose = _with_own_token(module, home, late, early)
    if loose is None:
        return None
    modules = {number: loose if each.module is module else each.module for number, each in classes.items()}
    one = next(iter(modules.values()))
    return one if len(set(modules.values())) == 1 and one.num_devices == len(modules) else ModuleGroup(modules)


def _with_own_token(module: Module, home: Computation, late: Instruction, early: Instruction) -> Module | None:
    """The module in which `late` no longer follows `early`; None where an operand with data makes it follow."""
    behind = _followers(home, early)
    tied = [place for place, operand in enumerate(late.operands) if operand in behind]
    if any(not isinstance(late.operands[place].shape, TokenShape) for place in tied):
        return None
    dropped = behind.intersection(late.control)
    if not tied and not dropped:
        return None
    try:
        with edit(module) as editor:
            for place in tied:
                with editor.before(late):
                    token = after_all((), builder=editor[late].builder)
                editor.replace_operand(late, place, token)
    except BuildError:
        return None
    return _dropping(editor.result, home.name, late.name, {each.name for each in dropped})


def _dropping(module: Module, home: str, late: str, names: set[str]) -> Module:
    if not names:
        return module
    computation = next(each for each in module.computations if each.name == home)
    dropped = {computation[name] for name in names}
    return rebuilt(module, {computation: _Loose(computation, computation[late], dropped)})


def _followers(home: Computation, early: Instruction) -> set[Instruction]:
    """The instruction and all of its computation that come after it by operands and control edges."""
    found = {early}
    for each in Unchanged(home):
        if not found.isdisjoint((*each.operands, *each.control)):
            found.add(each)
    return found
