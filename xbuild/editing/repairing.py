"""Applies the repair of a verdict: reorders the instructions of the program."""

from __future__ import annotations

from attrs import evolve

from ..checking.model.verdict import Order, Orders, Verdict
from ..core.graph import Computation, Module, ModuleGroup
from .rebuild import Unchanged, rebuilt


class _InOrder(Unchanged):
    """A copy of a computation with its instructions in the repaired order."""

    def __init__(self, computation: Computation, order: Order) -> None:
        self.instructions, self.root = order, computation.root


def repaired(verdict: Verdict) -> Module | ModuleGroup:
    """The program of a verdict, scheduled in the order of its repair; instructions and dependencies are unchanged.

    Raises ValueError where the verdict has no repair.

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
    if verdict.repair is None or verdict.asked is None:
        raise ValueError(f"repaired: the verdict ({verdict.kind}) offers no repair")
    made: dict[tuple[Module, Orders], Module] = {}
    modules = {}
    for device, each in verdict.asked.program.class_of.items():
        orders = verdict.repair.orders.get(device, ())
        key = each.module, orders
        if key not in made:
            made[key] = _ordered(each.module, orders)
        modules[device] = made[key]
    one = next(iter(modules.values()))
    return one if len(made) == 1 and one.num_devices == len(modules) else ModuleGroup(modules)


def _ordered(module: Module, orders: Orders) -> Module:
    revisions = {computation: _InOrder(computation, order) for computation, order in orders}
    return evolve(rebuilt(module, revisions), is_scheduled=True)
