"""Parts: which instructions may be compiled natively, and the program with calls of such parts in their places.

Sections:

    Which instructions may be compiled, and why others may not
    Levels: an order in which parts and the other instructions of a computation alternate
    The program with calls of parts
    A part as a computation of arrays that a native library takes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from attrs import define, evolve, field, frozen

from shape_inference import AnyShape, Shape, TupleShape, leaves
from shape_inference.elided import ElidedArray
from shape_inference.types import u8, u16
from xbuild.core.graph import NOTHING, Computation, Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import OPS
from xbuild.properties.effects import communicates_anywhere
from xbuild.properties.order import ordered
from xbuild.properties.rewriting import mapped, rewired

from ..compiler.facts import live
from ..engines.programs import as_engine_reads
from .estimates import is_bounded, seconds_in_interpreter
from .tested import TESTED

# ----------------------------------------------------------------------------
# Which instructions may be compiled, and why others may not


def reason_against(instruction: Instruction) -> str | None:
    """Why an instruction may not be compiled natively, as a clause; None if it may.

    The opcode and the element types of the result and the operands must be among those that were tested against the
    interpreter, and the same holds for all instructions of the computations that it calls.
    """
    types, name = TESTED.get(instruction.opcode), instruction.opcode.replace("_", "-")
    if types is None:
        return f"{name} is not a tested op"
    for leaf in (leaf for each in (instruction, *instruction.operands) for leaf in leaves(each.shape)):
        if not isinstance(leaf, Shape):
            return f"{name} has a token"
        if leaf.is_dynamic:
            return f"{name} has a dynamic dimension"
        if leaf.dtype.name not in types:
            return f"{name} of {leaf.dtype} is not a tested op"
    if instruction.control:
        return f"{name} has control predecessors"
    if instruction.opcode == "constant" and isinstance(instruction.attributes.literal, ElidedArray):
        return "a constant has no elements"
    if instruction.opcode == "scatter" and not _index_vector(instruction):
        return "scatter has index vectors without entries"
    if instruction.opcode == "reduce_precision" and not instruction.attributes.mantissa_bits:
        return "reduce-precision has no mantissa"
    if instruction.opcode in _WINDOWED and not _arrays(instruction.operands[:1])[0].dims:
        return f"{name} has the window of a scalar"
    if OPS[instruction.opcode].properties.calls in ("elements", "reducer") and not _is_plain_function(instruction):
        return f"{name} applies more than operations of numbers, or has another type inside"
    return next((reason for called in instruction.called if (reason := reason_inside(called))), None)


_WINDOWED = frozenset({"reduce_window", "select_and_scatter"})


def _is_plain_function(instruction: Instruction) -> bool:
    """Whether an op applies computations of numbers without calls, of the types of its operands and results.

    XLA dies of others, or computes something else.
    """
    every = [each for called in instruction.called for each in called.instructions]
    if any(each.called for each in every) or any(leaf.dims for leaf in _arrays(every)):
        return False
    inside = {leaf.dtype for leaf in _arrays(p for called in instruction.called for p in called.parameters)}
    given, results = ({leaf.dtype for leaf in _arrays(some)} for some in (instruction.operands, [instruction]))
    if instruction.opcode == "map":
        return inside == given
    return inside == results and all(each in results for each in given if each.is_float or each.kind == "complex")


def _index_vector(scatter: Instruction) -> int:
    """The entries of an index vector of a scatter."""
    indices = scatter.operands[len(scatter.operands) // 2].shape
    dimension = scatter.attributes.index_vector_dim
    assert isinstance(indices, Shape)
    return indices.dims[dimension] if dimension < indices.rank else 1


@remembered
def reason_inside(computation: Computation) -> str | None:
    """Why an instruction of a computation may not be compiled natively; None if all may."""
    return next((reason for each in computation.instructions if (reason := reason_against(each))), None)


# ----------------------------------------------------------------------------
# Levels: an order in which parts and the other instructions of a computation alternate

_FREE = frozenset({"parameter", "constant"})
"""Opcodes without a level: a part takes parameters as operands, and has constants of its own."""

_LIGHT = frozenset({"tuple", "get_tuple_element", "reshape", "broadcast", "copy", "iota", "opt_barrier"})
"""Opcodes that take a plan nearly no time; a part with no other instructions is not compiled."""

LEAST = 3e-5
"""The seconds for which the interpreter must compute a part, by estimate, to make a native call worth its cost."""


def levels(computation: Computation, outside: frozenset[Instruction]) -> dict[Instruction, int]:
    """The level of each live instruction: those inside a part are computed before those `outside` of the same level.

    Instructions whose order may matter are outside, and their levels do not decrease in recorded order.
    """
    needed, found, last = live(computation), dict[Instruction, int](), 0
    for each in ordered(computation):
        if each not in needed or each.opcode in _FREE:
            continue
        is_outside, before = each in outside, [o for o in (*each.operands, *each.control) if o in found]
        level = max((found[o] + (o in outside and not is_outside) for o in before), default=0)
        if is_outside and (each.called or each.opcode == "custom_call" or communicates_anywhere(each)):
            level = last = max(level, last)
        found[each] = level
    return found


# ----------------------------------------------------------------------------
# The program with calls of parts


@frozen(eq=False)
class NativePart:
    """A part of a program as a module of flat arrays, and the computation that the program calls in its place.

    `is_bounded` is False if a loop has an unknown number of trips.
    """

    module: Module
    called: Computation
    is_bounded: bool

    @property
    def has_loop(self) -> bool:
        return any(each.opcode in ("while", "scan") for each in self._every)

    @property
    def instructions(self) -> int:
        return len(self._every)

    @property
    def opcodes(self) -> str:
        """The most frequent opcodes with their counts, in words."""
        counts = Counter(each.opcode.replace("_", "-") for each in self._every if each.opcode not in _FREE | _LIGHT)
        more = [f"{len(counts) - 6} more opcodes"] * (len(counts) > 6)
        return ", ".join([*(f"{number} {opcode}" for opcode, number in counts.most_common(6)), *more])

    @property
    def _every(self) -> list[Instruction]:
        return [each for computation in self.module.computations for each in computation.instructions]


@define(eq=False)
class Outlined:
    """The parts of a program, and how many of its instructions stay in the interpreter, by reason.

    `least` are the seconds in the interpreter that make a part worth a native call.
    """

    least: float = field(factory=lambda: LEAST)
    skipped: frozenset[str] = frozenset()
    parts: list[NativePart] = field(factory=list)
    reasons: dict[str, int] = field(factory=dict)
    _done: dict[Computation, Computation] = field(factory=dict)

    def computation(self, computation: Computation) -> Computation:
        """The computation with calls in the places of its parts; the computation itself if it has none."""
        if computation not in self._done:
            self._done[computation] = self._outlined(computation)
        return self._done[computation]

    def _outlined(self, computation: Computation) -> Computation:
        outside = frozenset(each for each in live(computation) if self._stays(each))
        level_of = levels(computation, outside)
        inside: dict[int, list[Instruction]] = {}
        rest: dict[int, list[Instruction]] = {}
        for each, level in level_of.items():
            (rest if each in outside else inside).setdefault(level, []).append(each)
        before = len(self.parts)
        frame = _NewComputation(computation)
        for level in sorted({*inside, *rest}):
            self._place(frame, inside.get(level, []))
            for each in rest.get(level, []):
                frame.keep(each, [self._callee(each, called) for called in each.called])
        if len(self.parts) == before and all(now is old for old, now in frame.now.items()):
            return computation
        return Computation(computation.name, frame.instructions, frame.now[computation.root])

    def _stays(self, instruction: Instruction) -> bool:
        """Whether an instruction stays in the interpreter, counting the reason."""
        if instruction.opcode in _FREE:
            return False
        reason = reason_against(instruction)
        if reason is None and instruction.opcode in self.skipped:
            reason = f"{instruction.opcode.replace('_', '-')} is faster there"
        if reason is not None:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return reason is not None

    def _callee(self, instruction: Instruction, called: Computation) -> Computation:
        return self.computation(called) if instruction.opcode in ("while", "conditional", "call") else called

    def _place(self, frame: _NewComputation, members: Sequence[Instruction]) -> None:
        """Add a call of these instructions to a computation, or the instructions if a call is not worth its cost."""
        if all(each.opcode in _LIGHT for each in members):
            for each in members:
                frame.keep(each)
            return
        part, operands, results = _part_of(frame.computation, members)
        if part.is_bounded and seconds_in_interpreter(part.module.entry) < self.least:
            self.reasons["a part is too small"] = self.reasons.get("a part is too small", 0) + len(members)
            for each in members:
                frame.keep(each)
            return
        self.parts.append(part)
        frame.call(part.called, operands, results)


@define(eq=False)
class _NewComputation:
    """A computation that is written anew: its instructions so far, and what each given instruction has become."""

    computation: Computation
    now: dict[Instruction, Instruction] = field(factory=dict)
    _kept: dict[Instruction, None] = field(factory=dict)
    _names: set[str] = field(init=False)
    _numbers: count[int] = field(factory=count)

    def __attrs_post_init__(self) -> None:
        self._names = {each.name for each in self.computation.instructions}
        for each in self.computation.instructions:
            if each.opcode in _FREE:
                self.now[each] = each
                self._kept[each] = None

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(self._kept)

    def keep(self, instruction: Instruction, called: Iterable[Computation] | None = None) -> None:
        self.now[instruction] = made = rewired(instruction, self.now, called)
        self._kept[made] = None

    def call(self, called: Computation, operands: Sequence[Instruction], results: Sequence[Instruction]) -> None:
        """Add a call on the leaves of the operands, whose result has the leaves of the results."""
        flat = [leaf for operand in operands for leaf in flattened(self.now[operand], self._add)]
        attributes = _attributes("call", to_apply=called)
        call = self._add("call", called.root.shape, flat, attributes, (len(flat),))
        elements = iter(flattened(call, self._add))
        for each in results:
            self.now[each] = packed(each.shape, elements, self._add)

    def _add(self, *what: Any) -> Instruction:
        made = _made(lambda: next(n for i in self._numbers if (n := f"part.{i}") not in self._names), *what)
        self._kept[made] = None
        return made


# ----------------------------------------------------------------------------
# A part as a computation of arrays that a native library takes

_AS_BITS = {8: u8, 16: u16}

Add = Callable[..., Instruction]


def _attributes(opcode: str, **values: object) -> object:
    record = OPS[opcode].attributes
    assert record is not None
    return record(**values)


def _made(
    name: Callable[[], str],
    opcode: str,
    shape: AnyShape,
    operands: Sequence[Instruction] = (),
    attributes: object = None,
    segments: tuple[int, ...] | None = None,
) -> Instruction:
    return Instruction(opcode, name(), shape, tuple(operands), segments, attributes)


def flattened(value: Instruction, add: Add) -> list[Instruction]:
    """The leaves of a value, each an array."""
    if not isinstance(value.shape, TupleShape):
        return [value]
    elements = [
        add("get_tuple_element", shape, [value], _attributes("get_tuple_element", index=number))
        for number, shape in enumerate(value.shape.elements)
    ]
    return [leaf for each in elements for leaf in flattened(each, add)]


def packed(shape: AnyShape, elements: Iterable[Instruction], add: Add) -> Instruction:
    """A value of this shape with the next of these leaves."""
    rest = iter(elements)
    if not isinstance(shape, TupleShape):
        return next(rest)
    parts = [packed(each, rest, add) for each in shape.elements]
    return add("tuple", TupleShape(each.shape for each in parts), parts, None, (len(parts),))


def _part_of(
    computation: Computation, members: Sequence[Instruction]
) -> tuple[NativePart, list[Instruction], list[Instruction]]:
    """The part of these instructions, the values that it takes, and those that it returns."""
    within = frozenset(members)
    operands = [
        *dict.fromkeys(o for each in members for o in each.operands if o not in within and o.opcode != "constant")
    ]
    users = (each for each in live(computation) if each not in within and each.opcode not in _FREE)
    used = {operand for each in users for operand in (*each.operands, *each.control)} | {computation.root}
    results = [each for each in members if each in used]
    called = _computation(members, operands, results, as_bits=False)
    is_native = all(leaf.dtype.is_native for leaf in _arrays([*operands, *results]))
    entry = called if is_native else _computation(members, operands, results, as_bits=True)
    module = mapped(as_engine_reads(Module("part", entry)), _without_annotations)
    return NativePart(module, called, is_bounded(called)), operands, results


def _arrays(values: Iterable[Instruction]) -> list[Shape]:
    """The shapes of the leaves of values, without layouts."""
    return [leaf.plain() for each in values for leaf in leaves(each.shape) if isinstance(leaf, Shape)]


def _computation(
    members: Sequence[Instruction], operands: Sequence[Instruction], results: Sequence[Instruction], *, as_bits: bool
) -> Computation:
    """The instructions as a computation from the leaves of the operands to those of the results.

    With `as_bits`, it takes and returns arrays of types that NumPy lacks as integers with the same bits.
    """
    body, names, numbers = dict[Instruction, None](), count(), count()

    def add(*what: Any) -> Instruction:
        made = _made(lambda: f"p{next(names)}", *what)
        body[made] = None
        return made

    def bits(shape: Shape) -> Shape:
        return evolve(shape, dtype=_AS_BITS[shape.dtype.bits]) if as_bits and not shape.dtype.is_native else shape

    def as_type(value: Instruction, shape: Shape) -> Instruction:
        if value.shape == shape:
            return value
        return add("bitcast_convert", shape, [value], _attributes("bitcast_convert", new_element_type=shape.dtype))

    def parameter(shape: Shape) -> Instruction:
        kind = bits(shape)
        return as_type(add("parameter", kind, (), _attributes("parameter", number=next(numbers), shape=kind)), shape)

    now: dict[Instruction, Instruction] = {}
    for operand in operands:
        now[operand] = packed(operand.shape, [parameter(leaf) for leaf in _arrays([operand])], add)
    constants = dict.fromkeys(o for each in members for o in each.operands if o.opcode == "constant")
    for each in (*constants, *members):
        now[each] = rewired(each, now, name=f"p{next(names)}")
        body[now[each]] = None
    outputs = [leaf for each in results for leaf in flattened(now[each], add)]
    shapes = _arrays(outputs)
    parts = [as_type(leaf, bits(shape)) if as_bits else leaf for leaf, shape in zip(outputs, shapes, strict=True)]
    root = add("tuple", TupleShape(map(bits, shapes)), parts, None, (len(parts),))
    return Computation("part", tuple(body), root)


def _without_annotations(instruction: Instruction) -> Instruction:
    return evolve(instruction, annotations=NOTHING, where=None)
