"""Which leaves of which instructions vary with the parameters with respect to which a program is differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ml_dtypes
from attrs import define, field

from shape_inference import AnyShape, Shape, TupleShape

from ..core.graph import Computation, Instruction
from ..properties.effects import MEETS
from ..properties.order import needed_by, ordered
from ..properties.patterns import number_in
from . import trees
from .rules import ZERO, activities, all_rules


class _Outside(dict[Instruction, Any]):
    """What is known to vary; a missing instruction does not vary."""

    def __missing__(self, instruction: Instruction) -> Any:
        return trees.fill(instruction.shape, False)


@define(eq=False)
class Activity:
    """Which leaves vary; computed once for each computation and each choice of varying parameter leaves.

    `channels` are those on which a value arrives that varies on the sending device (None: any channel may be one). In a
    group (`is_group`) each device has its own program, so a collective may bring in a value that varies elsewhere.
    """

    channels: frozenset[int] | None = None
    is_group: bool = False
    _known: dict[Any, dict[Instruction, Any]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        all_rules()

    def carries(self, channel: int) -> bool:
        """Whether a varying value arrives on a channel."""
        return self.channels is None or channel in self.channels

    def varies_anywhere(self, collective: Instruction) -> bool:
        """Whether a collective may bring in a value that varies on another device's program."""
        return self.is_group and trees.has_any(trees.differentiable_leaves(collective.shape))

    def sending_channels(self) -> frozenset[int]:
        """The channels on which a varying value is sent, in all computations analyzed so far."""
        return frozenset(
            instruction.attributes.channel_id
            for leaves in self._known.values()
            for instruction, varies in leaves.items()
            if instruction.opcode == "send" and trees.has_any(varies) and not instruction.attributes.is_host_transfer
        )

    def varying_leaves(self, computation: Computation, parameters: tuple[Any, ...]) -> dict[Instruction, Any]:
        """For each instruction the tree of its leaves, True for those that vary with a parameter leaf that is True.

        Leaves of integers that hold bits of varying floats are `trees.Bits`.
        """
        key = computation, parameters
        if key not in self._known:
            leaves: dict[Instruction, Any] = {}
            for instruction in ordered(computation):
                leaves[instruction] = self._result_leaves(instruction, leaves, parameters)
            self._known[key] = leaves
        return self._known[key]

    def root_leaves(self, computation: Computation, parameters: tuple[Any, ...]) -> Any:
        """The tree of the root's leaves."""
        return self.varying_leaves(computation, parameters)[computation.root]

    def varying_leaves_among(
        self, instructions: Iterable[Instruction], outside: dict[Instruction, Any]
    ) -> dict[Instruction, Any]:
        """The same for a list of instructions; `outside` says which of their outside operands vary."""
        leaves = _Outside(outside)
        for instruction in instructions:
            leaves[instruction] = self._result_leaves(instruction, leaves, ())
        return leaves

    def _result_leaves(
        self, instruction: Instruction, leaves: dict[Instruction, Any], parameters: tuple[Any, ...]
    ) -> Any:
        if instruction.opcode == "parameter":
            return parameters[instruction.attributes.number]
        operands = [leaves[operand] for operand in instruction.operands]
        rule = activities.get(instruction.opcode)
        if rule is not None:
            return rule(self, instruction, *operands)
        is_active = any(map(trees.has_any, operands)) or (
            instruction.opcode in MEETS and self.varies_anywhere(instruction)
        )
        bits = _bits_held(instruction, operands)
        if bits is None and instruction.opcode not in ZERO and is_active:
            return trees.differentiable_leaves(instruction.shape)
        if bits is None:
            return trees.fill(instruction.shape, False)
        is_active = is_active and instruction.opcode not in ZERO
        return trees.map_leaves(
            lambda leaf: bits if _is_integer(leaf) else is_active and trees.is_differentiable(leaf), instruction.shape
        )

    def floats_made_of_bits(self) -> Iterator[Instruction]:
        """The floats made from bits of varying floats, in all computations analyzed so far."""
        for (computation, _), leaves in self._known.items():
            needed = needed_by([computation.root])
            for instruction in computation.instructions:
                is_float = (
                    instruction in needed and instruction.opcode in _REINTERPRETING and leaves[instruction] is True
                )
                if is_float and not trees.has_any(leaves[instruction.operands[0]]):
                    yield instruction


_REINTERPRETING = frozenset({"bitcast", "bitcast_convert"})
_LOSES_BITS = frozenset({"count_leading_zeros", "popcnt", "sign"})
"""Integer ops whose result keeps little of the bits of the operand: it changes in steps."""

_INDEXED = frozenset({"dynamic_slice", "gather"})


def _is_integer(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and shape.dtype.kind in ("signed", "unsigned")


def _bits_held(instruction: Instruction, operands: Sequence[Any]) -> trees.Bits | None:
    """The bits of varying floats that a result holds; None without mantissa bits (only an exponent or a sign)."""
    data = operands[:1] if instruction.opcode in _INDEXED else operands
    held = [leaf for tree in data for leaf in trees.flatten(tree) if isinstance(leaf, trees.Bits)]
    if not held or instruction.opcode in _LOSES_BITS:
        return None
    bits = max(held, key=lambda leaf: leaf.mantissa)
    numbers = [number_in(operand) for operand in instruction.operands]
    if instruction.opcode == "and" and any(n is not None and not int(n) % (1 << bits.mantissa) for n in numbers):
        return None
    if instruction.opcode in ("shift_right_arithmetic", "shift_right_logical") and numbers[1] is not None:
        left = bits.mantissa - int(numbers[1])
        return trees.Bits(left) if left > 0 else None
    return bits


def _reinterpret(activity: Activity, instruction: Instruction, operand: Any) -> Any:
    """Bits read as another type: integers hold bits of varying floats, and floats made from these vary."""
    (source,), shape = instruction.operands, instruction.shape
    assert isinstance(source.shape, Shape)
    assert isinstance(shape, Shape)
    if trees.is_differentiable(shape):
        return operand is True or isinstance(operand, trees.Bits)
    if operand is not True or not _is_integer(shape):
        return operand if isinstance(operand, trees.Bits) and _is_integer(shape) else False
    if source.shape.dtype.bits != shape.dtype.bits:
        return trees.Bits(shape.dtype.bits)
    return trees.Bits(ml_dtypes.finfo(source.shape.dtype.dtype).nmant)  # type: ignore[no-untyped-call]


for _opcode in _REINTERPRETING:
    activities.enter(_opcode, _reinterpret)


def _call_region(activity: Activity, instruction: Instruction, *operands: Any) -> Any:
    (region,) = instruction.called
    return activity.root_leaves(region, operands)


activities.enter("call", _call_region)
activities.enter("fusion", _call_region)


@activities
def _tuple(activity: Activity, instruction: Instruction, *operands: Any) -> Any:
    return operands


@activities
def get_tuple_element(activity: Activity, instruction: Instruction, operand: Any) -> Any:
    return operand[instruction.attributes.index]


def _pass_first(activity: Activity, instruction: Instruction, operand: Any, *others: Any) -> Any:
    return operand


for _opcode in ("opt_barrier", "domain", "add_dependency", "async_update"):
    activities.enter(_opcode, _pass_first)


@activities
def conditional(activity: Activity, instruction: Instruction, index: Any, *operands: Any) -> Any:
    leaves = trees.fill(instruction.shape, False)
    for branch, operand in zip(instruction.attributes.branch_computations, operands, strict=True):
        leaves = trees.join(leaves, activity.root_leaves(branch, (operand,)))
    return leaves


@activities
def while_(activity: Activity, instruction: Instruction, init: Any) -> Any:
    state = init
    while True:
        after = trees.join(state, activity.root_leaves(instruction.attributes.body, (state,)))
        if after == state:
            return state
        state = after


@activities
def scan(activity: Activity, instruction: Instruction, *operands: Any) -> Any:
    carried = instruction.attributes.num_carries
    slices, carries = operands[: len(operands) - carried], operands[len(operands) - carried :]
    while True:
        root = activity.root_leaves(instruction.attributes.to_apply, (*slices, *carries))
        results = root if isinstance(root, tuple) else (root,)
        outputs, handed_on = results[: len(results) - carried], results[len(results) - carried :]
        after = trees.join(tuple(carries), tuple(handed_on)) if carried else ()
        if after == tuple(carries):
            leaves = (*outputs, *carries)
            return leaves if isinstance(instruction.shape, TupleShape) else leaves[0]
        carries = after


@activities
def recv(activity: Activity, instruction: Instruction, token: Any) -> Any:
    if activity.carries(instruction.attributes.channel_id) and not instruction.attributes.is_host_transfer:
        return trees.differentiable_leaves(instruction.shape)
    return trees.fill(instruction.shape, False)


@activities
def send(activity: Activity, instruction: Instruction, operand: Any, token: Any) -> Any:
    return operand, False, False


@activities
def async_start(activity: Activity, instruction: Instruction, *operands: Any) -> Any:
    (region,) = instruction.called
    rest = [trees.fill(shape, False) for shape in instruction.shape.elements[2:]]  # type: ignore[union-attr]
    return (operands, activity.root_leaves(region, operands), *rest)
