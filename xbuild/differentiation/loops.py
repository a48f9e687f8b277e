"""The derivatives of while and scan: a forward loop keeps values of each trip, a backward loop uses them.

Sections:

    while
    scan
    Elements of tuples and of stacks
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference import PrimitiveType, Shape, TupleShape, s32

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction
from ..properties.trip_counts import Trips, is_invariant, trips_of
from . import trees
from .halves import Halves, Leaf, split_computation
from .recorder import Augmented, Copies, DerivativeRecorder
from .rules import Pullback, activities, full, refuse_derivative

# ----------------------------------------------------------------------------
# while


UNKNOWN = "its trip count is unknown before the run, but the backward pass needs the values of every trip"
WAYS_OUT = (
    "pass max_trips=N to keep the values of at most N trips (the gradient of a run with more trips is NaN)",
    "a loop has a derivative if its counter starts at a constant, grows by a constant and is compared with a constant",
    "xb.jvp differentiates any loop in forward mode",
)


class WhileAdjoint:
    """A while, its forward loop that keeps values, and its backward loop."""

    def __init__(self, back: Pullback) -> None:
        self.back, self.loop, self.context = back, back.instruction, back.context
        self.recorder = back.recorder
        self.body = self.context.inline(self.loop.attributes.body)
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
    def trip_limit(self) -> int:
        """The number of trips for which values are kept."""
        return self.trips.count if self.trips is not None else self.context.max_trips

    def is_at_hand(self, leaf: Leaf) -> bool:
        """Whether a leaf of the state needs no keeping: one that never changes, or the counter."""
        return is_invariant(self.body, leaf[1]) or (self.trips is not None and leaf[1] == (self.trips.index,))

    def _halves(self) -> tuple[Halves, Any]:
        """The halves of the body, and the leaves whose cotangents the backward loop carries."""
        cts = trees.expand(self.back.ct, self.shape)
        live = trees.map_leaves(lambda ct, varies: ct is not None and varies, cts, self.varies)
        while True:
            key = "while", self.loop.attributes.body, self.varies, live
            known = self.context.known
            if key not in known:
                known[key] = split_computation(
                    self.context, self.recorder, self.body, (self.varies,), live, self.is_at_hand,
                    self.context.recomputes(self.loop),
                )  # fmt: skip
            halves = known[key]
            more = trees.map_leaves(lambda now, out: now or out is not None, live, halves.outputs[0])
            if more == live:
                return halves, live
            live = more

    # forward

    def kept_leaves(self) -> list[Leaf]:
        """The leaves of the state that are kept for each trip."""
        return [leaf for leaf in self.halves.read if not self.is_at_hand(leaf)]

    def augment(self) -> tuple[list[Value], Value | None]:
        """Make the forward loop keep values: their stacks, and the trip count if it is only known at run time."""
        leaves, kept = self.kept_leaves(), self.halves.kept
        counts = self.trips is None
        if not leaves and not kept and not counts:
            return [], None
        recorder, before = self.recorder, len(self.shape) if self.is_tuple else 1  # type: ignore[arg-type]
        with recorder.recording_aside() as instructions:
            init = recorder.value(self.loop.operands[0])
            start = tuple_elements(init) if self.is_tuple else (init,)
            shapes = [trees.at(self.shape, path) for _, path in leaves] + [each.shape for each in kept]
            stacks = [full(recorder, 0, Shape(s.dtype, (self.trip_limit, *s.dims))) for s in shapes]
            own = [] if self.has_index else [full(recorder, 0, self.index_type[()])]
            state = ops.tuple_((*start, *own, *stacks))
            body = self._forward_body(state.shape, leaves)
            loop = ops.while_(state, condition=self._condition(recorder, state.shape), body=body)
        instructions.remove(loop.instruction)
        self._replace_loop(instructions, loop.instruction, before)
        stacks = [ops.get_tuple_element(loop, index=before + len(own) + n) for n in range(len(stacks))]
        return stacks, ops.get_tuple_element(loop, index=before) if own and counts else None

    @property
    def index_type(self) -> PrimitiveType:
        """The element type in which the backward loop counts trips: the counter's if that is signed."""
        if self.trips is None:
            return s32
        dtype: PrimitiveType = trees.at(self.shape, (self.trips.index,)).dtype
        return dtype if dtype.kind == "signed" else s32

    @property
    def has_index(self) -> bool:
        """Whether the loop's own counter is the index of the trip."""
        trips = self.trips
        return trips is not None and (trips.start, trips.step) == (0, 1)

    def _replace_loop(self, before: list[Instruction], now: Instruction, count: int) -> None:
        """Replace the loop by the one that keeps values."""
        recorder = self.recorder
        with recorder.recording_aside() as after:
            value = recorder.value(now)
            parts = [ops.get_tuple_element(value, index=n) for n in range(count)]
            stand_in = ops.tuple_(tuple(parts)) if self.is_tuple else parts[0]
        recorder.augmented[self.loop] = Augmented(before, now, after, stand_in.instruction, self.is_tuple)

    def _condition(self, recorder: DerivativeRecorder, shape: Any) -> Any:
        test = self.loop.attributes.condition
        inner = recorder.inner(test.name, self.loop)
        state = tuple_elements(ops.parameter(inner, number=0, shape=shape))
        copies = Copies(inner, {test.parameters[0]: self._own_state(state)})
        copies.copy_all(test.instructions)
        return inner.build_computation(copies.value(test.root))

    def _own_state(self, state: Sequence[Any]) -> Any:
        """The original state, as part of the state with stacks."""
        return tuple(state[: len(self.shape)]) if self.is_tuple else state[0]  # type: ignore[arg-type]

    def _forward_body(self, shape: Any, leaves: list[Leaf]) -> Any:
        inner = self.recorder.inner(self.body.name, self.loop)
        state = tuple_elements(ops.parameter(inner, number=0, shape=shape))
        own = self._own_state(state)
        count = len(own) if self.is_tuple else 1
        root, kept = self.halves.run_forward(inner, (own,))
        index = own[self.trips.index] if self.has_index and self.trips is not None else state[count]
        values = [leaf_at(own, path) for _, path in leaves] + kept
        first = count + (not self.has_index)
        stacks = [store_at(stack, value, index) for stack, value in zip(state[first:], values, strict=True)]
        after = tuple_elements(root) if self.is_tuple else (root,)
        own_index = [] if self.has_index else [index + 1]
        return inner.build_computation(ops.tuple_((*after, *own_index, *stacks)))

    # backward

    def record_backward_loop(self, stacks: list[Value], trips: Value | None) -> Any:
        """Record the backward loop: the tree of the cotangents of the init value."""
        recorder, leaves = self.recorder, self.kept_leaves()
        paths = [path for path, counts in trees.paths(self.live) if counts]
        seeds = [self._seed(path, trips) for path in paths]
        invariants = [leaf for leaf in self.halves.read if leaf not in leaves and not self._is_counter(leaf)]
        init = recorder.value(self.loop.operands[0])
        first = tuple_elements(init) if self.is_tuple else init
        fixed = [leaf_at(first, path) for _, path in invariants]
        last = full(recorder, self.trip_limit - 1, self.index_type[()]) if trips is None else trips - 1
        state = ops.tuple_((last, *seeds, *stacks, *fixed))
        sizes = len(seeds), len(stacks)
        body = self._backward_body(state.shape, paths, leaves, invariants, sizes)
        loop = ops.while_(state, condition=self._trips_remain(state.shape), body=body)
        results = iter([ops.get_tuple_element(loop, index=1 + n) for n in range(len(seeds))])
        return trees.map_leaves(lambda counts: next(results) if counts else None, self.live)

    def _is_counter(self, leaf: Leaf) -> bool:
        return self.trips is not None and leaf[1] == (self.trips.index,)

    def _seed(self, path: trees.Path, trips: Value | None) -> Value:
        """The cotangent of a leaf of the result, or zeros; NaN if there were too many trips."""
        ct = trees.at(self.back.ct, path)
        value = ct if ct is not None else full(self.recorder, 0, trees.at(self.shape, path).plain())
        if trips is None:
            return value
        is_too_long = ops.compare(trips, full(self.recorder, self.trip_limit, self.index_type[()]), direction="GT")
        return ops.select(is_too_long, full(self.recorder, np.nan, value.shape), value)

    def _trips_remain(self, shape: Any) -> Any:
        inner = self.recorder.inner(f"{self.loop.attributes.condition.name}.vjp", self.loop)
        index = ops.get_tuple_element(ops.parameter(inner, number=0, shape=shape), index=0)
        return inner.build_computation(ops.compare(index, full(inner, 0, self.index_type[()]), direction="GE"))

    def _backward_body(
        self, shape: Any, paths: list[trees.Path], leaves: list[Leaf], invariants: list[Leaf], sizes: tuple[int, int]
    ) -> Any:
        inner = self.recorder.inner(f"{self.body.name}.vjp", self.loop)
        index, *rest = tuple_elements(ops.parameter(inner, number=0, shape=shape))
        seeds, stacks, fixed = rest[: sizes[0]], rest[sizes[0] : sum(sizes)], rest[sum(sizes) :]
        trip = [load_at(stack, index) for stack in stacks]
        known = dict(zip(leaves, trip, strict=False)) | dict(zip(invariants, fixed, strict=True))
        if self.trips is not None:
            known[0, (self.trips.index,)] = self._counter_value(inner, index)
        state = self._state_tree(known)
        cotangents = self.halves.run_back(inner, trip[len(leaves) :], (state,), seeds)[0]
        after = [_or_zeros(inner, trees.at(cotangents, path), trees.at(self.shape, path)) for path in paths]
        return inner.build_computation(ops.tuple_((index - 1, *after, *stacks, *fixed)))

    def _counter_value(self, inner: DerivativeRecorder, index: Value) -> Value:
        """The value of the loop's counter at a trip."""
        assert self.trips is not None
        shape = trees.at(self.shape, (self.trips.index,))
        number = ops.convert(index, new_element_type=shape.dtype)
        return number * full(inner, self.trips.step, shape.plain()) + full(inner, self.trips.start, shape.plain())

    def _state_tree(self, known: dict[Leaf, Value]) -> Any:
        """The state of a trip, with None for leaves that nothing reads."""
        return trees.map_paths(lambda path, _: known.get((0, path)), self.shape)


def pull_back_while(back: Pullback) -> Any:
    """The cotangent of the init value of a while."""
    loop = WhileAdjoint(back)
    if loop.trips is not None and loop.trips.count == 0:
        return back.ct
    stacks, trips = loop.augment()
    return loop.record_backward_loop(stacks, trips)


def _or_zeros(recorder: DerivativeRecorder, value: Value | None, shape: Any) -> Value:
    return value if value is not None else full(recorder, 0, shape.plain())


# ----------------------------------------------------------------------------
# scan
#
# A forward scan returns what each step keeps; a scan in the opposite direction uses it.


class ScanAdjoint:
    """A scan, its forward scan that keeps values, and its backward scan; operands are slices, then carries."""

    def __init__(self, back: Pullback, operands: Sequence[Value]) -> None:
        self.back, self.operands, self.recorder, self.context = back, operands, back.recorder, back.context
        self.attributes = back.instruction.attributes
        self.body = self.context.inline(self.attributes.to_apply)
        self.carries, self.axis = self.attributes.num_carries, self.attributes.dimension
        self.inputs = len(operands) - self.carries
        root = self.body.root.shape
        self.shapes = root.elements if isinstance(root, TupleShape) else (root,)
        self.outputs = len(self.shapes) - self.carries
        whole = back.result.shape
        self.is_tuple = isinstance(whole, TupleShape)
        whole_ct = trees.expand(back.ct, whole)
        self.cts = list(whole_ct) if self.is_tuple else [whole_ct]
        self.varies = self._varies()
        self.halves, self.live = self._halves()

    def _varies(self) -> tuple[Any, ...]:
        """Which parameters of a step vary; carries as after all steps."""
        leaves = activities["scan"](self.context.activity, self.back.instruction, *self.back.varies)
        carried = (leaves if self.is_tuple else (leaves,))[self.outputs :]
        return (*self.back.varies[: self.inputs], *carried)

    @property
    def length(self) -> int:
        if self.inputs:
            shape: Any = self.operands[0].shape
            return shape.dims[self.axis]  # type: ignore[no-any-return]
        return self.attributes.length or 0

    def is_at_hand(self, leaf: Leaf) -> bool:
        """Whether a parameter of a step needs no keeping: slices, and carries that never change."""
        number = leaf[0]
        if number < self.inputs:
            return True
        root = self.body.root
        results = root.operands if root.opcode == "tuple" else (root,)
        after = results[self.outputs + number - self.inputs] if len(results) == len(self.shapes) else None
        return after is self.body.parameters[number]

    def _halves(self) -> tuple[Halves, tuple[bool, ...]]:
        live = [ct is not None for ct in self.cts]
        for n in range(self.carries):
            live[self.outputs + n] &= bool(self.varies[self.inputs + n])
        while True:
            tree = tuple(live) if isinstance(self.body.root.shape, TupleShape) else live[0]
            key = "scan", self.attributes.to_apply, self.varies, tree
            known = self.context.known
            if key not in known:
                again = self.context.recomputes(self.back.instruction)
                known[key] = split_computation(
                    self.context, self.recorder, self.body, self.varies, tree, self.is_at_hand, again
                )
            halves: Halves = known[key]
            more = [halves.outputs[self.inputs + n] is not None for n in range(self.carries)]
            now = live[: self.outputs] + [a or b for a, b in zip(live[self.outputs :], more, strict=True)]
            if now == live:
                return halves, tuple(live)
            live = now

    def kept_leaves(self) -> list[Leaf]:
        return [leaf for leaf in self.halves.read if not self.is_at_hand(leaf)]

    def augment(self) -> list[Value]:
        """Make the scan return what each step keeps, as further outputs."""
        leaves, kept = self.kept_leaves(), self.halves.kept
        count = len(leaves) + len(kept)
        if not count:
            return []
        recorder = self.recorder
        with recorder.recording_aside() as before:
            value = ops.scan(tuple(self.operands), **self._attributes(self._forward(leaves)), builder=recorder)
        before.remove(value.instruction)
        first = self.outputs
        with recorder.recording_aside() as after:
            own = [n if n < first else n + count for n in range(len(self.shapes))]
            parts = [ops.get_tuple_element(value, index=n) for n in own]
            stand_in = ops.tuple_(tuple(parts)) if self.is_tuple else parts[0]
        origin = self.back.instruction
        recorder.augmented[origin] = Augmented(before, value.instruction, after, stand_in.instruction, False)
        return [ops.get_tuple_element(value, index=first + n) for n in range(count)]

    def _attributes(self, region: Computation, **others: Any) -> dict[str, Any]:
        attributes = {
            "dimension": self.axis, "num_carries": self.carries, "is_reverse": self.attributes.is_reverse,
            "length": self.attributes.length,
        }  # fmt: skip
        return {**attributes, "to_apply": region, **others}

    def _forward(self, leaves: list[Leaf]) -> Computation:
        inner = self.recorder.inner(self.body.name, self.back.instruction)
        parameters = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(self.body.parameters)]
        root, kept = self.halves.run_forward(inner, parameters)
        results = tuple_elements(root) if isinstance(root.shape, TupleShape) else (root,)
        values = [parameters[number] for number, _ in leaves] + kept
        more = [self._widen(value) for value in values]
        return inner.build_computation(ops.tuple_((*results[: self.outputs], *more, *results[self.outputs :])))

    def _widen(self, value: Value) -> Value:
        """A value with enough dimensions to be a slice."""
        dims = value.shape.dims  # type: ignore[union-attr]
        return ops.reshape(value, new_sizes=(*dims, *(1,) * (self.axis - len(dims))))

    def record_backward_scan(self, stacks: Sequence[Value]) -> Sequence[Any]:
        """Record the scan in the opposite direction: the cotangents of slices and of initial carries."""
        leaves = self.kept_leaves()
        fixed = [leaf for leaf in self.halves.read if leaf not in leaves and leaf[0] >= self.inputs]
        slices = [leaf for leaf in self.halves.read if leaf not in leaves and leaf[0] < self.inputs]
        output_cts = [ct for n, ct in enumerate(self.cts[: self.outputs]) if self.live[n]]
        inputs = [*output_cts, *stacks, *(self.operands[number] for number, _ in slices)]
        seeds = [self._seed(n) for n in range(self.carries) if self.live[self.outputs + n]]
        carries = [*seeds, *(self.operands[number] for number, _ in fixed)]
        region = self._backward_body(inputs, carries, leaves, slices, fixed)
        value = ops.scan(
            (*inputs, *carries),
            **self._attributes(
                region,
                num_carries=len(carries),
                is_reverse=not self.attributes.is_reverse,
                length=None if inputs else self.length,
            ),
            builder=self.recorder,
        )
        whole = isinstance(value.shape, TupleShape)
        results = iter(tuple_elements(value) if whole else (value,))
        cotangents: list[Value | None] = [next(results) if tree is not None else None for tree in self._input_outputs()]
        return [*cotangents, *(next(results) if self.live[self.outputs + n] else None for n in range(self.carries))]

    def _input_outputs(self) -> Sequence[Any]:
        return self.halves.outputs[: self.inputs]

    def _seed(self, n: int) -> Value:
        ct = self.cts[self.outputs + n]
        return ct if ct is not None else full(self.recorder, 0, self.shapes[self.outputs + n].plain())

    def _backward_body(
        self,
        inputs: Sequence[Value],
        carries: Sequence[Value],
        leaves: list[Leaf],
        slices: list[Leaf],
        fixed: list[Leaf],
    ) -> Computation:
        inner = self.recorder.inner(f"{self.body.name}.vjp", self.back.instruction)
        shapes = [self._slice_shape(value.shape) for value in inputs] + [value.shape.plain() for value in carries]
        values = [ops.parameter(inner, number=n, shape=shape) for n, shape in enumerate(shapes)]
        num_seeds = sum(self.live[: self.outputs])
        count = len(leaves) + len(self.halves.kept)
        stacks, rest = values[num_seeds : num_seeds + count], values[num_seeds + count : len(inputs)]
        carried = values[len(inputs) :]
        live = sum(self.live[self.outputs :])
        wanted = [self.body.parameters[number].shape for number, _ in leaves] + [k.shape for k in self.halves.kept]
        trip = [ops.reshape(s, new_sizes=w.dims) for s, w in zip(stacks, wanted, strict=True)]
        known = dict(zip(leaves, trip, strict=False)) | dict(zip(slices, rest, strict=True))
        known |= dict(zip(fixed, carried[live:], strict=True))
        parameters = [known.get((n, ())) for n in range(len(self.body.parameters))]
        kept = trip[len(leaves) :]
        cotangents = self.halves.run_back(inner, kept, parameters, [*values[:num_seeds], *carried[:live]])
        outputs = [value for value in cotangents[: self.inputs] if value is not None]
        after = [
            cotangents[self.inputs + n]
            if cotangents[self.inputs + n] is not None
            else full(inner, 0, self.shapes[self.outputs + n])
            for n in range(self.carries)
            if self.live[self.outputs + n]
        ]
        return inner.build_computation(ops.tuple_((*outputs, *after, *carried[live:])))

    def _slice_shape(self, shape: Any) -> Shape:
        """The shape of one slice."""
        return Shape(shape.dtype, (*shape.dims[: self.axis], *shape.dims[self.axis + 1 :]))


def pull_back_scan(back: Pullback, operands: Sequence[Value]) -> Sequence[Any]:
    """The cotangents of the operands of a scan."""
    scan = ScanAdjoint(back, operands)
    return scan.record_backward_scan(scan.augment())


# ----------------------------------------------------------------------------
# Elements of tuples and of stacks


def tuple_elements(value: Value) -> tuple[Value, ...]:
    """The elements of a tuple."""
    return tuple([ops.get_tuple_element(value, index=n) for n in range(len(value.shape))])  # type: ignore[arg-type]


def leaf_at(tree: Any, path: trees.Path) -> Value:
    """A leaf of a value or of a tree of values."""
    for n in path:
        tree = ops.get_tuple_element(tree, index=n) if isinstance(tree, Value) else tree[n]
    return tree  # type: ignore[no-any-return]


def store_at(stack: Value, value: Value, index: Value) -> Value:
    """The stack with a value stored at an index of its first dimension."""
    row = ops.reshape(value, new_sizes=(1, *value.shape.dims))  # type: ignore[union-attr]
    return ops.dynamic_update_slice(stack, row, _starts(stack, index))


def load_at(stack: Value, index: Value) -> Value:
    """The value at an index of the first dimension of a stack."""
    dims = stack.shape.dims[1:]  # type: ignore[union-attr]
    row = ops.dynamic_slice(stack, _starts(stack, index), dynamic_slice_sizes=(1, *dims))
    return ops.reshape(row, new_sizes=dims)


def _starts(stack: Value, index: Value) -> tuple[Value, ...]:
    zero = full(stack.builder, 0, index.shape)
    return (index, *(zero for _ in stack.shape.dims[1:]))  # type: ignore[union-attr]
