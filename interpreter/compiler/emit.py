"""Code generation: a computation becomes lines of Python, with a local variable for each array of an instruction.

Sections:

    The hook of strict checks
    Ops written as Python operators or NumPy functions
    Operands whose dynamic dimensions differ in size at run time
    Options and Emitter: a computation as lines of Python
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TokenShape, leaves
from shape_inference.elided import ElidedArray
from shape_inference.trees import fill, flatten, map_leaves
from shape_inference.types import f32, f64
from xbuild.core.attributes import Array
from xbuild.core.diagnostics import BuildError
from xbuild.core.graph import Computation, Instruction
from xbuild.core.hooks import Hook
from xbuild.core.op import OPS, opcodes
from xbuild.process.limits import ask
from xbuild.properties.effects import CALLERS, is_under_way

from ..kernels.dots import dot_knowing
from ..kernels.elementwise import BINARY, NEAR_ZERO, UNARY
from ..kernels.flushing import flushed, flushing
from ..kernels.functions import beside_number
from ..kernels.lifting import common
from ..rules import compute, planned
from ..rules.limits import check_time, trips
from ..rules.region import AppliedComputation
from .facts import (
    communicates,
    depends_on_device,
    native_code,
    product_facts,
    unrounded_sum_text,
    weight,
    without_denormals,
    yields_request,
)
from .lines import MARK, SET_UP, Lines, Path, PlanPlace
from .prepared import prepared_text
from .requests import Expr, spell, target
from .sharing import FREE, CallPath, emit_shared, is_costly, site_of
from .shortcuts import IN_PLACE, Shortcuts, no_shortcuts, shortcuts_of, ufunc_of

# ----------------------------------------------------------------------------
# The hook of strict checks
#
# `interpreter.strict` supplies the function.


class StrictHook(Protocol):
    """A function that a strict plan calls after an instruction; `guard` is a quick test written before the call."""

    def guard(self, emitter: Emitter, result: str) -> str: ...

    def __call__(self, device: Any, operands: tuple[Any, ...], result: Any) -> None: ...


check_of: Hook[[Instruction], StrictHook | None] = Hook("finds the strict check of an instruction")


# ----------------------------------------------------------------------------
# Ops written as Python operators or NumPy functions
#
# Where NumPy's arithmetic equals XLA's.

_NUMBERS = frozenset({"signed", "unsigned", "float", "complex"})
_BITS = frozenset({"pred", "signed", "unsigned"})

_INFIX = {
    "add": (_NUMBERS, "{} + {}"),
    "subtract": (_NUMBERS, "{} - {}"),
    "multiply": (_NUMBERS - {"complex"}, "{} * {}"),
    "divide": (frozenset({"float"}), "{} / {}"),
    "and": (_BITS, "{} & {}"),
    "or": (_BITS, "{} | {}"),
    "xor": (_BITS, "{} ^ {}"),
}
_PREFIX = {
    "abs": (frozenset({"signed", "float"}), "abs({})"),
    "copy": (_NUMBERS | {"pred"}, "{}"),
    "negate": (_NUMBERS, "-{}"),
    "not": (_BITS, "~{}"),
}
_ROWS = _INFIX | _PREFIX
_COMPARE = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def operator_text(instruction: Instruction, operands: Sequence[str]) -> str | None:
    """The op as a Python expression of its operands; None if the value rule must be called."""
    kind = _native_kind([operand.shape for operand in instruction.operands])
    if kind is None:
        return None
    if instruction.opcode == "compare":
        return _comparison_text(instruction.attributes, kind, operands)
    kinds, text = _ROWS.get(instruction.opcode, (frozenset(), ""))
    return text.format(*operands) if kind in kinds else None


def kernel(instruction: Instruction) -> Callable[..., Any] | None:
    """The NumPy function of the op for operands of one native type; None if the value rule must be called."""
    kernels = BINARY.get(instruction.opcode) or UNARY.get(instruction.opcode)
    shape = instruction.operands[0].shape if kernels else None
    if kernels is None or _native_kind([o.shape for o in instruction.operands]) is None or not isinstance(shape, Shape):
        return None
    bare = _BARE.get(instruction.opcode)
    if bare is not None and any(map(_has_no_zero, instruction.operands)):
        return bare
    return kernels.get(shape.dtype.dtype.kind)


_BARE: dict[str, Callable[..., Any]] = {"maximum": np.maximum, "minimum": np.minimum}
"""NumPy's functions for operands that cannot both be zero; of two zeros NumPy returns either sign, by position."""


def _has_no_zero(instruction: Instruction) -> bool:
    """Whether an instruction is a constant without a zero, or the broadcast of one."""
    while instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    if instruction.opcode != "constant" or isinstance(instruction.attributes.literal, ElidedArray):
        return False
    return bool(np.all(instruction.attributes.literal != 0))


def _comparison_text(attributes: Any, kind: str, operands: Sequence[str]) -> str | None:
    if attributes.type == "TOTALORDER" or kind == "complex":
        return None
    return f"{operands[0]} {_COMPARE[attributes.direction]} {operands[1]}"


def _native_kind(shapes: Sequence[AnyShape]) -> str | None:
    """The kind of the element type if all shapes are arrays of one type that NumPy computes in natively; else None."""
    types = {shape.dtype if isinstance(shape, Shape) else None for shape in shapes}
    only = types.pop() if len(types) == 1 else None
    return only.kind if only is not None and only.is_native else None


# ----------------------------------------------------------------------------
# Operands whose dynamic dimensions differ in size at run time
#
# Arrays are sliced to the smallest size, or padded.

Fit: TypeAlias = Callable[..., tuple[Any, ...]]
Flags: TypeAlias = tuple[tuple[bool, ...], ...]

_BY_ELEMENT = opcodes(lambda op: op.elements == "same_place") - {"clamp"}


def fit_operands(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> list[Expr]:
    """The operands of an op, sliced or padded to matching sizes at run time; unchanged if all sizes are static."""
    shapes = [operand.shape for operand in instruction.operands]
    if len(shapes) < 2 or not any(isinstance(shape, Shape) and shape.dynamic for shape in shapes):
        return operands
    fit = _fit_of(instruction, [shape.dynamic or (False,) * shape.rank for shape in shapes if isinstance(shape, Shape)])
    if fit is None:
        return operands
    names = [emitter.new_variables(shape) for shape in shapes]
    left, right = (", ".join(map(str, exprs)) for exprs in (names, operands))
    emitter.lines.add(f"{left} = {emitter.bind('r', fit)}({right})", path)
    return names


def _fit_of(instruction: Instruction, flags: list[tuple[bool, ...]]) -> Fit | None:
    if instruction.opcode in _BY_ELEMENT:
        return partial(slice_to_least, flags=tuple(flags))
    if instruction.opcode == "clamp":
        return fit_bounds
    if instruction.opcode == "dot":
        a = instruction.attributes
        left, right = a.lhs_batch_dims + a.lhs_contracting_dims, a.rhs_batch_dims + a.rhs_contracting_dims
        return partial(slice_pairs, pairs=tuple(zip(left, right, strict=True)))
    if instruction.opcode == "convolution":
        return partial(pad_with_zeros, bounds=_contracted_bounds(instruction))
    return pad_with_inits if instruction.opcode == "reduce" else None


def slice_to_least(*arrays: Any, flags: Flags) -> tuple[Any, ...]:
    """The arrays sliced to the least dynamic size of each dimension; size 1 is broadcast to the size of the others.

    Scalars are unchanged.
    """
    rank = max(array.ndim for array in arrays)
    full_rank = [array for array in arrays if array.ndim == rank]
    if len({array.shape for array in full_rank}) == 1:
        return arrays
    dynamic = [free for array, free in zip(arrays, flags, strict=True) if array.ndim == rank]
    sizes = tuple(_least_size(full_rank, dynamic, axis) for axis in range(rank))
    part = tuple(map(slice, sizes))
    return tuple(_broadcast(a[part], sizes) if a.ndim == rank else a for a in arrays)


def _least_size(arrays: list[Any], flags: list[tuple[bool, ...]], axis: int) -> int:
    sizes = [array.shape[axis] for array, free in zip(arrays, flags, strict=True) if free[axis]]
    if not sizes:
        return int(arrays[0].shape[axis])
    return int(min((size for size in sizes if size != 1), default=1))


def _broadcast(array: Array, sizes: tuple[int, ...]) -> Array:
    return array if array.shape == sizes else np.broadcast_to(array, sizes)


def fit_bounds(low: Array, operand: Array, high: Array) -> tuple[Array, Array, Array]:
    """The bounds of a clamp in the operand's size; operand elements beyond the end of a bound are not clamped."""
    return _extend_bound(low, operand), operand, _extend_bound(high, operand)


def _extend_bound(bound: Array, operand: Array) -> Array:
    if not bound.ndim or bound.shape == operand.shape:
        return bound
    shared = tuple(slice(min(pair)) for pair in zip(bound.shape, operand.shape, strict=True))
    extended = np.array(operand, common(operand.dtype, bound.dtype))
    extended[shared] = bound[shared]
    return extended


def _contracted_bounds(instruction: Instruction) -> tuple[dict[int, int], dict[int, int]]:
    """The dimensions over which a convolution sums, with their bounds: the feature and kernel spatial dimensions."""
    numbers = instruction.attributes.dimension_numbers
    lhs, rhs = (operand.shape for operand in instruction.operands)
    assert isinstance(lhs, Shape)
    assert isinstance(rhs, Shape)
    inner = numbers.kernel_input_feature_dimension, *numbers.kernel_spatial_dimensions
    feature = numbers.input_feature_dimension
    return {feature: lhs.dims[feature]}, {dim: rhs.dims[dim] for dim in inner}


def pad_with_zeros(*arrays: Array, bounds: tuple[dict[int, int], ...]) -> tuple[Array, ...]:
    """The arrays padded with zeros to the bounds of these dimensions; the zeros change no sum of products."""
    sizes = [tuple(b.get(dim, n) for dim, n in enumerate(a.shape)) for a, b in zip(arrays, bounds, strict=True)]
    return tuple(_pad(array, size, 0) for array, size in zip(arrays, sizes, strict=True))


def slice_pairs(lhs: Array, rhs: Array, *, pairs: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """Two operands, with both dimensions of each pair sliced to the smaller size."""
    for left, right in pairs:
        size = min(lhs.shape[left], rhs.shape[right])
        lhs, rhs = lhs[(slice(None),) * left + (slice(size),)], rhs[(slice(None),) * right + (slice(size),)]
    return lhs, rhs


def pad_with_inits(*operands: Any) -> tuple[Any, ...]:
    """The arrays of a reduction, each padded with its init value to the largest size among the arrays."""
    count = len(operands) // 2
    arrays, inits = operands[:count], operands[count:]
    sizes = tuple(map(max, zip(*(array.shape for array in arrays), strict=True)))
    return *(_pad(array, sizes, init) for array, init in zip(arrays, inits, strict=True)), *inits


def _pad(array: Array, sizes: tuple[int, ...], init: Any) -> Array:
    if array.shape == sizes:
        return array
    padded = np.full(sizes, init, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded


# ----------------------------------------------------------------------------
# Options and Emitter: a computation as lines of Python
#
# With a local variable for each array of an instruction.

Order: TypeAlias = tuple[Computation, tuple[Instruction, ...]]

INLINED = 64
TIMED_BYTES = 1 << 17  # from this size on, an instruction takes so long that the plan asks for the time before it
TIMED_LIFTED = 8  # of instructions on whole arrays of unknown size, one in so many is preceded by a check of the time
DEEPEST = 8
MOST_WRITTEN = 200_000
TOO_MANY = "inlining another call of {} would give the program's plan more than {:,} instructions"
WAY_OUT = (
    (
        "the interpreter inlines a computation that communicates or is observed at each call; call it from a loop "
        "instead"
    ),
)


@frozen
class PlanOptions:
    """How a plan is compiled.

    `observed`: the plan reports each instruction with its value.
    `marked`: the plan reports the instructions that it has executed, without values.
    `lifted`: a computation on scalars is compiled for whole arrays.
    `sequential`: every fold takes one element after the other, in order.
    `orders`: each listed computation runs in its listed order, other computations in recorded order.
    `shared`: one device computes the values at these call paths for all devices.
    `strict`: each value is checked for clamped indices, dropped updates, numbers out of range and undefined elements.
    `buffered`: the plan reports to the buffers of its device when computations begin and end, and each instruction.
    `flushed`: denormal numbers are flushed by array operations, not by the processor's mode.
    `complete`: instructions run although nothing needs their results.
    """

    observed: bool = False
    marked: bool = False
    lifted: bool = False
    sequential: bool = False
    orders: tuple[Order, ...] = ()
    shared: frozenset[CallPath] = frozenset()
    strict: bool = False
    buffered: bool = False
    flushed: bool = False
    complete: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a plan of whole computations reports nothing, so that it may leave values out."""
        return not (self.watched or self.lifted or self.strict or self.buffered or self.flushed or self.complete)

    @property
    def watched(self) -> bool:
        """Whether each instruction is reported, with or without its value."""
        return self.observed or self.marked


@define
class Emitter:
    """The state of one compilation; `names` become the globals of the plan."""

    options: PlanOptions
    names: dict[str, Any] = field(factory=lambda: {"trips": trips, "check_time": check_time})
    lines: Lines = field(factory=Lines)
    functions: list[Lines] = field(factory=list)
    depth: int = 0
    is_unmarked: bool = False
    inside: Computation | None = None
    most: int = MOST_WRITTEN
    written: int = 0
    written_lifted: int = 0
    reused: dict[Instruction, int] = field(factory=dict)
    _count: itertools.count[int] = field(factory=itertools.count)
    _bound: dict[int, str] = field(factory=dict)
    _called: dict[Any, str] = field(factory=dict)

    def bind(self, prefix: str, value: Any) -> str:
        """The global name of an object in the plan, made of a prefix and a number, never of text of the program."""
        if id(value) not in self._bound:
            self._bound[id(value)] = name = f"{prefix}{len(self.names)}"
            self.names[name] = value
        return self._bound[id(value)]

    def new_counter(self) -> str:
        return f"t{next(self._count)}"

    def new_block(self) -> int:
        return next(self._count)

    def new_variables(self, shape: AnyShape) -> Expr:
        """Fresh variables for the leaves of a shape; a token is the constant None and gets no variable."""
        return map_leaves(self._variable, shape)  # type: ignore[no-any-return]

    def _variable(self, shape: Shape | TokenShape) -> str:
        if isinstance(shape, TokenShape):
            return "None"
        name = f"v{next(self._count)}"
        if shape.dims and shape.bytes:
            self.lines.arrays.add(name)
        return name

    def assign(self, targets: Expr, values: Expr, path: Path) -> None:
        """Emit one simultaneous assignment of all leaves."""
        pairs = [(t, v) for t, v in zip(flatten(targets), flatten(values), strict=True) if v not in (t, "None")]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.lines.add(f"{', '.join(left)} = {', '.join(right)}", path)

    def assign_result(self, shape: AnyShape, expression: str, path: Path) -> Expr:
        """Fresh variables, one for each leaf of the shape, and the line that assigns them from an expression."""
        names = self.new_variables(shape)
        self.lines.add(f"{target(names)} = {expression}", path)
        return names

    def emit_computation(self, computation: Computation, arguments: Sequence[Expr], path: Path) -> Expr:
        """Emit the lines of a computation on these arguments; the result is the expression of the root.

        Raises BuildError if the plan has too many instructions, for example if nested calls double what communicates.
        """
        ask()
        self.written += len(computation.instructions)
        if self.written > self.most:
            raise BuildError("too_many_calls", TOO_MANY.format(computation.name, self.most), WAY_OUT)
        local: dict[Instruction, Expr] = dict(zip(computation.parameters, arguments, strict=True))
        is_complete = self.options.watched or self.options.buffered or self.options.complete
        shortcuts = self.shortcuts_of(computation)
        needed = frozenset(computation.instructions) if is_complete else shortcuts.live
        for parameter, argument in local.items():
            self.observe(parameter, argument, (*path, PlanPlace(parameter)))
        self.report("enter", path, computation, path[-1].branch if path else None)
        ordered = dict(self.options.orders).get(computation, computation.instructions)
        todo = [i for i in ordered if i not in local and i in needed]
        if self.options.is_plain and not self.options.shared:
            self.reused |= shortcuts.reused(todo, computation.root)
        elif self.options.lifted and not self.options.strict and not self.options.flushed:
            self.reused |= shortcuts.reused(todo, computation.root, is_lifted=True)
        for is_shared, run in itertools.groupby(todo, lambda i: self.is_shared(i, path)):
            block = list(run)
            if is_shared and any(map(is_costly, block)):
                emit_shared(self, computation, block, local, path)
            else:
                self.emit_block(computation, block, local, path)
        self.report("leave", path, computation, line=(*path, PlanPlace(computation.root)))
        return local[computation.root]

    def emit_block(
        self, computation: Computation, block: Sequence[Instruction], local: dict[Instruction, Expr], path: Path
    ) -> None:
        """Emit the lines of these instructions of a computation, in this order."""
        shortcuts = self.shortcuts_of(computation)
        sums = shortcuts.sums
        for instruction in block:
            self.inside = computation
            if instruction in shortcuts.constants:
                local[instruction] = self.bind("c", shortcuts.constants[instruction])
                continue
            operands = self.operands_of(instruction, shortcuts, local)
            factors = [local[factor] for factor in sums[instruction].operands] if instruction in sums else []
            local[instruction] = self.emit_instruction(instruction, operands, path, factors)

    def shortcuts_of(self, computation: Computation) -> Shortcuts:
        return shortcuts_of(computation) if self.options.is_plain else no_shortcuts(computation)

    def operands_of(self, instruction: Instruction, shortcuts: Shortcuts, local: dict[Instruction, Expr]) -> list[Expr]:
        """The expressions that the lines of an instruction read for its operands."""
        if instruction not in shortcuts.sources:
            return [local[operand] for operand in instruction.operands]
        found: list[Expr] = []
        for value, suffix in shortcuts.sources_of(instruction):
            found.append(f"{spell(local[value])}{suffix}" if suffix else local[value])
        return found

    def is_shared(self, instruction: Instruction, path: Path) -> bool:
        """Whether the instruction has one value on all devices and one device can compute the value for all devices."""
        if not self.options.shared or yields_request(instruction):
            return False
        if self.options.marked and instruction.called and instruction.opcode in planned:
            return False  # each device marks the instructions of the callee
        return site_of(instruction, [place.instruction for place in path]) in self.options.shared

    def emit_instruction(
        self, instruction: Instruction, operands: list[Expr], path: Path, factors: Sequence[Expr] = ()
    ) -> Expr:
        """Emit the lines of an instruction; `factors` are the operands of a product that it does not round."""
        here = (*path, PlanPlace(instruction))
        if self._is_timed(instruction):
            self.lines.add("check_time()", here)
        if instruction.opcode in CALLERS:
            self.report("call", path, instruction)
        if factors:
            result = _emit_unrounded_sum(self, instruction, [*operands, *factors], here)
        else:
            result = planned.get(instruction.opcode, _emit_rule_call)(self, instruction, operands, here)
        self.report("step", path, instruction, line=here)
        self.emit_check(instruction, operands, result, here)
        self.observe(instruction, result, here)
        return result

    def _is_timed(self, instruction: Instruction) -> bool:
        """Whether the run checks its time limit before an instruction."""
        if instruction.opcode in FREE:
            return False
        if self.options.lifted:
            self.written_lifted += 1
            return self.written_lifted % TIMED_LIFTED == 0
        sizes = (value.shape.bytes for value in (instruction, *instruction.operands) if isinstance(value.shape, Shape))
        return max(sizes, default=0) >= TIMED_BYTES

    def emit_check(self, instruction: Instruction, operands: list[Expr], result: Expr, path: Path) -> None:
        check = check_of(instruction) if self.options.strict else None
        if check is not None:
            arguments = OPS[instruction.opcode].unflatten(tuple(operands), instruction.segments)
            values = "".join(f"{spell(argument)}, " for argument in arguments)
            call = f"{self.bind('s', check)}(device, ({values}), {spell(result)})"
            self.lines.add(f"{check.guard(self, spell(result))}{call}", path)

    def report(self, method: str, path: Path, *arguments: Any, line: Path | None = None) -> None:
        """Emit a report to the buffers of the device; what a fusion or an async-start calls is not reported."""
        if self.options.buffered and all(place.instruction.opcode in CALLERS for place in path):
            texts = [
                self.bind("b", each) if isinstance(each, Instruction | Computation) else repr(each)
                for each in arguments
            ]
            self.lines.add(f"device.buffers.{method}({', '.join(texts)})", line or path)

    def observe(self, instruction: Instruction, value: Expr, path: Path) -> None:
        self.mark(path)
        if self.options.observed:
            seen = fill(instruction.shape, "None") if is_under_way(instruction) else value
            self.lines.add(f"device.see({self.bind('i', path)}, {spell(seen)})", path)

    def mark(self, path: Path) -> None:
        """Mark the instruction at this path as done, in a plan that is watched without values."""
        if self.options.marked and not self.is_unmarked:
            self.lines.add(MARK, path)

    @contextmanager
    def unmarked(self) -> Iterator[None]:
        """Lines emitted inside the block mark nothing, since one device runs them; all devices mark them afterwards."""
        self.is_unmarked = True
        yield
        self.is_unmarked = False

    def attribute_text(self, value: Any) -> str:
        if value is None or value is True or value is False or type(value) is int:
            return repr(value)
        if isinstance(value, Computation):
            region = AppliedComputation.of(value, self.options.sequential, self.options.strict, self.options.flushed)
            name = self.bind("g", region)
            return f"{name}.on(device)" if depends_on_device(value) or region.strict else name
        return self.bind("k", value)

    def emit_call(self, computation: Computation, operands: Sequence[Expr], path: Path) -> Expr:
        """Inline a called computation if it is small, communicates or is observed; otherwise emit a function call.

        A computation with native code becomes one call of this code, with the values of its parameters.
        """
        native = native_code(computation)
        if native is not None:
            call = f"{self.bind('n', native)}({', '.join(map(spell, operands))})"
            return self.assign_result(computation.root.shape, call, path)
        talks = communicates(computation)
        small = talks or self.options.watched or weight(computation) <= INLINED
        if small and self.depth < DEEPEST:
            return self.emit_computation(computation, operands, path)
        arguments = "".join(f", {spell(operand)}" for operand in operands)
        call = f"{'yield from ' * talks}{self.function_name(computation, path)}(device{arguments})"
        return self.assign_result(computation.root.shape, call, path)

    def function_name(self, computation: Computation, path: Path) -> str:
        """The plan's function for a computation: one for all calls, or one for each call path where paths matter."""
        by_path = self.options.watched or self.options.shared or self.options.buffered or communicates(computation)
        key: Any = (computation, path) if by_path else computation
        if key not in self._called:
            self._called[key] = f"f{len(self._called)}_"
            self.define_function(self._called[key], computation, path, is_timed=True)
        return self._called[key]

    def define_function(self, name: str, computation: Computation, path: Path, *, is_timed: bool = False) -> None:
        """Write a function of a computation; `is_timed`: each call checks the time limit."""
        outer, depth = self.lines, self.depth
        self.lines, self.depth = Lines(), 0
        parameters = [self.new_variables(p.shape) for p in computation.parameters]
        self.lines.add(f"def {name}({', '.join(['device', *(f'p{n}' for n in range(len(parameters)))])}):", path)
        self.lines.indent = 1
        if is_timed:
            self.lines.add("check_time()", path)
        if self.options.marked:
            self.lines.add(SET_UP, path)
        for n, names in enumerate(parameters):
            if names not in ("None", ()):
                self.lines.add(f"{target(names)} = p{n}", path)
        self.lines.add(f"return {spell(self.emit_computation(computation, parameters, path))}", path)
        self.functions.append(self.lines)
        self.lines, self.depth = outer, depth


def _emit_rule_call(emitter: Emitter, instruction: Instruction, operands: list[Expr], path: Path) -> Expr:
    """Emit a call of the op's value rule, or a Python operator that computes the same value."""
    operands = fit_operands(emitter, instruction, operands, path)
    if emitter.options.lifted and instruction in emitter.reused:
        name = operands[0]
        emitter.lines.add(f"{name} {IN_PLACE[instruction.opcode]} {spell(operands[1])}", path)
        return name
    own = flushing(instruction, compute[instruction.opcode]) if emitter.options.flushed else None
    expression = None if own else _expression(emitter, instruction, [spell(operand) for operand in operands])
    if expression is not None:
        return emitter.assign_result(instruction.shape, expression, path)
    rule = own or _rule_for_flushed_operands(emitter, instruction) or kernel(instruction) or compute[instruction.opcode]
    call = call_text(emitter, rule, instruction, operands)
    if emitter.options.lifted or isinstance(rule, np.ufunc):  # which returns scalars itself
        return emitter.assign_result(instruction.shape, call, path)
    return assign_with_scalars(emitter, instruction.shape, call, path)


def _expression(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    """The text of an op whose value rule need not be called; None for other ops."""
    place = emitter.reused.get(instruction)
    if place is not None:
        function = ufunc_of(instruction)
        assert function is not None
        return f"{emitter.bind('r', function)}({', '.join(operands)}, out={operands[place]})"
    text = operator_text(instruction, operands)
    if text is not None or emitter.inside is None:
        return text
    shortcuts = emitter.shortcuts_of(emitter.inside)
    number = shortcuts.numbers.get(instruction)
    if number is None:
        return prepared_text(emitter, instruction, operands, shortcuts)
    whole, value = kernel(instruction), shortcuts.constants[shortcuts.sources_of(instruction)[number][0]]
    assert whole is not None
    return f"{emitter.bind('r', beside_number(whole, value, number))}({operands[1 - number]})"


def _rule_for_flushed_operands(emitter: Emitter, instruction: Instruction) -> Callable[..., Any] | None:
    """A faster rule for operands known to have no denormal numbers; None if there is none."""
    opcode, computation = instruction.opcode, emitter.inside
    if computation is None or (opcode != "dot" and opcode not in NEAR_ZERO):
        return None
    if opcode == "dot":
        return dot_knowing(
            product_facts(instruction, computation, is_observed=emitter.options.watched or emitter.options.strict)
        )
    (operand,) = instruction.operands
    is_plain = isinstance(operand.shape, Shape) and operand.shape.dtype in (f32, f64)
    return NEAR_ZERO[opcode] if is_plain and operand in without_denormals(computation) else None


def _emit_unrounded_sum(emitter: Emitter, instruction: Instruction, values: list[Expr], path: Path) -> Expr:
    """Emit a sum whose product is not rounded; `values` has the operands of the sum, then the factors."""
    texts = _flush_texts(emitter, [spell(expr) for expr in values])
    text = operator_text(instruction, texts[:2])
    assert text is not None
    (total,) = _flush_texts(emitter, [unrounded_sum_text(emitter.bind, instruction, text, texts)])
    return emitter.assign_result(instruction.shape, total, path)


def _flush_texts(emitter: Emitter, texts: list[str]) -> list[str]:
    """The expressions, with denormal numbers flushed if array operations have to do that."""
    if not emitter.options.flushed:
        return texts
    name = emitter.bind("r", flushed)
    return [f"{name}({text})" for text in texts]


def assign_with_scalars(emitter: Emitter, shape: AnyShape, call: str, path: Path) -> Expr:
    """Emit a call of a rule and the conversion of rank-0 leaves of its result to NumPy scalars."""
    if isinstance(shape, Shape):
        return emitter.assign_result(shape, f"{call}[()]" if not shape.dims else call, path)
    result = emitter.assign_result(shape, call, path)
    for name, leaf in zip(flatten(result), leaves(shape), strict=True):
        if isinstance(leaf, Shape) and not leaf.dims:
            emitter.lines.add(f"{name} = {name}[()]", path)
    return result


def call_text(
    emitter: Emitter, rule: Callable[..., Any], instruction: Instruction, operands: list[Expr], *before: str
) -> str:
    """The text of a call of a rule: the operands as the rule's signature groups them, then the attributes."""
    arguments = OPS[instruction.opcode].unflatten(tuple(operands), instruction.segments)
    attributes = [f"{key}={emitter.attribute_text(value)}" for key, value in instruction.attribute_values().items()]
    return f"{emitter.bind('r', rule)}({', '.join([*before, *map(spell, arguments), *attributes])})"
