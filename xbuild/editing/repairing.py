"""Repairs from verdicts: the order of the repair, or a separate token for an instruction that waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from shape_inference import TokenShape

from ..checking import check
from ..checking.model.program import Order, Orders
from ..checking.model.verdict import Verdict
from ..core.diagnostics import BuildError
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..ops import after_all
from .editor import edit
from .rebuild import Unchanged, rebuild_module

# ----------------------------------------------------------------------------
# Deadlocks caused by tokens or control edges: an instruction gets a separate token

_ROUNDS = 8
"""The limit of dependencies that are removed, one after another."""


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
    """The verdict on the program without the tokens and control edges that cause its deadlock; None if none helps.

    Each round removes the dependency of one instruction, for which the cycle waits, on an earlier one of its device.
    Only tokens and control edges change, so all values stay the same.
    """
    for _ in range(_ROUNDS):
        if verdict.kind != "deadlock" or not verdict.findings[0].cycle:
            break
        after = [check(program, send_buffers=_buffers(verdict)) for program in _without_one_dependency(verdict)]
        better = next((each for each in after if not each.refused), None) or next(iter(after), None)
        if better is None:
            return None
        verdict = better
    return None if verdict.refused else verdict


def _buffers(verdict: Verdict) -> float:
    return 0 if verdict.asked is None else verdict.asked.send_buffers


def _without_one_dependency(verdict: Verdict) -> Iterator[Module | ModuleGroup]:
    """Programs that each lack one dependency of the cycle, and as few others as possible."""
    cycle = verdict.findings[0].cycle
    for number, wait in enumerate(cycle):
        early = cycle[(number + 1) % len(cycle)].instruction
        if wait.behind and early is not wait.partner:
            found = _without_dependency(verdict, wait.partner_device, wait.partner, early)
            if found is not None:
                yield found


def _without_dependency(
    verdict: Verdict, device: int, late: Instruction, early: Instruction
) -> Module | ModuleGroup | None:
    assert verdict.asked is not None
    classes = verdict.asked.program.class_of
    module = classes[device].module
    home = next((each for each in module.computations if late in each.instructions), None)
    if home is None or early not in home.instructions:
        return None
    loose = _with_separate_token(module, home, late, early)
    if loose is None:
        return None
    modules = {number: loose if each.module is module else each.module for number, each in classes.items()}
    one = next(iter(modules.values()))
    return one if len(set(modules.values())) == 1 and one.num_devices == len(modules) else ModuleGroup(modules)


def _with_separate_token(module: Module, home: Computation, late: Instruction, early: Instruction) -> Module | None:
    """The module in which `late` no longer follows `early`; None if `late` follows it through data."""
    behind = _followers(home, early)
    dependent = [place for place, operand in enumerate(late.operands) if operand in behind]
    if any(not isinstance(late.operands[place].shape, TokenShape) for place in dependent):
        return None
    dropped = behind.intersection(late.control)
    if not dependent and not dropped:
        return None
    try:
        with edit(module) as editor:
            for place in dependent:
                with editor.before(late):
                    token = after_all((), builder=editor[late].builder)
                editor.replace_operand(late, place, token)
    except BuildError:
        return None
    return _without_control(editor.result, home.name, late.name, {each.name for each in dropped})


def _without_control(module: Module, home: str, late: str, names: set[str]) -> Module:
    if not names:
        return module
    computation = next(each for each in module.computations if each.name == home)
    dropped = {computation[name] for name in names}
    return rebuild_module(module, {computation: _Loose(computation, computation[late], dropped)})


def _followers(home: Computation, early: Instruction) -> set[Instruction]:
    """The instruction and all instructions of its computation that depend on it."""
    found = {early}
    for each in Unchanged(home):
        if not found.isdisjoint((*each.operands, *each.control)):
            found.add(each)
    return found


# ----------------------------------------------------------------------------
# The program in the order of the repair, or in the order that the check found


class _InOrder(Unchanged):
    """A copy of a computation with its instructions in the repaired order."""

    def __init__(self, computation: Computation, order: Order) -> None:
        self.instructions, self.root = order, computation.root


def repaired(verdict: Verdict) -> Module | ModuleGroup:
    """Return the program that a verdict is about, with a schedule that runs to completion.

    A program whose schedule deadlocks gets the repaired order. A program without a schedule gets the order that the
    check found; if tokens or control edges force a deadlock, instructions in the cycle first get separate tokens.
    Values do not change. Raises ValueError if no order fixes the program, or if nothing needs a repair because every
    order, or the given schedule, runs to completion.

    >>> import xbuild as xb
    >>> pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}"
    >>> module = xb.parse_hlo(f'''
    ... HloModule swap, replica_count=2, is_scheduled=true
    ... ENTRY main {{ x = f32[2] parameter(0)  t = token[] after-all()
    ...              s = (f32[2], u32[], token[]) send(x, t), channel_id=1, {pairs}
    ...              r = (f32[2], u32[], token[]) recv(t), channel_id=1, {pairs}
    ...              sent = token[] send-done(s), channel_id=1
    ...              came = (f32[2], token[]) recv-done(r), channel_id=1
    ...              ROOT y = f32[2] get-tuple-element(came), index=0 }}''')
    >>> verdict = xb.check(module)
    >>> verdict.kind, verdict.repair.text
    ('deadlock', 'move r before s')
    >>> fixed = xb.repaired(verdict)
    >>> [instruction.name for instruction in fixed.entry.instructions], xb.check(fixed).kind
    (['x', 't', 'r', 's', 'sent', 'came', 'y'], 'ok')

    Source: HloModule (is_scheduled): a schedule is one order of instructions for each computation.
    """
    if verdict.repair is not None:
        return _with_schedule(verdict, verdict.repair.orders)
    found = untied(verdict) if verdict.kind == "deadlock" else verdict
    if found is None or (found is verdict and (found.kind, found.scope) != ("ok", "found")):
        raise ValueError(f"repaired: the verdict ({verdict.kind}) offers no repair")
    return _with_schedule(found, found.reordered)


def _with_schedule(verdict: Verdict, orders_of: Mapping[int, Orders]) -> Module | ModuleGroup:
    """The program of a verdict in these orders, and in the recorded one where there are none, as a schedule."""
    assert verdict.asked is not None
    made: dict[tuple[Module, Orders], Module] = {}
    modules = {}
    for device, each in verdict.asked.program.class_of.items():
        orders = orders_of.get(device, ())
        key = each.module, orders
        if key not in made:
            made[key] = _with_orders(each.module, orders)
        modules[device] = made[key]
    one = next(iter(modules.values()))
    return one if len(made) == 1 and one.num_devices == len(modules) else ModuleGroup(modules)


def _with_orders(module: Module, orders: Orders) -> Module:
    revisions = {computation: _InOrder(computation, order) for computation, order in orders}
    return evolve(rebuild_module(module, revisions), is_scheduled=True)
