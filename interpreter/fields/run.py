"""A run of a program over prime fields: all devices on the grid of an ordinary run, each walked as words.

Sections:

    The walk of a device: a coroutine that goes through a computation and makes requests to the grid
    The program that is evaluated, and its run
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.trees import fill
from xbuild.checking.model.program import Orders, grid_of
from xbuild.checking.model.verdict import Verdict
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.properties.effects import (
    PLAIN_CALLS,
    branch_number,
    call_in,
    collective_in,
    grouped_in,
    is_in_place,
    start_of,
)
from xbuild.properties.sites import reached

from ..compiler.facts import live
from ..compiler.lines import Path, PlanPlace
from ..compiler.requests import Request
from ..custom_calls.built_in import BUILT_IN, return_operands
from ..kernels.values import zeros
from ..rules.limits import Limits, check_time, trips
from ..runtime.device import Device
from ..runtime.ends import drive
from ..runtime.grid import Grid
from ..runtime.run import checked, modules_of
from .draws import flat_arrays, nest_arrays, shapes_of
from .loops import IntegerStates, LoopParts, LoopVisitor, parts_of, states_of_integers
from .rules import conversions as _conversions  # noqa: F401  (importing fills the table)
from .rules import folding as _folding  # noqa: F401
from .rules import functions as _functions  # noqa: F401
from .rules import products as _products  # noqa: F401
from .rules import wholes as _wholes  # noqa: F401
from .rules.calls import earlier_calls
from .rules.evaluation import attributes_of, is_float, value
from .rules.lapack import ROUTINES, SOLVES, routine, solve
from .rules.opaque import RowDims, is_opaque, opaque
from .rules.tables import REFUSED, Undecidable, fields
from .rules.wholes import drawn

# ----------------------------------------------------------------------------
# The walk of a device: a coroutine that goes through a computation and makes requests to the grid.

Trips: TypeAlias = tuple[int, ...]
Observe: TypeAlias = Callable[[int, Path, Trips, Any], Any]
"""Called with the device, the call path of an instruction, the trips of the loops around it, and its value.

If it returns a value, the run goes on with that.
"""
Steps: TypeAlias = Generator[tuple[Request, tuple[Any, ...]], Any, Any]

_IDENTITIES = frozenset(name for name, rule in BUILT_IN.items() if rule is return_operands)


Step: TypeAlias = tuple[Instruction, tuple[Instruction, ...]]
"""An instruction, and the values that no later one uses."""


def with_last_uses(computation: Computation, order: Sequence[Instruction]) -> Sequence[Step]:
    """The live instructions of a computation in order, each with the values that are no longer used after it."""
    needed = live(computation)
    order = [each for each in order if each in needed]
    earlier, last = earlier_calls(computation), dict.fromkeys(order, -1)
    for at, each in enumerate(order):
        for used in (each, *each.operands, *([earlier[each]] if each in earlier else [])):
            last[used] = at
    unused: list[list[Instruction]] = [[] for _ in order]
    for each, at in last.items():
        if each is not computation.root:
            unused[at].append(each)
    return [(each, tuple(gone)) for each, gone in zip(order, unused, strict=True)]


@frozen(eq=False)
class FieldPlan:
    """A plan of a device in which the computation is walked instead of compiled."""

    computation: Computation
    observe: Observe | None
    orders: Orders = ()
    rowwise: RowDims = field(factory=dict)
    loops: LoopVisitor | None = None
    communicates: bool = True

    def function(self, device: Any, *arguments: Any) -> Steps:
        walk = DeviceWalk(device, self.observe, dict(self.orders), self.rowwise, self.loops)
        return walk.walk(self.computation, arguments, (), ())

    def path(self, frame: FrameType) -> Path | None:
        return frame.f_locals.get("here", ()) if frame.f_code is DeviceWalk.walk.__code__ else None

    def unmarked(self, frame: FrameType) -> tuple[()]:
        return ()


@define(eq=False)
class DeviceWalk:
    """The walk of one device."""

    device: Any
    observe: Observe | None
    orders: Mapping[Computation, Sequence[Instruction]]
    rowwise: RowDims
    loops: LoopVisitor | None = None
    draws: int = field(default=0, init=False)
    ordered: dict[Computation, Sequence[Step]] = field(factory=dict, init=False)

    def walk(self, computation: Computation, arguments: Iterable[Any], path: Path, trips: Trips) -> Steps:
        """Walk a computation; the coroutine returns the value of its root."""
        local: dict[Instruction, Any] = dict(zip(computation.parameters, arguments, strict=True))
        earlier = earlier_calls(computation)
        for instruction, unused in self.steps(computation):
            check_time()
            here = (*path, PlanPlace(instruction))
            if earlier.get(instruction) in local:
                local[instruction] = local[earlier[instruction]]
            elif instruction not in local:
                operands = tuple(local[operand] for operand in instruction.operands)
                rule = _RULES.get(instruction.opcode)
                if rule is not None:
                    local[instruction] = yield from rule(self, instruction, operands, here, trips)
                else:
                    local[instruction] = self.evaluate(instruction, operands)
                del operands
            if self.observe is not None:
                replaced = self.observe(self.device.number, here, trips, local[instruction])
                if replaced is not None:
                    local[instruction] = replaced
            for each in unused:
                local.pop(each, None)
        return local[computation.root]

    def steps(self, computation: Computation) -> Sequence[Step]:
        """The instructions of a computation in order, each with the values that no later one uses."""
        if computation not in self.ordered:
            order = self.orders.get(computation, computation.instructions)
            self.ordered[computation] = with_last_uses(computation, order)
        return self.ordered[computation]

    def evaluate(self, instruction: Instruction, operands: tuple[Any, ...]) -> Any:
        """The value of an instruction that needs no other device."""
        if instruction.opcode == "rng":
            self.draws += 1
            shape = instruction.attributes.shape
            if not is_float(shape):
                raise Undecidable("random integers drawn from a device's own state")
            return drawn(shape, self.draws, str(instruction.attributes.distribution).lower(), *operands)
        if instruction.opcode == "custom_call":
            return _custom_call(instruction, operands, self.rowwise)
        return value(instruction, operands, self.device)


def _custom_call(instruction: Instruction, operands: tuple[Any, ...], rowwise: RowDims) -> Any:
    target = instruction.attributes.custom_call_target
    if target in _IDENTITIES:
        found = return_operands(instruction, *operands)
        shapes = instruction.shape if len(operands) > 1 else instruction.operands[0].shape
        if shapes == instruction.shape or isinstance(instruction.shape, TupleShape):
            return found
    if target == "TopK" and is_float(instruction.operands[0].shape):
        return fields["topk"](operands[0], k=instruction.shape.elements[0].dims[-1], largest=True)  # type: ignore[union-attr]
    if target in ROUTINES:
        return routine(instruction, operands)
    if target in SOLVES:
        return solve(instruction, *operands)
    if is_opaque(instruction):
        return opaque(instruction, operands, rowwise)
    raise Undecidable(f"{REFUSED['custom_call']} ({target})")


def _tuple(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands
    yield


def _element(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return operands[0][instruction.attributes.index]
    yield


def _pass_operand(
    walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips
) -> Steps:
    return operands[0]
    yield


def _token(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return None
    yield


def _id(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return np.asarray(getattr(walk.device, instruction.opcode))
    yield


def _call(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    return (yield from walk.walk(instruction.called[0], operands, here, trips))


def _while(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips) -> Steps:
    a, (state,) = instruction.attributes, operands
    parts = parts_of(instruction) if walk.loops is not None and not outer else None
    if parts is not None:
        return (yield from _walk_some_trips(walk, instruction, parts, state, here))
    for trip in trips():
        inside = (*outer, trip)
        if not (yield from walk.walk(a.condition, [state], here, inside)):
            return state
        state = yield from walk.walk(a.body, [state], here, inside)


def _walk_some_trips(walk: DeviceWalk, loop: Instruction, parts: LoopParts, state: Any, here: Path) -> Steps:
    """The trips of a loop that are evaluated; the integers of the state are computed at all trips."""
    assert walk.loops is not None
    device = walk.device.number
    integers = states_of_integers(loop, parts, state, walk.evaluate)
    for trip in walk.loops.trips(here, IntegerStates(device, integers, walk.evaluate)):
        given = [integers[trip - 1].get(n, value) for n, value in enumerate(state)]
        given = walk.loops.start(device, here, trip, given)
        if walk.observe is not None:  # who observes sees that there is a trip
            yield from walk.walk(loop.attributes.condition, [tuple(given)], here, (trip,))
        arguments = iter([tuple(given)])
        del state, given  # so that arrays are freed as soon as the trip has used them
        state = yield from walk.walk(loop.attributes.body, arguments, here, (trip,))
    return tuple(walk.loops.end(device, here, [integers[-1].get(n, value) for n, value in enumerate(state)]))


def _conditional(
    walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips
) -> Steps:
    branches, index = instruction.attributes.branch_computations, operands[0]
    number = branch_number(instruction, index)
    inside = (*here[:-1], PlanPlace(instruction, branch=number))
    return (yield from walk.walk(branches[number], [operands[1 + number]], inside, outer))


def _scan(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, outer: Trips) -> Steps:
    a = instruction.attributes
    first = len(operands) - a.num_carries
    inputs, state = operands[:first], operands[first:]
    count = min((input_.shape[a.dimension] for input_ in inputs), default=a.length)
    single = not isinstance(a.to_apply.root.shape, TupleShape)
    rows: list[tuple[Any, ...]] = []
    for trip in range(1, count + 1):
        at = count - trip if a.is_reverse else trip - 1
        slices = [np.take(input_, at, a.dimension) for input_ in inputs]
        outcome = yield from walk.walk(a.to_apply, [*slices, *state], here, (*outer, trip))
        results = (outcome,) if single else outcome
        rows.append(results[: len(results) - a.num_carries])
        state = tuple(results[len(results) - a.num_carries :])
    if not rows:
        raise Undecidable("scans with zero trips")
    ordered = rows[::-1] if a.is_reverse else rows
    outputs = [np.stack(column, a.dimension) for column in zip(*ordered, strict=True)]
    outcome = (*outputs, *state)
    return outcome if isinstance(instruction.shape, TupleShape) else outcome[0]


def _request(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    collective = collective_in(instruction) or instruction
    if is_in_place(collective):
        raise Undecidable("in-place collective-permutes")
    answer = yield Request(instruction, here, attributes_of(collective)), operands
    return _in_fields(answer, instruction.shape)


def _in_fields(answer: Any, shape: AnyShape) -> Any:
    """The answer of the grid as words: a device without a partner gets zeros of the program's type."""
    if isinstance(answer, tuple) and isinstance(shape, TupleShape):
        return tuple(_in_fields(part, of) for part, of in zip(answer, shape.elements, strict=False))
    if isinstance(answer, np.ndarray | np.generic) and isinstance(shape, Shape):
        array = np.asarray(answer)
        if shape.dtype.kind == "float" and array.dtype != np.uint64:
            return np.zeros(array.shape, np.uint64)
        return array
    return answer


def _start(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    collective = collective_in(instruction)
    if collective is None:
        return (yield from _start_call(walk, instruction, operands, here, trips))
    if is_in_place(collective):
        raise Undecidable("in-place collective-permutes")
    if collective is not instruction:
        operands = tuple(operands[parameter.attributes.number] for parameter in collective.operands)
    meeting = yield Request(instruction, here, attributes_of(collective)), operands
    return fill(instruction.shape, meeting)


def _start_call(
    walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips
) -> Steps:
    if grouped_in(instruction) and call_in(instruction) is None:
        raise Undecidable("groups of collectives that one async-start starts")
    a = instruction.attributes
    found = yield from walk.walk(a.calls, operands, here, trips)
    return (operands, found, *map(zeros, a.context_shapes))


def _done(walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips) -> Steps:
    start = start_of(instruction)
    if start is None:
        raise Undecidable("done ops with an unknown start")
    if collective_in(start) is None:
        return operands[0][1]
    meeting = operands[0]
    while isinstance(meeting, tuple):
        meeting = meeting[0]
    collective = collective_in(start) or start
    answer = yield Request(instruction, here, attributes_of(collective)), (meeting,)
    return _in_fields(answer, instruction.shape)


def _copy_start(
    walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips
) -> Steps:
    return (operands[0], operands[0], np.uint32(0))
    yield


def _copy_done(
    walk: DeviceWalk, instruction: Instruction, operands: tuple[Any, ...], here: Path, trips: Trips
) -> Steps:
    return operands[0][0]
    yield


_REQUESTS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast",
    "ragged_all_to_all", "send", "send_done", "recv", "recv_done",
)  # fmt: skip
_RULES: dict[str, Callable[..., Steps]] = {
    "tuple": _tuple, "get_tuple_element": _element,
    **dict.fromkeys(("copy", "opt_barrier", "domain", "add_dependency", "async_update"), _pass_operand),
    "after_all": _token, "replica_id": _id, "partition_id": _id,
    **dict.fromkeys(PLAIN_CALLS, _call), "while": _while, "conditional": _conditional, "scan": _scan,
    **dict.fromkeys(_REQUESTS, _request),
    **dict.fromkeys(("all_gather_start", "all_reduce_start", "collective_permute_start", "async_start"), _start),
    **dict.fromkeys(("all_gather_done", "all_reduce_done", "collective_permute_done", "async_done"), _done),
    "copy_start": _copy_start, "copy_done": _copy_done,
}  # fmt: skip


# ----------------------------------------------------------------------------
# The program that is evaluated, and its run.


@frozen(eq=False)
class Subject:
    """A program that is evaluated: the module of each device, and the verdict on it."""

    program: Module | ModuleGroup
    rowwise: RowDims = field(factory=dict)
    modules: tuple[Module, ...] = field(init=False)
    verdict: Verdict = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(modules_of(self.program)))
        for module in dict.fromkeys(self.modules):
            for computation in reached(module.entry):
                _refuse_vast(computation)
        object.__setattr__(self, "verdict", checked(self.program, 0))

    @property
    def devices(self) -> int:
        return len(self.modules)

    def inputs(self, device: int) -> list[Shape]:
        """The shapes of the arguments of a device."""
        return shapes_of(self.modules[device].entry.parameters)

    def outputs(self, device: int) -> list[Shape]:
        """The shapes of the results of a device."""
        return shapes_of([self.modules[device].entry.root])

    def literals(self) -> Iterator[Any]:
        """The float literals of small constants, whose numbers have their places in the order."""
        for module in dict.fromkeys(self.modules):
            for computation in reached(module.entry):
                yield from _literals(computation)

    def instructions(self) -> Iterator[Instruction]:
        """All instructions that a run may reach."""
        for module in dict.fromkeys(self.modules):
            for computation in reached(module.entry):
                yield from computation.instructions

    def float_types(self) -> set[np.dtype[Any]]:
        """The types of the floats of all instructions; of complex numbers those of their parts."""
        found = {leaf.dtype for instruction in self.instructions() for leaf in shapes_of([instruction])}
        parts: dict[int, np.dtype[Any]] = {64: np.dtype(np.float32), 128: np.dtype(np.float64)}
        floats: list[np.dtype[Any]] = [primitive.dtype for primitive in found if primitive.kind == "float"]
        return {*floats, *(parts[primitive.bits] for primitive in found if primitive.kind == "complex")}

    def constants(self) -> Iterator[list[tuple[float, np.dtype[Any]]]]:
        """The float literals of each constant, with their type."""
        for instruction in self.instructions():
            if (
                instruction.opcode == "constant"
                and isinstance(instruction.shape, Shape)
                and instruction.shape.dtype.kind == "float"
            ):
                literal = instruction.attributes.literal
                if isinstance(literal, np.ndarray | np.generic):
                    wide = np.unique(_wide(literal))
                    yield [(float(value), instruction.shape.dtype.dtype) for value in wide[np.isfinite(wide)]]

    def numbers(self) -> Iterator[float]:
        """The finite numbers of small constants, integers among them."""
        for instruction in self.instructions():
            if (
                instruction.opcode == "constant"
                and isinstance(instruction.shape, Shape)
                and instruction.shape.dtype.kind != "complex"
            ):
                literal = instruction.attributes.literal
                if isinstance(literal, np.ndarray | np.generic) and literal.size <= _MOST:
                    wide = _wide(literal)
                    yield from wide[np.isfinite(wide)].tolist()

    def run(
        self,
        arrays: Sequence[Sequence[Any]],
        observe: Observe | None,
        limits: Limits,
        loops: LoopVisitor | None = None,
    ) -> list[list[Any]]:
        """The result arrays of each device, given its argument arrays; `loops` says which trips are evaluated.

        Raises Undecidable at an instruction that is not decided, and Stopped where a run would stop.
        """
        arguments = [tuple(self._arguments(device, iter(row))) for device, row in enumerate(arrays)]
        devices = [
            Device(number, module, self._plan(number, module, observe, loops))  # type: ignore[arg-type]
            for number, module in enumerate(self.modules)
        ]
        drive(Grid(devices, {}, None, 0, grid_of(self.program)), arguments, limits, self.verdict, flush=False)
        return [flat_arrays(device.result, device.module.entry.root.shape) for device in devices]

    def _plan(self, number: int, module: Module, observe: Observe | None, loops: LoopVisitor | None) -> FieldPlan:
        return FieldPlan(module.entry, observe, self.verdict.orders(number), self.rowwise, loops)

    def _arguments(self, device: int, arrays: Iterator[Any]) -> Iterator[Any]:
        for parameter in self.modules[device].entry.parameters:
            yield nest_arrays(arrays, parameter.shape)


_MOST_ELEMENTS = sys.maxsize // 16
"""The elements of the largest array of complex residues that NumPy can address."""


def _refuse_vast(computation: Computation) -> None:
    for each in computation.instructions:
        most = max(shapes_of([each]), key=lambda shape: shape.size, default=None)
        if most is not None and most.size > _MOST_ELEMENTS:
            count = f"{most.size:,} elements, but an array can have at most {_MOST_ELEMENTS:,}"
            refuse(
                "limit_bytes",
                f"equivalent: {most} of %{each.name} has {count}",
                "compare the programs with smaller extents",
            )


_MOST = 64
"""The largest constant whose numbers are registered."""


def _literals(computation: Any) -> Iterator[Any]:
    for instruction in computation.instructions:
        shape = instruction.shape
        if instruction.opcode == "constant" and isinstance(shape, Shape) and shape.dtype.kind == "float":
            literal = instruction.attributes.literal
            if isinstance(literal, np.ndarray | np.generic) and literal.size <= _MOST:
                yield np.asarray(literal).reshape(-1)[np.isfinite(_wide(literal))]


def _wide(literal: Any) -> Any:
    """The numbers of a literal as float64; NaNs that signal are no reason for a warning."""
    with np.errstate(invalid="ignore"):
        return np.asarray(literal).astype(np.float64).reshape(-1)
