"""Which leaves of which instructions vary with the leaves of parameters that a derivative is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field

from shape_inference import TupleShape

from ..core.graph import Computation, Instruction
from ..properties.effects import MEETS
from ..properties.order import ordered
from . import trees
from .rules import ZERO, activities, all_rules


class _Outside(dict[Instruction, Any]):
    """What is known to vary; of an instruction that is not in it nothing does."""

    def __missing__(self, each: Instruction) -> Any:
        return trees.constant(each.shape, False)


@define(eq=False)
class Activity:
    """Which leaves vary, for each computation and each choice of its parameters' leaves found once.

    `channels` are those on which something arrives that varies on the device that sends it (None: any may be one), and
    `is_group` tells that each device has a program of its own, so that a collective may bring what varies elsewhere.
    """

    channels: frozenset[int] | None = None
    is_group: bool = False
    _known: dict[Any, dict[Instruction, Any]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        all_rules()

    def carries(self, channel: int) -> bool:
        """Whether something arrives on a channel that varies."""
        return self.channels is None or channel in self.channels

    def varies_anywhere(self, collective: Instruction) -> bool:
        """Whether a collective of a group of programs may bring what varies."""
        return self.is_group and trees.any_of(trees.differentiable(collective.shape))

    def sent(self) -> frozenset[int]:
        """The channels on which something is sent that varies, of all computations that were looked at."""
        return frozenset(
            each.attributes.channel_id
            for found in self._known.values()
            for each, varies in found.items()
            if each.opcode == "send" and trees.any_of(varies) and not each.attributes.is_host_transfer
        )

    def of(self, computation: Computation, parameters: tuple[Any, ...]) -> dict[Instruction, Any]:
        """For each instruction the tree of its leaves, True where one varies with a parameter's leaf that is True."""
        key = computation, parameters
        if key not in self._known:
            found: dict[Instruction, Any] = {}
            for each in ordered(computation):
                found[each] = self._instruction(each, found, parameters)
            self._known[key] = found
        return self._known[key]

    def root(self, computation: Computation, parameters: tuple[Any, ...]) -> Any:
        """The tree of the root."""
        return self.of(computation, parameters)[computation.root]

    def within(self, instructions: Iterable[Instruction], given: dict[Instruction, Any]) -> dict[Instruction, Any]:
        """The same for instructions of which some operands stand outside; those vary where it is given that they do."""
        found = _Outside(given)
        for each in instructions:
            found[each] = self._instruction(each, found, ())
        return found

    def _instruction(self, each: Instruction, found: dict[Instruction, Any], parameters: tuple[Any, ...]) -> Any:
        if each.opcode == "parameter":
            return parameters[each.attributes.number]
        if each.opcode in ZERO:
            return trees.constant(each.shape, False)
        operands = [found[operand] for operand in each.operands]
        rule = activities.get(each.opcode)
        if rule is not None:
            return rule(self, each, *operands)
        if any(map(trees.any_of, operands)) or (each.opcode in MEETS and self.varies_anywhere(each)):
            return trees.differentiable(each.shape)
        return trees.constant(each.shape, False)


def _wrapped(activity: Activity, each: Instruction, *operands: Any) -> Any:
    (region,) = each.called
    return activity.root(region, operands)


activities.enter("call", _wrapped)
activities.enter("fusion", _wrapped)


@activities
def _tuple(activity: Activity, each: Instruction, *operands: Any) -> Any:
    return operands


@activities
def get_tuple_element(activity: Activity, each: Instruction, operand: Any) -> Any:
    return operand[each.attributes.index]


def _passed(activity: Activity, each: Instruction, operand: Any, *others: Any) -> Any:
    return operand


for _opcode in ("opt_barrier", "domain", "add_dependency", "async_update"):
    activities.enter(_opcode, _passed)


@activities
def conditional(activity: Activity, each: Instruction, index: Any, *operands: Any) -> Any:
    found = trees.constant(each.shape, False)
    for branch, operand in zip(each.attributes.branch_computations, operands, strict=True):
        found = trees.joined(found, activity.root(branch, (operand,)))
    return found


@activities
def while_(activity: Activity, each: Instruction, init: Any) -> Any:
    state = init
    while True:
        after = trees.joined(state, activity.root(each.attributes.body, (state,)))
        if after == state:
            return state
        state = after


@activities
def scan(activity: Activity, each: Instruction, *operands: Any) -> Any:
    carried = each.attributes.num_carries
    slices, carries = operands[: len(operands) - carried], operands[len(operands) - carried :]
    while True:
        root = activity.root(each.attributes.to_apply, (*slices, *carries))
        given = root if isinstance(root, tuple) else (root,)
        outputs, handed_on = given[: len(given) - carried], given[len(given) - carried :]
        after = trees.joined(tuple(carries), tuple(handed_on)) if carried else ()
        if after == tuple(carries):
            found = (*outputs, *carries)
            return found if isinstance(each.shape, TupleShape) else found[0]
        carries = after


@activities
def recv(activity: Activity, each: Instruction, token: Any) -> Any:
    if activity.carries(each.attributes.channel_id) and not each.attributes.is_host_transfer:
        return trees.differentiable(each.shape)
    return trees.constant(each.shape, False)


@activities
def send(activity: Activity, each: Instruction, operand: Any, token: Any) -> Any:
    return operand, False, False


@activities
def async_start(activity: Activity, each: Instruction, *operands: Any) -> Any:
    (region,) = each.called
    rest = [trees.constant(shape, False) for shape in each.shape.elements[2:]]  # type: ignore[union-attr]
    return (operands, activity.root(region, operands), *rest)
