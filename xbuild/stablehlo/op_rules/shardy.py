"""Rules of Shardy's ops: constraints and computations of a shard are the custom calls that XLA has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shape_inference import TupleShape

from ...core.graph import Instruction
from ..reading.notes import shown
from ..reading.operation import Reading
from ..reading.rules import Results, rule
from ..syntax.attributes import Record


@rule("sdy.sharding_constraint", "sdy.reshard")
def constraint(op: Reading) -> Results:
    (operand,) = op.wants(1)
    made = op.result("custom_call", (operand,), custom_call_target="Sharding", shape=op.shape)
    sharding = f"#sdy.sharding_per_value<[<{op.get('sharding').text}>]>"
    op.note(made, frontend_attributes={"xla.sdy.sharding": sharding})
    return made


@rule("sdy.propagation_barrier", "sdy.data_flow_edge")
def barrier(op: Reading) -> Results:
    """What guides the search for shardings alone is a copy of the value."""
    op.ignore("allowed_direction", "sharding")
    return op.result("copy", *op.wants(1))


@rule("sdy.sharding_group")
def sharding_group(op: Reading) -> Results:
    """A hint of which values are to have one sharding; it has no result."""
    op.ignore("group_id")
    op.wants(1)
    return ()


@rule("sdy.manual_computation")
def manual_computation(op: Reading) -> Results:
    """A call for one shard, between custom calls that take shards of whole arrays and put them together again."""
    notes = {
        "xla.sdy.in_shardings": f"#sdy.sharding_per_value<{op.get('in_shardings').text}>",
        "xla.sdy.manual_axes": f"#sdy<manual_axes{op.get('manual_axes').text}>",
        "xla.sdy.out_shardings": f"#sdy.sharding_per_value<{op.get('out_shardings').text}>",
    }
    body = op.region(0, "body", len(op.operands))
    shards = _shards(op, body.signature.parameters, notes)
    called = op.emit("call", shards, to_apply=body)
    op.note(called, frontend_attributes={"inlineable": "false"})
    locals_ = op.elements(called) if len(op.operation.result_types) != 1 else (called,)
    return _whole(op, locals_, notes)


def _shards(op: Reading, shapes: tuple[Any, ...], notes: dict[str, str]) -> tuple[Instruction, ...]:
    if not shapes:
        return ()
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    made = _converted(op.emit, op.operands, "xla.sdy.GlobalToLocalShape", shape)
    op.note(made, frontend_attributes={key: notes[key] for key in ("xla.sdy.in_shardings", "xla.sdy.manual_axes")})
    return (made,) if len(shapes) == 1 else op.elements(made, len(shapes))


def _converted(record: Callable[..., Instruction], values: tuple[Instruction, ...], target: str, shape: Any) -> Any:
    """XLA keeps these calls, though nothing may use what they give."""
    return record("custom_call", values, custom_call_target=target, shape=shape, custom_call_has_side_effect=True)


def _whole(op: Reading, values: tuple[Instruction, ...], notes: dict[str, str]) -> Results:
    shapes = op.shapes
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    made = _converted(op.result, values, "xla.sdy.LocalToGlobalShape", shape)
    op.note(made, frontend_attributes={key: notes[key] for key in ("xla.sdy.manual_axes", "xla.sdy.out_shardings")})
    return op.one_or_elements(made)


@rule("sdy.named_computation")
def named_computation(op: Reading) -> Results:
    op.ignore("name", "in_shardings", "out_shardings")
    body = op.region(0, "body", len(op.operands))
    return op.one_or_elements(op.result("call", op.operands, to_apply=body))


_AXES = {
    "all_gather": "gathering_axes",
    "all_reduce": "reduction_axes",
    "all_slice": "slicing_axes",
    "all_to_all": "params",
    "collective_permute": "",
    "reduce_scatter": "reduce_scatter_axes",
    "replicated_to_unreduced": "axes",
    "sharded_to_unreduced": "axes",
}


@rule(*(f"sdy.{name}" for name in _AXES))
def collective(op: Reading) -> Results:
    """A collective of a program for all devices: a custom call of its name, whose sharding is that of the result."""
    (operand,) = op.wants(1)
    name = op.operation.name.removeprefix("sdy.")
    made = op.result("custom_call", (operand,), custom_call_target=f"xla.sdy.{name}", shape=op.shape)
    notes = {"xla.sdy.sharding": f"#sdy.sharding_per_value<[<{op.get('out_sharding').text}>]>"}
    if _AXES[name]:
        notes["xla.sdy.axes"] = _axes_text(op.get(_AXES[name]))
    op.note(made, frontend_attributes=notes)
    return made


def _axes_text(value: Any) -> str:
    """The axes of a collective as they are written."""
    return value.text if isinstance(value, Record) else shown(value)
