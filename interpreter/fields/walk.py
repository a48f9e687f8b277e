"""One device of an evaluation over prime fields: a coroutine that walks a computation and asks the grid of a run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape
from xbuild.checking.dataflow.analysis import spread
from xbuild.checking.model.verdict import Orders
from xbuild.core.graph import Computation, Instruction
from xbuild.properties.effects import PLAIN_CALLS, collective_in, grouped_in, is_in_place, start_of

from ..compiler.requests import Request
from ..custom_calls.placement import same
from ..custom_calls.table import BUILT_IN
from ..kernels.values import zeros
from ..rules.limits import trips
from ..rules.lines import Path, Place
from .rules.evaluation import attributes_of, is_float, value
from .rules.lapack import ROUTINES, SOLVES, routine, solve
from .rules.tables import REFUSED, Undecidable, fields
from .rules.wholes import drawn

Trips: TypeAlias = tuple[int, ...]
Observe: TypeAlias = Callable[[int, Path, Trips, Any], None]
"""Called with the device, the call path of an instruction, the trips of the loops around it, and its value."""
Steps: TypeAlias = Generator[tuple[Request, tuple[Any, ...]], Any, Any]

_IDENTITIES = frozenset(name for name, rule in BUILT_IN.items() if rule is same)


@frozen(eq=False)
class FieldPlan:
    """What stands for the plan of a device: the walk through its computation."""

    computation: Computation
    observe: Observe | None
    orders: Orders = ()
    communicates: bool = True

    def function(self, device: Any, *arguments: Any) -> Steps:
        return Walk(device, self.observe, dict(self.orders)).through(self.computation, arguments, (), ())

    def path(self, frame: FrameType) -> Path | None:
        return frame.f_locals.get("here", ()) if frame.f_code is Walk.through.__code__ else None

    def unmarked(self, frame: FrameType) -> tuple[()]:
        return ()


@define(eq=False)
class Walk:
    """The walk of one device."""

    device: Any
    observe: Observe | None
    orders: Mapping[Computation, Sequence[Instruction]]
    draws: int = field(default=0, init=False)

    def through(self, computation: Computation, arguments: Sequence[Any], path: Path, trips: Trips) -> Steps:
        """Walk a computation; the coroutine gives the value of its root."""
        local: dict[Instruction, Any] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in self.orders.get(computation, computation.instructions):
            here = (*path, Place(instruction))
            if instruction not in local:
                operands = tuple(local[each] for each in instruction.operands)
                rule = _RULES.get(instruction.opcode)
                if rule is not None:
                    local[instruction] = yield from rule(self, instruction, operands, here, trips)
                else:
                    local[instruction] = self.computed(instruction, operands)
            if self.observe is not None:
                self.observe(self.device.number, here, trips, local[instruction])
        return local[computation.root]

    def computed(self, instruction: Instruction, operands: tuple[Any, ...]) -> Any:
        """The value of an instruction that needs no other device."""
        if instruction.opcode == "rng":
            self.draws += 1
            shape = instruction.attributes.shape
            if not is_float(shape):
                raise Undecidable("random integers of a device's own state")
            return drawn(shape, self.draws, *operands)
        if instruction.opcode == "custom_call":
            return _custom(instruction, operands)
        return value(instruction, operands, self.device)


def _custom(instruction: Instruction, operands: tuple[Any, ...]) -> Any:
    target = instruction.attributes.custom_call_target
    if target in _IDENTITIES:
        found = same(instruction, *operands)
        shapes = instruction.shape if len(operands) > 1 else instruction.operands[0].shape
        if shapes == instruction.shape or isinstance(instruction.shape, TupleShape):
            return found
    if target == "TopK" and is_float(instruction.operands[0].shape):
        return fields["topk"](operands[0], k=instruction.shape.elements[0].dims[-1], largest=True)  # type: ignore[union-attr]
    if target in ROUTINES:
        return routine(instruction, operands)
    if target in SOLVES:
        return solve(instruction, *operands)
    raise Undecidable(f"{REFUSED['custom_call']} ({target})")


def _tuple(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands
    yield


def _element(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands[0][instruction.attributes.index]
    yield


def _first(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands[0]
    yield


def _token(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return None
    yield


def _id(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return np.asarray(getattr(walk.device, instruction.opcode))
    yield


def _call(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return (yield from walk.through(instruction.called[0], operands, here, trips))


def _while(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips) -> Steps:
    a, (state,) = instruction.attributes, operands
    for trip in trips():
        inside = (*outer, trip)
        if not (yield from walk.through(a.condition, [state], here, inside)):
            return state
        state = yield from walk.through(a.body, [state], here, inside)


def _conditional(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips) -> Steps:
    branches, index = instruction.attributes.branch_computations, operands[0]
    if np.asarray(index).dtype == np.bool_:
        number = 0 if index else 1
    else:
        number = int(index) if 0 <= index < len(branches) else len(branches) - 1
    inside = (*here[:-1], Place(instruction, branch=number))
    return (yield from walk.through(branches[number], [operands[1 + number]], inside, outer))


def _scan(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips) -> Steps:
    a = instruction.attributes
    first = len(operands) - a.num_carries
    inputs, state = operands[:first], operands[first:]
    count = min((each.shape[a.dimension] for each in inputs), default=a.length)
    single = not isinstance(a.to_apply.root.shape, TupleShape)
    rows: list[tuple[Any, ...]] = []
    for trip in range(1, count + 1):
        at = count - trip if a.is_reverse else trip - 1
        given = [np.take(each, at, a.dimension) for each in inputs]
        found = yield from walk.through(a.to_apply, [*given, *state], here, (*outer, trip))
        results = (found,) if single else found
        rows.append(results[: len(results) - a.num_carries])
        state = tuple(results[len(results) - a.num_carries :])
    if not rows:
        raise Undecidable("scans without a slice")
    ordered = rows[::-1] if a.is_reverse else rows
    outputs = [np.stack(column, a.dimension) for column in zip(*ordered, strict=True)]
    found = (*outputs, *state)
    return found if isinstance(instruction.shape, TupleShape) else found[0]


def _request(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    asked = collective_in(instruction) or instruction
    if is_in_place(asked):
        raise Undecidable("collective permutes in place")
    answer = yield Request(instruction, here, attributes_of(asked)), operands
    return _in_fields(answer, instruction.shape)


def _in_fields(answer: Any, shape: AnyShape) -> Any:
    """What the grid gives a device without a partner, which is zeros of the program's type, as words."""
    if isinstance(answer, tuple) and isinstance(shape, TupleShape):
        return tuple(_in_fields(each, of) for each, of in zip(answer, shape.elements, strict=False))
    if isinstance(answer, np.ndarray | np.generic) and isinstance(shape, Shape):
        array = np.asarray(answer)
        if shape.dtype.kind == "float" and array.dtype != np.uint64:
            return np.zeros(array.shape, np.uint64)
        return array
    return answer


def _start(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    collective = collective_in(instruction)
    if collective is None:
        return (yield from _wrapped(walk, instruction, operands, here, trips))
    if is_in_place(collective):
        raise Undecidable("collective permutes in place")
    if collective is not instruction:
        operands = tuple(operands[parameter.attributes.number] for parameter in collective.operands)
    meeting = yield Request(instruction, here, attributes_of(collective)), operands
    return spread(meeting, instruction.shape)


def _wrapped(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    if grouped_in(instruction):
        raise Undecidable("groups of collectives that start together")
    a = instruction.attributes
    found = yield from walk.through(a.calls, operands, here, trips)
    return (operands, found, *map(zeros, a.context_shapes))


def _done(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    start = start_of(instruction)
    if start is None:
        raise Undecidable("dones whose start is not known")
    if collective_in(start) is None:
        return operands[0][1]
    meeting = operands[0]
    while isinstance(meeting, tuple):
        meeting = meeting[0]
    asked = collective_in(start) or start
    answer = yield Request(instruction, here, attributes_of(asked)), (meeting,)
    return _in_fields(answer, instruction.shape)


def _copy_start(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return (operands[0], operands[0], np.uint32(0))
    yield


def _copy_done(walk: Walk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands[0][0]
    yield


_REQUESTS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast",
    "ragged_all_to_all", "send", "send_done", "recv", "recv_done",
)  # fmt: skip
_RULES: dict[str, Callable[..., Steps]] = {
    "tuple": _tuple, "get_tuple_element": _element,
    **dict.fromkeys(("copy", "opt_barrier", "domain", "add_dependency", "async_update"), _first),
    "after_all": _token, "replica_id": _id, "partition_id": _id,
    **dict.fromkeys(PLAIN_CALLS, _call), "while": _while, "conditional": _conditional, "scan": _scan,
    **dict.fromkeys(_REQUESTS, _request),
    **dict.fromkeys(("all_gather_start", "all_reduce_start", "collective_permute_start", "async_start"), _start),
    **dict.fromkeys(("all_gather_done", "all_reduce_done", "collective_permute_done", "async_done"), _done),
    "copy_start": _copy_start, "copy_done": _copy_done,
}  # fmt: skip
