"""A called computation in two halves: the forward half keeps values, the backward half uses them for the cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from shape_inference import Shape, TupleShape

from .. import ops
from ..core.builder import Value
from ..core.context import apart
from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..properties.effects import has_effect
from ..properties.order import ordered
from ..properties.trip_counts import path_of
from . import trees
from .recorder import Copies, DerivativeRecorder
from .walk import CotangentWalk

_CHEAPEST = frozenset({"broadcast", "constant", "iota", "reshape", "tuple", "partition_id", "replica_id"})
"""Ops that cost no more to recompute than to keep."""

_LIGHT = _CHEAPEST | {
    "add", "and", "bitcast", "clamp", "compare", "convert", "copy", "dynamic_slice", "get_tuple_element", "maximum",
    "minimum", "multiply", "negate", "not", "or", "remainder", "reverse", "select", "slice", "subtract", "transpose",
}  # fmt: skip
"""Ops that are recomputed if everything they read is at hand, instead of kept for each trip of a loop."""

Leaf = tuple[int, trees.Path]


@define(eq=False)
class Halves:
    """The forward instructions of a computation, and the backward ones recorded by the walk.

    `outputs` are the trees of the cotangents of its parameters. The backward half needs the values `kept` of the
    forward half and the leaves `read` of the parameters, and recomputes the instructions `repeated`.
    """

    computation: Computation
    seeds: list[Instruction]
    forward: list[Instruction]
    root: Instruction
    backward: list[Instruction]
    outputs: tuple[Any, ...]
    kept: list[Instruction] = field(factory=list)
    read: list[Leaf] = field(factory=list)
    repeated: list[Instruction] = field(factory=list)
    rebuilt: dict[Instruction, Any] = field(factory=dict)
    is_used: bool = False

    @property
    def has_effect(self) -> bool:
        """Whether the backward half does more than compute cotangents."""
        return any(map(has_effect, self.backward))

    def run_forward(self, recorder: DerivativeRecorder, parameters: Sequence[Any]) -> tuple[Value, list[Value]]:
        """Record the forward half on these parameters: its result, and the values that it keeps."""
        copies = Copies(recorder, dict(zip(self.computation.parameters, parameters, strict=True)))
        copies.copy_all(self.forward)
        return copies.value(self.root), [copies.value(instruction) for instruction in self.kept]

    def run_back(
        self, recorder: DerivativeRecorder, kept: Sequence[Value], parameters: Sequence[Any], seeds: Sequence[Value]
    ) -> tuple[Any, ...]:
        """Record the backward half from cotangents and kept values: the trees of the parameters' cotangents."""
        values: dict[Instruction, Any] = dict(zip(self.kept, kept, strict=True))
        values |= dict(zip(self.seeds, seeds, strict=True))
        values |= dict(zip(self.computation.parameters, parameters, strict=True))
        values |= {instruction: trees.map_leaves(values.get, tree) for instruction, tree in self.rebuilt.items()}
        copies = Copies(recorder, values)
        copies.copy_all(self.repeated, recorder.unique)
        copies.copy_all(self.backward, recorder.unique if self.is_used else None)
        self.is_used = True

        def now(instruction: Instruction | None) -> Value | None:
            return copies.value(instruction) if instruction is not None else None

        return tuple([trees.map_leaves(now, tree) for tree in self.outputs])


def split_computation(
    context: Any,
    parent: DerivativeRecorder,
    computation: Computation,
    varies: tuple[Any, ...],
    live: Any,
    at_hand: Callable[[Leaf], bool],
    recomputes: bool,
) -> Halves:
    """Split a computation whose parameter leaves `varies` vary and whose root leaves `live` have cotangents.

    `at_hand` holds for parameter leaves that the backward half has without keeping them; with `recomputes`, only
    parameters are kept.
    """
    recorder = DerivativeRecorder(f"{computation.name}.joint", parent)
    recorder.adopt(ordered(computation))
    seeds: list[Value] = []

    def seed(shape: Any, counts: Any) -> Value | None:
        if not counts:
            return None
        number = len(computation.parameters) + len(seeds)
        seeds.append(ops.parameter(recorder, number=number, shape=shape.plain(), name=recorder.fresh("ct")))
        return seeds[-1]

    tree = trees.map_leaves(seed, computation.root.shape, live)
    with apart():
        cotangents = CotangentWalk(context, recorder, context.activity.varying_leaves(computation, varies)).pull_back(
            computation, tree
        )
    return _divide(recorder, computation, seeds, cotangents, at_hand, recomputes)


def _divide(
    recorder: DerivativeRecorder,
    computation: Computation,
    seeds: list[Value],
    cotangents: tuple[Any, ...],
    at_hand: Callable[[Leaf], bool],
    recomputes: bool,
) -> Halves:
    originals = {*computation.instructions}
    instructions = recorder.assemble()
    is_forward = {*map(recorder.latest, originals)} | originals
    for augmented in recorder.augmented.values():
        is_forward |= {*map(recorder.latest, (*augmented.before, augmented.replacement, *augmented.after))}
    for instruction in instructions:  # what nested loops and calls keep is read from their results
        if instruction.opcode == "get_tuple_element" and instruction.operands[0] in is_forward:
            is_forward.add(instruction)
    seed_instructions = {seed.instruction for seed in seeds}
    forward = [instruction for instruction in instructions if instruction in is_forward]
    outputs = tuple(
        [
            _instruction_tree(parameter.shape, cotangent, recorder)
            for parameter, cotangent in zip(computation.parameters, cotangents, strict=True)
        ]
    )
    rest = [
        instruction
        for instruction in instructions
        if instruction not in is_forward and instruction not in seed_instructions
    ]
    halves = Halves(
        computation,
        [seed.instruction for seed in seeds],
        forward,
        recorder.latest(computation.root),
        rest,
        outputs,
    )
    _KeptValues(halves, is_forward, at_hand, recomputes).decide()
    return halves


def _instruction_tree(shape: Any, cotangent: Any, recorder: DerivativeRecorder) -> Any:
    """The tree of the instructions of cotangents, with None for leaves without one."""
    return trees.map_leaves(
        lambda leaf: recorder.latest(leaf.instruction) if leaf is not None else None, trees.expand(cotangent, shape)
    )


class _KeptValues:
    """Decides which values the forward half keeps for the backward half, and which the backward half recomputes."""

    def __init__(
        self, halves: Halves, is_forward: set[Instruction], at_hand: Callable[[Leaf], bool], recomputes: bool
    ) -> None:
        self.halves, self.is_forward, self.at_hand, self.recomputes = halves, is_forward, at_hand, recomputes
        self.kept: dict[Instruction, None] = {}
        self.read: dict[Leaf, None] = {}
        self.again: set[Instruction] = set()
        self.known: dict[Instruction, bool] = {}
        self.open: list[Instruction] = []

    def decide(self) -> None:
        halves = self.halves
        for instruction in halves.forward:  # in order, so that the recursion never goes deeper than the operands
            self._is_light(instruction)
        needed = self._needed()
        halves.backward = [instruction for instruction in halves.backward if instruction in needed]
        halves.kept, halves.read = list(self.kept), list(self.read)
        halves.repeated = [instruction for instruction in halves.forward if instruction in self.again]

    def _needed(self) -> set[Instruction]:
        """The backward instructions that outputs and effects need; forward values that they read are provided."""
        stack = [leaf for tree in self.halves.outputs for leaf in trees.flatten(tree) if leaf is not None]
        stack += filter(has_effect, self.halves.backward)
        needed: set[Instruction] = set()
        seeds = {*self.halves.seeds}
        while stack:
            instruction = stack.pop()
            if instruction in needed or instruction in seeds:
                continue
            if instruction in self.is_forward:
                self._provide(instruction)
            else:
                needed.add(instruction)
                stack += [*instruction.operands, *instruction.control]
        return needed

    def _provide(self, value: Instruction) -> None:
        """Make a forward value available to the backward half, with everything that this takes."""
        self.open = [value]
        while self.open:
            self._provide_one(self.open.pop())

    def _provide_one(self, value: Instruction) -> None:
        """Read a value from a parameter, recompute it (its operands become open), or keep it."""
        if value in self.kept or value in self.again or value in self.halves.rebuilt:
            return
        path = path_of(value)
        if path is not None:
            self._read_parameter(value, path)
        elif value.opcode in _CHEAPEST or self._is_light(value) or (self.recomputes and not _must_run_once(value)):
            self.again.add(value)
            self.open += value.operands
        elif isinstance(value.shape, Shape):
            self.kept[value] = None
        else:
            self._keep_elements(value)

    def _read_parameter(self, value: Instruction, path: Leaf) -> None:
        number, before = path
        for rest, shape in trees.paths(value.shape):
            if isinstance(shape, Shape):
                self.read[number, (*before, *rest)] = None
        while value.opcode != "parameter":
            self.again.add(value)
            value = value.operands[0]

    def _keep_elements(self, value: Instruction) -> None:
        """Keep each leaf of a tuple."""

        def keep(instruction: Instruction) -> Any:
            if not isinstance(instruction.shape, TupleShape):
                self.kept[instruction] = None
                return instruction
            parts = [self._element(instruction, n) for n in range(len(instruction.shape))]
            return tuple(map(keep, parts))

        self.halves.rebuilt[value] = keep(value)

    def _element(self, value: Instruction, index: int) -> Instruction:
        """An element of a tuple, read in the forward half."""
        shape: Any = value.shape
        record = OPS["get_tuple_element"].read({"index": index})
        element = Instruction(
            "get_tuple_element", f"{value.name}.{index}", shape.elements[index], (value,), None, record
        )
        self.halves.forward.append(element)
        return element

    def _is_light(self, value: Instruction) -> bool:
        """Whether a value can be recomputed by cheap ops from what is at hand."""
        if value not in self.known:
            self.known[value] = self._compute_is_light(value)
        return self.known[value]

    def _compute_is_light(self, value: Instruction) -> bool:
        path = path_of(value)
        if path is not None:
            number, before = path
            arrays = [rest for rest, shape in trees.paths(value.shape) if isinstance(shape, Shape)]
            return all(self.at_hand((number, (*before, *rest))) for rest in arrays)
        if not value.operands:
            return value.opcode in _CHEAPEST
        return value.opcode in _LIGHT and all(map(self._is_light, value.operands))


def _must_run_once(value: Instruction) -> bool:
    """Whether a value must not be computed twice."""
    return value.opcode in ("rng", "rng_get_and_update_state", "infeed", "recv", "recv_done") or (
        value.opcode == "custom_call" and has_effect(value)
    )
