"""The derivatives of call, fusion, map and conditional: the callee keeps values, and a backward callee uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import Shape

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation
from . import trees
from .halves import Halves, Leaf, split_computation
from .loops import leaf_at, tuple_elements
from .recorder import Augmented, DerivativeRecorder
from .rules import Pullback, full

MOST_KEPT = 1000
"""The most values that a call keeps for the backward pass. Beyond that the callee is recomputed: if every callee calls
two more, the number of kept values would double at each level."""


def split_region(back: Pullback, region: Computation, varies: Sequence[Any], cotangent: Any, again: bool) -> Halves:
    """The halves of a called computation, whose arguments are at hand in the backward pass; split once."""
    context, leaves = back.context, tuple(varies)
    live = trees.map_leaves(lambda ct: ct is not None, trees.expand(cotangent, region.root.shape))
    key = "region", region, leaves, live, again
    if key not in context.known:
        body = context.inline(region)
        halves = split_computation(context, back.recorder, body, leaves, live, lambda leaf: True, again)
        if len(halves.kept) > MOST_KEPT and not again:
            halves = split_computation(context, back.recorder, body, leaves, live, lambda leaf: True, True)
        context.known[key] = halves
    return context.known[key]  # type: ignore[no-any-return]


def record_parameters(recorder: DerivativeRecorder, shapes: Sequence[Any]) -> list[Value]:
    return [ops.parameter(recorder, number=n, shape=shape.plain()) for n, shape in enumerate(shapes)]


def pull_back_call(back: Pullback, operands: Sequence[Value], region: Computation) -> Sequence[Any]:
    """The cotangents of the operands of a call or a fusion."""
    again = back.context.recomputes(back.instruction)
    halves = split_region(back, region, back.varies, back.ct, again)
    kept = _augment_call(back, operands, region, halves) if halves.kept else []
    read = [leaf_at(operands[number], path) for number, path in halves.read]
    seeds = [argument for argument in trees.flatten(trees.expand(back.ct, region.root.shape)) if argument is not None]
    arguments = [*kept, *read, *seeds]
    key = "back", region, id(halves)
    known = back.context.known
    if key not in known:
        known[key] = _backward_computation(back, halves, [argument.shape for argument in arguments], region.name)
    computation, places = known[key]
    if computation is None:
        return (None,) * len(operands)
    result = _record_call(back, arguments, computation)
    cotangents = iter(tuple_elements(result))
    shapes = [operand.shape for operand in operands]
    return trees.map_shapes(shapes, lambda n, path: next(cotangents) if (n, path) in places else None)


def _record_call(back: Pullback, operands: Sequence[Value], computation: Computation) -> Value:
    """Record the same op (call or fusion) with different operands and a different computation."""
    if back.instruction.opcode == "fusion":
        kind = back.instruction.attributes.kind
        return ops.fusion(tuple(operands), kind=kind, calls=computation, builder=back.builder)
    return ops.call(tuple(operands), to_apply=computation, builder=back.builder)


def _backward_computation(
    back: Pullback, halves: Halves, shapes: Sequence[Any], name: str
) -> tuple[Computation | None, dict[Leaf, None]]:
    """The backward half as a computation, and the parameter leaves whose cotangents it returns, in order.

    The computation is None if it returns none and has no effect.
    """
    inner = back.recorder.inner(f"{name}.vjp", back.instruction)
    values = record_parameters(inner, shapes)
    kept, rest = values[: len(halves.kept)], values[len(halves.kept) :]
    read, seeds = rest[: len(halves.read)], rest[len(halves.read) :]
    cotangents = halves.run_back(inner, kept, parameter_trees(halves, read), seeds)
    leaves = [
        ((n, path), value)
        for n, (parameter, tree) in enumerate(zip(halves.computation.parameters, cotangents, strict=True))
        for path, _ in trees.paths(parameter.shape)
        if (value := trees.at(tree, path)) is not None
    ]
    if not leaves and not halves.has_effect:
        return None, {}
    result = inner.build_computation(ops.tuple_(tuple([value for _, value in leaves]), builder=inner))
    return result, dict.fromkeys(leaf for leaf, _ in leaves)


def parameter_trees(halves: Halves, read: Sequence[Value]) -> Sequence[Any]:
    """The parameters as trees of the leaves that the backward half reads."""
    known = dict(zip(halves.read, read, strict=True))
    shapes = [parameter.shape for parameter in halves.computation.parameters]
    return trees.map_shapes(shapes, lambda n, path: known.get((n, path)))


def _augment_call(back: Pullback, operands: Sequence[Value], region: Computation, halves: Halves) -> list[Value]:
    """Replace the call by one that also returns the kept values."""
    recorder = back.recorder
    with recorder.recording_aside() as before:
        key = "forward", region, id(halves)
        known = back.context.known
        if key not in known:
            inner = recorder.inner(region.name, back.instruction)
            root, kept = halves.run_forward(inner, record_parameters(inner, [p.shape for p in region.parameters]))
            known[key] = inner.build_computation(ops.tuple_((root, *kept)))
        value = _record_call(back, operands, known[key])
    before.remove(value.instruction)
    with recorder.recording_aside() as after:
        stand_in = ops.get_tuple_element(value, index=0)
    recorder.augmented[back.instruction] = Augmented(before, value.instruction, after, stand_in.instruction, False)
    return [ops.get_tuple_element(value, index=1 + n) for n in range(len(halves.kept))]


def pull_back_inline(back: Pullback, operands: Sequence[Value], region: Computation, cotangent: Any) -> Sequence[Any]:
    """The cotangents of a region's arguments, with the backward half recorded inline."""
    halves = split_region(back, region, back.varies, cotangent, True)
    read = [leaf_at(operands[number], path) for number, path in halves.read]
    seeds = [ct for ct in trees.flatten(trees.expand(cotangent, region.root.shape)) if ct is not None]
    return halves.run_back(back.recorder, [], parameter_trees(halves, read), seeds)


def pull_back_map(back: Pullback, operands: Sequence[Value], region: Computation, dimensions: Any) -> Sequence[Any]:
    """The cotangents of the operands of a map: for each, a map of the backward half of the scalar computation."""
    halves = split_region(back, region, back.varies, back.ct, True)
    assert not halves.kept, halves.kept
    cotangents: list[Value | None] = []
    for n in range(len(operands)):
        if not back.wants(n) or halves.outputs[n] is None:
            cotangents.append(None)
            continue
        inner = back.recorder.inner(f"{region.name}.vjp", back.instruction)
        *parameters, seed = record_parameters(inner, [*(p.shape for p in region.parameters), region.root.shape])
        root = halves.run_back(inner, [], parameters, [seed])[n]
        cotangents.append(ops.map((*operands, back.ct), to_apply=inner.build_computation(root), dimensions=dimensions))
    return cotangents


class ConditionalAdjoint:
    """A conditional, and its backward conditional: the branch taken keeps its values, others return zeros for them."""

    def __init__(self, back: Pullback, index: Value, operands: Sequence[Value], regions: Sequence[Computation]) -> None:
        self.back, self.index, self.operands, self.regions = back, index, operands, regions
        self.recorder = back.recorder
        again = back.context.recomputes(back.instruction)
        self.halves = [
            split_region(back, region, (varies,), back.ct, again)
            for region, varies in zip(regions, back.varies[1:], strict=True)
        ]
        self.slots, self.places = self._slots()
        self._first: dict[Any, Leaf] = {}

    def _slots(self) -> tuple[list[Shape], list[list[int]]]:
        """The shapes of kept values, shared between branches, and the slot of each kept value of each branch."""
        slots: list[Shape] = []
        places = []
        for halves in self.halves:
            free = list(range(len(slots)))
            taken = []
            for value in halves.kept:
                shape: Any = value.shape.plain()
                place = next((n for n in free if slots[n] == shape), None)
                if place is None:
                    place = len(slots)
                    slots.append(shape)
                else:
                    free.remove(place)
                taken.append(place)
            places.append(taken)
        return slots, places

    def augment(self) -> list[Value]:
        """Replace the conditional by one that also returns what its branches keep."""
        if not self.slots:
            return []
        recorder = self.recorder
        with recorder.recording_aside() as before:
            branches = tuple([self._forward(n) for n in range(len(self.regions))])
            value = ops.conditional(self.index, tuple(self.operands), branch_computations=branches)
        before.remove(value.instruction)
        with recorder.recording_aside() as after:
            stand_in = ops.get_tuple_element(value, index=0)
        origin = self.back.instruction
        recorder.augmented[origin] = Augmented(before, value.instruction, after, stand_in.instruction, False)
        return [ops.get_tuple_element(value, index=1 + n) for n in range(len(self.slots))]

    def _forward(self, n: int) -> Computation:
        inner = self.recorder.inner(self.regions[n].name, self.back.instruction)
        root, kept = self.halves[n].run_forward(inner, record_parameters(inner, [self.operands[n].shape]))
        given = dict(zip(self.places[n], kept, strict=True))
        values = [given[k] if k in given else full(inner, 0, shape) for k, shape in enumerate(self.slots)]
        return inner.build_computation(ops.tuple_((root, *values)))

    def record_backward_conditional(self, kept: Sequence[Value]) -> Sequence[Any]:
        """Record the conditional of the backward halves: the cotangents of the operands."""
        leaves = self._leaves()
        if not leaves and not any(halves.has_effect for halves in self.halves):
            return (None,) * (1 + len(self.operands))
        seeds = [ct for ct in trees.flatten(trees.expand(self.back.ct, self.regions[0].root.shape)) if ct is not None]
        packed_operands, branches = [], []
        for n, halves in enumerate(self.halves):
            values = [kept[place] for place in self.places[n]]
            values += [leaf_at(self.operands[n], path) for _, path in halves.read]
            operand = ops.tuple_((*values, *seeds), builder=self.recorder)
            packed_operands.append(operand)
            branches.append(self._backward_branch(n, operand.shape, leaves))
        result = ops.conditional(self.index, tuple(packed_operands), branch_computations=tuple(branches))
        cotangents = dict(zip(leaves, tuple_elements(result), strict=True))
        shapes = [operand.shape for operand in self.operands]
        return (None, *trees.map_shapes(shapes, lambda n, path: cotangents.get((n, path))))

    def _backward_branch(self, n: int, shape: Any, leaves: Sequence[Leaf]) -> Computation:
        """The backward half of a branch, with zeros for the operands of other branches."""
        halves = self.halves[n]
        inner = self.recorder.inner(f"{self.regions[n].name}.vjp", self.back.instruction)
        values = tuple_elements(ops.parameter(inner, number=0, shape=shape))
        kept, rest = values[: len(halves.kept)], values[len(halves.kept) :]
        read, seeds = rest[: len(halves.read)], rest[len(halves.read) :]
        tree = halves.run_back(inner, kept, parameter_trees(halves, read), seeds)[0]
        cotangents: dict[Leaf, Value] = {}
        for path, _ in trees.paths(self.operands[n].shape):
            value, target = trees.at(tree, path), self.shared_leaf(n, path)
            if value is not None:
                cotangents[target] = value if target not in cotangents else ops.add(cotangents[target], value)
        results = [
            cotangents[leaf]
            if leaf in cotangents
            else full(inner, 0, trees.at(self.operands[leaf[0]].shape, leaf[1]).plain())
            for leaf in leaves
        ]
        return inner.build_computation(ops.tuple_(tuple(results), builder=inner))

    def _leaves(self) -> list[Leaf]:
        """The operand leaves that have a cotangent; a value passed to several branches counts once."""
        leaves: dict[Any, None] = {}
        for n, halves in enumerate(self.halves):
            for path, _ in trees.paths(self.operands[n].shape):
                if trees.at(halves.outputs[0], path) is not None:
                    leaves[self.shared_leaf(n, path)] = None
        return list(leaves)

    def shared_leaf(self, n: int, path: trees.Path) -> tuple[int, trees.Path]:
        """The first branch and leaf whose operand is the same value as this leaf."""
        return self._first.setdefault(self._identity(n, path), (n, path))

    def _identity(self, n: int, path: trees.Path) -> Any:
        instruction, rest = self.operands[n].instruction, list(path)
        while rest and instruction.opcode == "tuple":
            instruction = instruction.operands[rest.pop(0)]
        return instruction, tuple(rest)
