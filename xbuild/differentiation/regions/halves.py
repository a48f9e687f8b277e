"""A called computation in two halves: what computes it and keeps values, and what takes cotangents back with these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from shape_inference import Shape, TupleShape

from ... import ops
from ...core.builder import Value
from ...core.context import apart
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...properties.effects import has_effect
from ...properties.order import ordered
from ...properties.trip_counts import path_of
from .. import trees
from ..recorder import Recorder
from ..walk import Walk
from .copying import Copies

_RECOMPUTED = frozenset({"broadcast", "constant", "iota", "reshape", "tuple", "partition_id", "replica_id"})
"""What costs no more to compute again than to keep."""

_LIGHT = _RECOMPUTED | {
    "add", "and", "bitcast", "clamp", "compare", "convert", "copy", "dynamic_slice", "get_tuple_element", "maximum",
    "minimum", "multiply", "negate", "not", "or", "remainder", "reverse", "select", "slice", "subtract", "transpose",
}  # fmt: skip
"""What is computed again, where all that it reads is at hand, rather than kept for each trip of a loop."""

Leaf = tuple[int, trees.Path]


@define(eq=False)
class Halves:
    """The forward instructions of a computation and those that were recorded on the walk back.

    `outputs` are the trees of the cotangents of its parameters; `kept` are the values that the way back needs of the
    forward half; `read` the leaves of the parameters that it needs.
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
        """Whether the way back does more than give cotangents."""
        return any(map(has_effect, self.backward))

    def run_forward(self, recorder: Recorder, parameters: Sequence[Any]) -> tuple[Value, list[Value]]:
        """The forward half on these parameters: its result, and the values that are kept."""
        copies = Copies(recorder, dict(zip(self.computation.parameters, parameters, strict=True)))
        copies.take(self.forward)
        return copies.value(self.root), [copies.value(each) for each in self.kept]

    def run_back(
        self, recorder: Recorder, kept: Sequence[Value], parameters: Sequence[Any], seeds: Sequence[Value]
    ) -> tuple[Any, ...]:
        """The way back from cotangents, with what was kept: the trees of the cotangents of the parameters."""
        given: dict[Instruction, Any] = dict(zip(self.kept, kept, strict=True))
        given |= dict(zip(self.seeds, seeds, strict=True))
        given |= dict(zip(self.computation.parameters, parameters, strict=True))
        given |= {each: trees.mapped(given.get, tree) for each, tree in self.rebuilt.items()}
        copies = Copies(recorder, given)
        copies.take(self.repeated, recorder.unique)
        copies.take(self.backward, recorder.unique if self.is_used else None)
        self.is_used = True

        def now(each: Instruction | None) -> Value | None:
            return copies.value(each) if each is not None else None

        return tuple([trees.mapped(now, tree) for tree in self.outputs])


def halves_of(
    context: Any,
    parent: Recorder,
    computation: Computation,
    varies: tuple[Any, ...],
    live: Any,
    at_hand: Callable[[Leaf], bool],
    recomputes: bool,
) -> Halves:
    """The halves of a computation of which the parameters' leaves `varies` vary and the root's leaves `live` count.

    `at_hand` tells which leaves of parameters the way back has without keeping them; with `recomputes` nothing is kept
    but parameters.
    """
    recorder = Recorder(f"{computation.name}.joint", parent)
    recorder.adopt(ordered(computation))
    seeds: list[Value] = []

    def seed(shape: Any, counts: bool) -> Value | None:
        if not counts:
            return None
        number = len(computation.parameters) + len(seeds)
        seeds.append(ops.parameter(recorder, number=number, shape=shape.plain(), name=recorder.fresh("ct")))
        return seeds[-1]

    def seeded(shape: Any, tree: Any) -> Any:
        if isinstance(shape, TupleShape):
            return tuple([seeded(part, each) for part, each in zip(shape.elements, tree, strict=True)])
        return seed(shape, tree)

    tree = seeded(computation.root.shape, live)
    with apart():
        found = Walk(context, recorder, context.activity.of(computation, varies)).back(computation, tree)
    return _divided(recorder, computation, seeds, found, at_hand, recomputes)


def _divided(
    recorder: Recorder,
    computation: Computation,
    seeds: list[Value],
    found: tuple[Any, ...],
    at_hand: Callable[[Leaf], bool],
    recomputes: bool,
) -> Halves:
    originals = {*computation.instructions}
    whole = recorder.assembled()
    is_forward = {recorder.now(each) for each in originals} | originals
    for augmented in recorder.augmented.values():
        is_forward |= {recorder.now(each) for each in (*augmented.before, augmented.now, *augmented.after)}
    for each in whole:  # what nested loops and calls have kept is taken out of their results
        if each.opcode == "get_tuple_element" and each.operands[0] in is_forward:
            is_forward.add(each)
    given = {each.instruction for each in seeds}
    forward = [each for each in whole if each in is_forward]
    outputs = tuple(
        [
            _tree(parameter.shape, cotangent, recorder)
            for parameter, cotangent in zip(computation.parameters, found, strict=True)
        ]
    )
    rest = [each for each in whole if each not in is_forward and each not in given]
    halves = Halves(
        computation,
        [each.instruction for each in seeds],
        forward,
        recorder.now(computation.root),
        rest,
        outputs,
    )
    _Cut(halves, is_forward, at_hand, recomputes).make()
    return halves


def _tree(shape: Any, cotangent: Any, recorder: Recorder) -> Any:
    """The tree of the instructions that cotangents have become, with None where there is none."""
    if isinstance(shape, TupleShape):
        parts = cotangent if cotangent is not None else [None] * len(shape)
        return tuple([_tree(each, part, recorder) for each, part in zip(shape.elements, parts, strict=True)])
    return recorder.now(cotangent.instruction) if cotangent is not None else None


class _Cut:
    """Which values go over from the forward half to the way back, and which are computed there again."""

    def __init__(
        self, halves: Halves, is_forward: set[Instruction], at_hand: Callable[[Leaf], bool], recomputes: bool
    ) -> None:
        self.halves, self.is_forward, self.at_hand, self.recomputes = halves, is_forward, at_hand, recomputes
        self.kept: dict[Instruction, None] = {}
        self.read: dict[Leaf, None] = {}
        self.again: set[Instruction] = set()
        self.known: dict[Instruction, bool] = {}
        self.open: list[Instruction] = []

    def make(self) -> None:
        halves = self.halves
        for each in halves.forward:  # in order, so that no question goes deeper than its operands
            self._is_light(each)
        needed = self._needed()
        halves.backward = [each for each in halves.backward if each in needed]
        halves.kept, halves.read = list(self.kept), list(self.read)
        halves.repeated = [each for each in halves.forward if each in self.again]

    def _needed(self) -> set[Instruction]:
        """What of the way back the outputs and effects need; what that reads of the forward half is settled here."""
        stack = [each for tree in self.halves.outputs for each in trees.leaves_of(tree) if each is not None]
        stack += [each for each in self.halves.backward if has_effect(each)]
        found: set[Instruction] = set()
        seeds = {*self.halves.seeds}
        while stack:
            each = stack.pop()
            if each in found or each in seeds:
                continue
            if each in self.is_forward:
                self._settle(each)
            else:
                found.add(each)
                stack += [*each.operands, *each.control]
        return found

    def _settle(self, value: Instruction) -> None:
        """Have a forward value on the way back, and what that takes."""
        self.open = [value]
        while self.open:
            self._settle_one(self.open.pop())

    def _settle_one(self, value: Instruction) -> None:
        """Have a value as a parameter's leaf, computed again from others that are open then, or kept."""
        if value in self.kept or value in self.again or value in self.halves.rebuilt:
            return
        path = path_of(value)
        if path is not None:
            self._read(value, path)
        elif value.opcode in _RECOMPUTED or self._is_light(value) or (self.recomputes and not _is_once(value)):
            self.again.add(value)
            self.open += value.operands
        elif isinstance(value.shape, Shape):
            self.kept[value] = None
        else:
            self._keep_elements(value)

    def _read(self, value: Instruction, path: Leaf) -> None:
        number, before = path
        for rest, shape in trees.paths(value.shape, before):
            if isinstance(shape, Shape):
                self.read[number, rest] = None
        while value.opcode != "parameter":
            self.again.add(value)
            value = value.operands[0]

    def _keep_elements(self, value: Instruction) -> None:
        """Keep each leaf of a tuple that is needed as a whole."""

        def kept(each: Instruction) -> Any:
            if not isinstance(each.shape, TupleShape):
                self.kept[each] = None
                return each
            parts = [self._element(each, n) for n in range(len(each.shape))]
            return tuple(map(kept, parts))

        self.halves.rebuilt[value] = kept(value)

    def _element(self, value: Instruction, index: int) -> Instruction:
        """An element of a tuple of the forward half, which is taken out there."""
        shape: Any = value.shape
        record = OPS["get_tuple_element"].read({"index": index})
        made = Instruction("get_tuple_element", f"{value.name}.{index}", shape.elements[index], (value,), None, record)
        self.halves.forward.append(made)
        return made

    def _is_light(self, value: Instruction) -> bool:
        """Whether all that it is computed from is at hand, by ops that cost little."""
        if value not in self.known:
            self.known[value] = self._found_light(value)
        return self.known[value]

    def _found_light(self, value: Instruction) -> bool:
        path = path_of(value)
        if path is not None:
            leaves = trees.paths(value.shape, path[1])
            return all(self.at_hand((path[0], rest)) for rest, shape in leaves if isinstance(shape, Shape))
        if not value.operands:
            return value.opcode in _RECOMPUTED
        return value.opcode in _LIGHT and all(map(self._is_light, value.operands))


def _is_once(value: Instruction) -> bool:
    """Whether a value must not be computed twice."""
    return value.opcode in ("rng", "rng_get_and_update_state", "infeed", "recv", "recv_done") or (
        value.opcode == "custom_call" and has_effect(value)
    )
