"""The derivatives of call, fusion, map and conditional: what is called keeps values, and has a way back of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import Shape

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from .. import trees
from ..recorder import Augmented, Recorder
from ..rules import Pullback, full
from .expansion import expanded
from .halves import Halves, Leaf, halves_of
from .loops import elements_once, filled, leaf_of, trees_at


def halves_of_region(back: Pullback, region: Computation, varies: Sequence[Any], cotangent: Any, again: bool) -> Halves:
    """The halves of a computation that is called with its parameters' values at hand, made once."""
    context, live = back.context, trees.mapped(lambda ct: ct is not None, filled(cotangent, region.root.shape))
    key = "region", region, tuple(varies), live, again
    if key not in context.known:
        body = expanded(region, context.calls, context.known)
        context.known[key] = halves_of(context, recorder_of(back), body, tuple(varies), live, lambda leaf: True, again)
    return context.known[key]  # type: ignore[no-any-return]


def recorder_of(back: Pullback) -> Recorder:
    assert isinstance(back.builder, Recorder)
    return back.builder


def _parameters(recorder: Recorder, shapes: Sequence[Any]) -> list[Value]:
    return [ops.parameter(recorder, number=n, shape=shape.plain()) for n, shape in enumerate(shapes)]


def call_of(back: Pullback, operands: Sequence[Value], region: Computation) -> Sequence[Any]:
    """The cotangents of the operands of a call or a fusion."""
    again = back.context.recomputes(back.instruction)
    halves = halves_of_region(back, region, back.varies, back.ct, again)
    kept = _augmented_call(back, operands, region, halves) if halves.kept else []
    read = [leaf_of(operands[number], path) for number, path in halves.read]
    seeds = [each for each in trees.leaves_of(filled(back.ct, region.root.shape)) if each is not None]
    given = [*kept, *read, *seeds]
    key = "back", region, id(halves)
    known = back.context.known
    if key not in known:
        known[key] = _back_computation(back, halves, [each.shape for each in given], region.name)
    computation, places = known[key]
    if computation is None:
        return (None,) * len(operands)
    result = _called(back, given, computation)
    found = iter(elements_once(result))
    shapes = [operand.shape for operand in operands]
    return trees.of_several(shapes, lambda n, path: next(found) if (n, path) in places else None)


def _called(back: Pullback, operands: Sequence[Value], computation: Computation) -> Value:
    """The op of the instruction on other operands, with another computation."""
    if back.instruction.opcode == "fusion":
        kind = back.instruction.attributes.kind
        return ops.fusion(tuple(operands), kind=kind, calls=computation, builder=back.builder)
    return ops.call(tuple(operands), to_apply=computation, builder=back.builder)


def _back_computation(
    back: Pullback, halves: Halves, shapes: Sequence[Any], name: str
) -> tuple[Computation | None, dict[Leaf, None]]:
    """The way back as a computation, and the leaves of the parameters whose cotangents it gives, in order.

    None where it gives none and has no effect.
    """
    inner = recorder_of(back).inner(f"{name}.vjp", back.instruction)
    values = _parameters(inner, shapes)
    kept, rest = values[: len(halves.kept)], values[len(halves.kept) :]
    read, seeds = rest[: len(halves.read)], rest[len(halves.read) :]
    found = halves.run_back(inner, kept, parameters_of(halves, read), seeds)
    leaves = [
        ((n, path), value)
        for n, (parameter, tree) in enumerate(zip(halves.computation.parameters, found, strict=True))
        for path, _ in trees.paths(parameter.shape)
        if (value := trees.at(tree, path)) is not None
    ]
    if not leaves and not halves.has_effect:
        return None, {}
    result = inner.built(ops.tuple_(tuple([value for _, value in leaves]), builder=inner))
    return result, dict.fromkeys(leaf for leaf, _ in leaves)


def parameters_of(halves: Halves, read: Sequence[Value]) -> Sequence[Any]:
    """The parameters as trees of what is read of them."""
    known = dict(zip(halves.read, read, strict=True))
    shapes = [parameter.shape for parameter in halves.computation.parameters]
    return trees.of_several(shapes, lambda n, path: known.get((n, path)))


def _augmented_call(back: Pullback, operands: Sequence[Value], region: Computation, halves: Halves) -> list[Value]:
    """Have the call give what is kept beside its result."""
    recorder = recorder_of(back)
    with recorder.aside() as before:
        key = "forward", region, id(halves)
        known = back.context.known
        if key not in known:
            inner = recorder.inner(region.name, back.instruction)
            root, kept = halves.run_forward(inner, _parameters(inner, [p.shape for p in region.parameters]))
            known[key] = inner.built(ops.tuple_((root, *kept)))
        value = _called(back, operands, known[key])
    before.remove(value.instruction)
    with recorder.aside() as after:
        stand_in = ops.get_tuple_element(value, index=0)
    recorder.augmented[back.instruction] = Augmented(before, value.instruction, after, stand_in.instruction, False)
    return [ops.get_tuple_element(value, index=1 + n) for n in range(len(halves.kept))]


def call_back_inline(back: Pullback, operands: Sequence[Value], region: Computation, cotangent: Any) -> Sequence[Any]:
    """The cotangents of what a region is called with, whose way back is written out here."""
    halves = halves_of_region(back, region, back.varies, cotangent, True)
    read = [leaf_of(operands[number], path) for number, path in halves.read]
    seeds = [each for each in trees.leaves_of(filled(cotangent, region.root.shape)) if each is not None]
    return halves.run_back(recorder_of(back), [], parameters_of(halves, read), seeds)


def map_of(back: Pullback, operands: Sequence[Value], region: Computation, dimensions: Any) -> Sequence[Any]:
    """The cotangents of the operands of a map: for each a map of the scalar way back."""
    halves = halves_of_region(back, region, back.varies, back.ct, True)
    assert not halves.kept, halves.kept
    found: list[Value | None] = []
    for n in range(len(operands)):
        if not back.wants(n) or halves.outputs[n] is None:
            found.append(None)
            continue
        inner = recorder_of(back).inner(f"{region.name}.vjp", back.instruction)
        *parameters, seed = _parameters(inner, [*(p.shape for p in region.parameters), region.root.shape])
        root = halves.run_back(inner, [], parameters, [seed])[n]
        found.append(ops.map((*operands, back.ct), to_apply=inner.built(root), dimensions=dimensions))
    return found


class Branches:
    """A conditional on the way back: the branch that was taken has kept its values, others give zeros for them."""

    def __init__(self, back: Pullback, index: Value, operands: Sequence[Value], regions: Sequence[Computation]) -> None:
        self.back, self.index, self.operands, self.regions = back, index, operands, regions
        self.recorder = recorder_of(back)
        again = back.context.recomputes(back.instruction)
        self.halves = [
            halves_of_region(back, region, (varies,), back.ct, again)
            for region, varies in zip(regions, back.varies[1:], strict=True)
        ]
        self.slots, self.places = self._slots()
        self._first: dict[Any, Leaf] = {}

    def _slots(self) -> tuple[list[Shape], list[list[int]]]:
        """The shapes that branches keep, shared where they are alike, and the place of each value of each branch."""
        slots: list[Shape] = []
        places = []
        for halves in self.halves:
            free = list(range(len(slots)))
            taken = []
            for each in halves.kept:
                shape: Any = each.shape.plain()
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
        """Have the conditional give what the branches keep beside its result."""
        if not self.slots:
            return []
        recorder = self.recorder
        with recorder.aside() as before:
            branches = tuple([self._forward(n) for n in range(len(self.regions))])
            value = ops.conditional(self.index, tuple(self.operands), branch_computations=branches)
        before.remove(value.instruction)
        with recorder.aside() as after:
            stand_in = ops.get_tuple_element(value, index=0)
        origin = self.back.instruction
        recorder.augmented[origin] = Augmented(before, value.instruction, after, stand_in.instruction, False)
        return [ops.get_tuple_element(value, index=1 + n) for n in range(len(self.slots))]

    def _forward(self, n: int) -> Computation:
        inner = self.recorder.inner(self.regions[n].name, self.back.instruction)
        root, kept = self.halves[n].run_forward(inner, _parameters(inner, [self.operands[n].shape]))
        given = dict(zip(self.places[n], kept, strict=True))
        values = [given[k] if k in given else full(inner, 0, shape) for k, shape in enumerate(self.slots)]
        return inner.built(ops.tuple_((root, *values)))

    def back_conditional(self, kept: Sequence[Value]) -> Sequence[Any]:
        """Record the conditional of the ways back: the cotangents of the operands."""
        leaves = self._leaves()
        if not leaves and not any(halves.has_effect for halves in self.halves):
            return (None,) * (1 + len(self.operands))
        seeds = [ct for ct in trees.leaves_of(filled(self.back.ct, self.regions[0].root.shape)) if ct is not None]
        packed_operands, branches = [], []
        for n, halves in enumerate(self.halves):
            values = [kept[place] for place in self.places[n]]
            values += [leaf_of(self.operands[n], path) for _, path in halves.read]
            operand = ops.tuple_((*values, *seeds), builder=self.recorder)
            packed_operands.append(operand)
            branches.append(self._back(n, operand.shape, leaves))
        result = ops.conditional(self.index, tuple(packed_operands), branch_computations=tuple(branches))
        found = dict(zip(leaves, elements_once(result), strict=True))
        shapes = [operand.shape for operand in self.operands]
        return (None, *trees.of_several(shapes, lambda n, path: found.get((n, path))))

    def _back(self, n: int, shape: Any, leaves: Sequence[Leaf]) -> Computation:
        """The way back of a branch, with zeros for what another branch was given."""
        halves = self.halves[n]
        inner = self.recorder.inner(f"{self.regions[n].name}.vjp", self.back.instruction)
        values = elements_once(ops.parameter(inner, number=0, shape=shape))
        kept, rest = values[: len(halves.kept)], values[len(halves.kept) :]
        read, seeds = rest[: len(halves.read)], rest[len(halves.read) :]
        tree = halves.run_back(inner, kept, parameters_of(halves, read), seeds)[0]
        found: dict[Leaf, Value] = {}
        for path, _ in trees.paths(self.operands[n].shape):
            value, target = trees.at(tree, path), self.target(n, path)
            if value is not None:
                found[target] = value if target not in found else ops.add(found[target], value)
        results = [
            found[leaf] if leaf in found else full(inner, 0, trees_at(self.operands[leaf[0]].shape, leaf[1]).plain())
            for leaf in leaves
        ]
        return inner.built(ops.tuple_(tuple(results), builder=inner))

    def _leaves(self) -> list[Leaf]:
        """Which leaves of which operands have a cotangent; one that several branches are given is one."""
        found: dict[Any, None] = {}
        for n, halves in enumerate(self.halves):
            for path, _ in trees.paths(self.operands[n].shape):
                if trees.at(halves.outputs[0], path) is not None:
                    found[self.target(n, path)] = None
        return list(found)

    def target(self, n: int, path: trees.Path) -> tuple[int, trees.Path]:
        """The first branch and leaf that is the same value as this leaf of the operand of a branch."""
        return self._first.setdefault(self._identity(n, path), (n, path))

    def _identity(self, n: int, path: trees.Path) -> Any:
        instruction, rest = self.operands[n].instruction, list(path)
        while rest and instruction.opcode == "tuple":
            instruction = instruction.operands[rest.pop(0)]
        return instruction, tuple(rest)
