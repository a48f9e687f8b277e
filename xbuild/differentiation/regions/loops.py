"""The derivative of a while: a loop forward that keeps values of each trip, and one that takes cotangents back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape, TupleShape, s32

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.trip_counts import Trips, is_invariant, trips_of
from .. import trees
from ..recorder import Augmented, Recorder
from ..rules import Pullback, activities, full, refuse_derivative
from .copying import Copies
from .expansion import expanded
from .halves import Halves, Leaf, halves_of

UNKNOWN = "how often it runs is not known before the run, and the way back needs the values of each trip"
WAYS_OUT = (
    "max_trips=N keeps the values of at most N trips (a run with more gives NaN as gradient)",
    "a loop whose counter starts at a constant, is compared with a constant and grows by a constant has a derivative",
    "xb.jvp differentiates any loop forward",
)


class Loop:
    """One while on the way back."""

    def __init__(self, back: Pullback) -> None:
        self.back, self.loop, self.context = back, back.instruction, back.context
        assert isinstance(back.builder, Recorder)
        self.recorder = back.builder
        self.body = expanded(self.loop.attributes.body, self.context.calls, self.context.known)
        self.shape = self.loop.shape
        self.is_tuple = isinstance(self.shape, TupleShape)
        self.trips = self._trips()
        self.varies = activities["while"](self.context.activity, self.loop, back.varies[0])
        self.halves, self.live = self._halves()

    def _trips(self) -> Trips | None:
        trips = trips_of(self.loop) if self.is_tuple else None
        if trips is None and self.context.max_trips is None:
            refuse_derivative(UNKNOWN, *WAYS_OUT)
        return trips

    @property
    def most(self) -> int:
        """For how many trips values are kept."""
        return self.trips.count if self.trips is not None else self.context.max_trips

    def is_at_hand(self, leaf: Leaf) -> bool:
        """Whether the way back has a leaf of the state without keeping it: one that never changes, or the counter."""
        return is_invariant(self.body, leaf[1]) or (self.trips is not None and leaf[1] == (self.trips.index,))

    def _halves(self) -> tuple[Halves, Any]:
        """The halves of the body, with the leaves whose cotangent a trip takes and gives."""
        given = filled(self.back.ct, self.shape)
        live = trees.mapped(lambda ct, varies: ct is not None and varies, given, self.varies)
        while True:
            key = "while", self.loop.attributes.body, self.varies, live
            known = self.context.known
            if key not in known:
                known[key] = halves_of(
                    self.context, self.recorder, self.body, (self.varies,), live, self.is_at_hand,
                    self.context.recomputes(self.loop),
                )  # fmt: skip
            found = known[key]
            more = trees.mapped(lambda now, out: now or out is not None, live, found.outputs[0])
            if more == live:
                return found, live
            live = more

    # forward

    def kept_leaves(self) -> list[Leaf]:
        """The leaves of the state that are kept for each trip."""
        return [leaf for leaf in self.halves.read if not self.is_at_hand(leaf)]

    def augment(self) -> tuple[list[Value], Value | None]:
        """Have the forward loop keep values: the stacks of them, and the number of trips where it is not known."""
        leaves, kept = self.kept_leaves(), self.halves.kept
        counts = self.trips is None
        if not leaves and not kept and not counts:
            return [], None
        recorder, before = self.recorder, len(self.shape) if self.is_tuple else 1  # type: ignore[arg-type]
        with recorder.aside() as instructions:
            init = recorder.value(self.loop.operands[0])
            start = elements_once(init) if self.is_tuple else (init,)
            shapes = [trees_at(self.shape, path) for _, path in leaves] + [each.shape for each in kept]
            stacks = [full(recorder, 0, Shape(s.dtype, (self.most, *s.dims))) for s in shapes]
            own = [] if self.has_index else [full(recorder, 0, self.index_type[()])]
            state = ops.tuple_((*start, *own, *stacks))
            body = self._forward_body(state.shape, leaves)
            loop = ops.while_(state, condition=self._condition(recorder, state.shape), body=body)
        instructions.remove(loop.instruction)
        self._put(instructions, loop.instruction, before)
        stacks = [ops.get_tuple_element(loop, index=before + len(own) + n) for n in range(len(stacks))]
        return stacks, ops.get_tuple_element(loop, index=before) if own and counts else None

    @property
    def index_type(self) -> PrimitiveType:
        """The element type in which trips are counted on the way back: the counter's, where that can go below 0."""
        if self.trips is None:
            return s32
        dtype: PrimitiveType = trees_at(self.shape, (self.trips.index,)).dtype
        return dtype if dtype.kind == "signed" else s32

    @property
    def has_index(self) -> bool:
        """Whether the loop's own counter numbers its trips."""
        trips = self.trips
        return trips is not None and (trips.start, trips.step) == (0, 1)

    def _put(self, before: list[Instruction], now: Instruction, count: int) -> None:
        """Let the loop that keeps values stand for the one there was."""
        recorder = self.recorder
        with recorder.aside() as after:
            value = recorder.value(now)
            parts = [ops.get_tuple_element(value, index=n) for n in range(count)]
            stand_in = ops.tuple_(tuple(parts)) if self.is_tuple else parts[0]
        recorder.augmented[self.loop] = Augmented(before, now, after, stand_in.instruction, self.is_tuple)

    def _condition(self, recorder: Recorder, shape: Any) -> Any:
        test = self.loop.attributes.condition
        inner = recorder.inner(test.name, self.loop)
        state = elements_once(ops.parameter(inner, number=0, shape=shape))
        copies = Copies(inner, {test.parameters[0]: self._own(state)})
        copies.take(test.instructions)
        return inner.built(copies.value(test.root))

    def _own(self, state: Sequence[Any]) -> Any:
        """The state of the loop as it was, of the one with more."""
        return tuple(state[: len(self.shape)]) if self.is_tuple else state[0]  # type: ignore[arg-type]

    def _forward_body(self, shape: Any, leaves: list[Leaf]) -> Any:
        inner = self.recorder.inner(self.body.name, self.loop)
        state = elements_once(ops.parameter(inner, number=0, shape=shape))
        own = self._own(state)
        count = len(own) if self.is_tuple else 1
        root, kept = self.halves.run_forward(inner, (own,))
        index = own[self.trips.index] if self.has_index and self.trips is not None else state[count]
        values = [leaf_of(own, path) for _, path in leaves] + kept
        first = count + (not self.has_index)
        stacks = [put_into(stack, value, index) for stack, value in zip(state[first:], values, strict=True)]
        after = elements_once(root) if self.is_tuple else (root,)
        own_index = [] if self.has_index else [index + 1]
        return inner.built(ops.tuple_((*after, *own_index, *stacks)))

    # backward

    def back_loop(self, stacks: list[Value], trips: Value | None) -> Any:
        """Record the loop that takes the cotangents back: the tree of those of the init value."""
        recorder, leaves = self.recorder, self.kept_leaves()
        paths = [path for path, counts in _leaf_paths(self.live) if counts]
        given = [self._seed(path, trips) for path in paths]
        invariants = [leaf for leaf in self.halves.read if leaf not in leaves and not self._is_counter(leaf)]
        init = recorder.value(self.loop.operands[0])
        first = elements_once(init) if self.is_tuple else init
        fixed = [leaf_of(first, path) for _, path in invariants]
        last = full(recorder, self.most - 1, self.index_type[()]) if trips is None else trips - 1
        state = ops.tuple_((last, *given, *stacks, *fixed))
        sizes = len(given), len(stacks)
        body = self._back_body(state.shape, paths, leaves, invariants, sizes)
        loop = ops.while_(state, condition=self._is_left(state.shape), body=body)
        results = iter([ops.get_tuple_element(loop, index=1 + n) for n in range(len(given))])
        return trees.mapped(lambda counts: next(results) if counts else None, self.live)

    def _is_counter(self, leaf: Leaf) -> bool:
        return self.trips is not None and leaf[1] == (self.trips.index,)

    def _seed(self, path: trees.Path, trips: Value | None) -> Value:
        """The cotangent of a leaf of the result, zeros where it has none; NaN where there were too many trips."""
        found = trees.at(self.back.ct, path)
        value = found if found is not None else full(self.recorder, 0, trees_at(self.shape, path).plain())
        if trips is None:
            return value
        is_too_long = ops.compare(trips, full(self.recorder, self.most, self.index_type[()]), direction="GT")
        return ops.select(is_too_long, full(self.recorder, np.nan, value.shape), value)

    def _is_left(self, shape: Any) -> Any:
        inner = self.recorder.inner(f"{self.loop.attributes.condition.name}.vjp", self.loop)
        index = ops.get_tuple_element(ops.parameter(inner, number=0, shape=shape), index=0)
        return inner.built(ops.compare(index, full(inner, 0, self.index_type[()]), direction="GE"))

    def _back_body(
        self, shape: Any, paths: list[trees.Path], leaves: list[Leaf], invariants: list[Leaf], sizes: tuple[int, int]
    ) -> Any:
        inner = self.recorder.inner(f"{self.body.name}.vjp", self.loop)
        index, *rest = elements_once(ops.parameter(inner, number=0, shape=shape))
        seeds, stacks, fixed = rest[: sizes[0]], rest[sizes[0] : sum(sizes)], rest[sum(sizes) :]
        trip = [take_from(stack, index) for stack in stacks]
        known = dict(zip(leaves, trip, strict=False)) | dict(zip(invariants, fixed, strict=True))
        if self.trips is not None:
            known[0, (self.trips.index,)] = self._counter(inner, index)
        state = self._tree(known)
        found = self.halves.run_back(inner, trip[len(leaves) :], (state,), seeds)[0]
        after = [_or_zeros(inner, trees.at(found, path), trees_at(self.shape, path)) for path in paths]
        return inner.built(ops.tuple_((index - 1, *after, *stacks, *fixed)))

    def _counter(self, inner: Recorder, index: Value) -> Value:
        """What the loop's counter was at a trip."""
        assert self.trips is not None
        shape = trees_at(self.shape, (self.trips.index,))
        number = ops.convert(index, new_element_type=shape.dtype)
        return number * full(inner, self.trips.step, shape.plain()) + full(inner, self.trips.start, shape.plain())

    def _tree(self, known: dict[Leaf, Value]) -> Any:
        """The state of a trip, with None at the leaves that nothing reads."""
        return trees.of_paths(self.shape, lambda path: known.get((0, path)))


def while_of(back: Pullback) -> Any:
    """The cotangent of the init value of a while."""
    loop = Loop(back)
    if loop.trips is not None and loop.trips.count == 0:
        return back.ct
    stacks, trips = loop.augment()
    return loop.back_loop(stacks, trips)


def _or_zeros(recorder: Recorder, value: Value | None, shape: Any) -> Value:
    return value if value is not None else full(recorder, 0, shape.plain())


def filled(tree: Any, shape: Any) -> Any:
    """A tree of cotangents down to the leaves, with None where there is none."""
    if isinstance(shape, TupleShape):
        parts = tree if tree is not None else [None] * len(shape)
        return tuple([filled(part, each) for part, each in zip(parts, shape.elements, strict=True)])
    return tree


def _leaf_paths(tree: Any, before: trees.Path = ()) -> Any:
    if isinstance(tree, tuple):
        for n, each in enumerate(tree):
            yield from _leaf_paths(each, (*before, n))
    else:
        yield before, tree


def elements_once(value: Value) -> tuple[Value, ...]:
    """The elements of a tuple."""
    return tuple([ops.get_tuple_element(value, index=n) for n in range(len(value.shape))])  # type: ignore[arg-type]


def leaf_of(tree: Any, path: trees.Path) -> Value:
    """A leaf of a value, or of a tree of values."""
    for n in path:
        tree = ops.get_tuple_element(tree, index=n) if isinstance(tree, Value) else tree[n]
    return tree  # type: ignore[no-any-return]


def trees_at(shape: Any, path: trees.Path) -> Any:
    """The shape of a leaf."""
    for n in path:
        shape = shape.elements[n]
    return shape


def put_into(stack: Value, value: Value, index: Value) -> Value:
    """The stack with a value at an index of its first dimension."""
    row = ops.reshape(value, new_sizes=(1, *value.shape.dims))  # type: ignore[union-attr]
    return ops.dynamic_update_slice(stack, row, _starts(stack, index))


def take_from(stack: Value, index: Value) -> Value:
    """The value at an index of the first dimension of a stack."""
    dims = stack.shape.dims[1:]  # type: ignore[union-attr]
    row = ops.dynamic_slice(stack, _starts(stack, index), dynamic_slice_sizes=(1, *dims))
    return ops.reshape(row, new_sizes=dims)


def _starts(stack: Value, index: Value) -> tuple[Value, ...]:
    zero = full(stack.builder, 0, index.shape)
    return (index, *(zero for _ in stack.shape.dims[1:]))  # type: ignore[union-attr]
