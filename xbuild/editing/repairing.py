"""Applies what a verdict has found: the program in the order of its repair, or in the order that runs."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from ..checking.model.verdict import Order, Orders, Verdict
from ..core.graph import Computation, Module, ModuleGroup
from .rebuild import Unchanged, rebuilt
from .untying import untied


class _InOrder(Unchanged):
    """A copy of a computation with its instructions in the repaired order."""

    def __init__(self, computation: Computation, order: Order) -> None:
        self.instructions, self.root = order, computation.root


def repaired(verdict: Verdict) -> Module | ModuleGroup:
    """The program of a verdict as a schedule that runs to its end.

    A program that is refused in its schedule gets the order of the repair. One without a schedule gets the order that
    the check has found; where it is refused since tokens or control edges fix its order, the instructions that wait for
    each other get tokens of their own first. No value changes.
    Raises ValueError where no order mends it, and where every order, or the given schedule, runs.

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
    >>> mended = xb.repaired(verdict)
    >>> [instruction.name for instruction in mended.entry.instructions], xb.check(mended).kind
    (['x', 't', 'r', 's', 'sent', 'came', 'y'], 'ok')

    Source: a schedule as HloModule has it (is_scheduled), one order of instructions for each computation.
    """
    if verdict.repair is not None:
        return _scheduled(verdict, verdict.repair.orders)
    found = untied(verdict) if verdict.kind == "deadlock" else verdict
    if found is None or (found is verdict and (found.kind, found.scope) != ("ok", "found")):
        raise ValueError(f"repaired: the verdict ({verdict.kind}) offers no repair")
    return _scheduled(found, found.reordered)


def _scheduled(verdict: Verdict, orders_of: Mapping[int, Orders]) -> Module | ModuleGroup:
    """The program of a verdict in these orders, and in the recorded one where there are none, as a schedule."""
    assert verdict.asked is not None
    made: dict[tuple[Module, Orders], Module] = {}
    modules = {}
    for device, each in verdict.asked.program.class_of.items():
        orders = orders_of.get(device, ())
        key = each.module, orders
        if key not in made:
            made[key] = _ordered(each.module, orders)
        modules[device] = made[key]
    one = next(iter(modules.values()))
    return one if len(made) == 1 and one.num_devices == len(modules) else ModuleGroup(modules)


def _ordered(module: Module, orders: Orders) -> Module:
    revisions = {computation: _InOrder(computation, order) for computation, order in orders}
    return evolve(rebuilt(module, revisions), is_scheduled=True)
