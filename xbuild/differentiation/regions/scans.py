"""The derivative of the op scan: a scan that gives what each step keeps, and one against its direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shape_inference import Shape, TupleShape

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from ..recorder import Augmented, Recorder
from ..rules import Pullback, activities, full
from .expansion import expanded
from .halves import Halves, Leaf, halves_of
from .loops import elements_once, filled


class Scan:
    """One scan on the way back; operands are slices, then carries."""

    def __init__(self, back: Pullback, operands: Sequence[Value]) -> None:
        assert isinstance(back.builder, Recorder)
        self.back, self.operands, self.recorder, self.context = back, operands, back.builder, back.context
        self.attributes = back.instruction.attributes
        self.body = expanded(self.attributes.to_apply, self.context.calls, self.context.known)
        self.carries, self.axis = self.attributes.num_carries, self.attributes.dimension
        self.inputs = len(operands) - self.carries
        root = self.body.root.shape
        self.shapes = root.elements if isinstance(root, TupleShape) else (root,)
        self.outputs = len(self.shapes) - self.carries
        whole = back.result.shape
        self.is_tuple = isinstance(whole, TupleShape)
        whole_ct = filled(back.ct, whole)
        self.cts = list(whole_ct) if self.is_tuple else [whole_ct]
        self.varies = self._varies()
        self.halves, self.live = self._halves()

    def _varies(self) -> tuple[Any, ...]:
        """Which parameters of a step vary: those of carries as they do after all steps."""
        found = activities["scan"](self.context.activity, self.back.instruction, *self.back.varies)
        carried = (found if self.is_tuple else (found,))[self.outputs :]
        return (*self.back.varies[: self.inputs], *carried)

    @property
    def length(self) -> int:
        if self.inputs:
            shape: Any = self.operands[0].shape
            return shape.dims[self.axis]  # type: ignore[no-any-return]
        return self.attributes.length or 0

    def is_at_hand(self, leaf: Leaf) -> bool:
        """Whether the way back has a parameter of a step without keeping it: slices, and carries that never change."""
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
                known[key] = halves_of(
                    self.context, self.recorder, self.body, self.varies, tree, self.is_at_hand, again
                )
            found: Halves = known[key]
            more = [found.outputs[self.inputs + n] is not None for n in range(self.carries)]
            now = live[: self.outputs] + [a or b for a, b in zip(live[self.outputs :], more, strict=True)]
            if now == live:
                return found, tuple(live)
            live = now

    def kept_leaves(self) -> list[Leaf]:
        return [leaf for leaf in self.halves.read if not self.is_at_hand(leaf)]

    def augment(self) -> list[Value]:
        """Have the scan give what each step keeps, as more outputs."""
        leaves, kept = self.kept_leaves(), self.halves.kept
        count = len(leaves) + len(kept)
        if not count:
            return []
        recorder = self.recorder
        with recorder.aside() as before:
            value = ops.scan(tuple(self.operands), **self._attributes(self._forward(leaves)), builder=recorder)
        before.remove(value.instruction)
        first = self.outputs
        with recorder.aside() as after:
            own = [n if n < first else n + count for n in range(len(self.shapes))]
            parts = [ops.get_tuple_element(value, index=n) for n in own]
            stand_in = ops.tuple_(tuple(parts)) if self.is_tuple else parts[0]
        origin = self.back.instruction
        recorder.augmented[origin] = Augmented(before, value.instruction, after, stand_in.instruction, False)
        return [ops.get_tuple_element(value, index=first + n) for n in range(count)]

    def _attributes(self, region: Computation, **others: Any) -> dict[str, Any]:
        given = {
            "dimension": self.axis, "num_carries": self.carries, "is_reverse": self.attributes.is_reverse,
            "length": self.attributes.length,
        }  # fmt: skip
        return {**given, "to_apply": region, **others}

    def _forward(self, leaves: list[Leaf]) -> Computation:
        inner = self.recorder.inner(self.body.name, self.back.instruction)
        parameters = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(self.body.parameters)]
        root, kept = self.halves.run_forward(inner, parameters)
        results = elements_once(root) if isinstance(root.shape, TupleShape) else (root,)
        values = [parameters[number] for number, _ in leaves] + kept
        more = [self._wide(value) for value in values]
        return inner.built(ops.tuple_((*results[: self.outputs], *more, *results[self.outputs :])))

    def _wide(self, value: Value) -> Value:
        """A value with as many dimensions as a slice needs."""
        dims = value.shape.dims  # type: ignore[union-attr]
        return ops.reshape(value, new_sizes=(*dims, *(1,) * (self.axis - len(dims))))

    def back_scan(self, stacks: Sequence[Value]) -> Sequence[Any]:
        """Record the scan against the direction: the cotangents of slices and of first carries."""
        leaves = self.kept_leaves()
        fixed = [leaf for leaf in self.halves.read if leaf not in leaves and leaf[0] >= self.inputs]
        slices = [leaf for leaf in self.halves.read if leaf not in leaves and leaf[0] < self.inputs]
        given = [ct for n, ct in enumerate(self.cts[: self.outputs]) if self.live[n]]
        inputs = [*given, *stacks, *(self.operands[number] for number, _ in slices)]
        seeds = [self._seed(n) for n in range(self.carries) if self.live[self.outputs + n]]
        carries = [*seeds, *(self.operands[number] for number, _ in fixed)]
        region = self._back_body(inputs, carries, leaves, slices, fixed)
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
        results = iter(elements_once(value) if whole else (value,))
        found: list[Value | None] = [next(results) if tree is not None else None for tree in self._input_outputs()]
        return [*found, *(next(results) if self.live[self.outputs + n] else None for n in range(self.carries))]

    def _input_outputs(self) -> Sequence[Any]:
        return self.halves.outputs[: self.inputs]

    def _seed(self, n: int) -> Value:
        found = self.cts[self.outputs + n]
        return found if found is not None else full(self.recorder, 0, self.shapes[self.outputs + n].plain())

    def _back_body(
        self,
        inputs: Sequence[Value],
        carries: Sequence[Value],
        leaves: list[Leaf],
        slices: list[Leaf],
        fixed: list[Leaf],
    ) -> Computation:
        inner = self.recorder.inner(f"{self.body.name}.vjp", self.back.instruction)
        shapes = [self._sliced(each.shape) for each in inputs] + [each.shape.plain() for each in carries]
        values = [ops.parameter(inner, number=n, shape=shape) for n, shape in enumerate(shapes)]
        given = sum(self.live[: self.outputs])
        count = len(leaves) + len(self.halves.kept)
        stacks, rest = values[given : given + count], values[given + count : len(inputs)]
        carried = values[len(inputs) :]
        live = sum(self.live[self.outputs :])
        wanted = [self.body.parameters[number].shape for number, _ in leaves] + [k.shape for k in self.halves.kept]
        trip = [ops.reshape(s, new_sizes=w.dims) for s, w in zip(stacks, wanted, strict=True)]  # type: ignore[union-attr]
        known = dict(zip(leaves, trip, strict=False)) | dict(zip(slices, rest, strict=True))
        known |= dict(zip(fixed, carried[live:], strict=True))
        parameters = [known.get((n, ())) for n in range(len(self.body.parameters))]
        kept = trip[len(leaves) :]
        found = self.halves.run_back(inner, kept, parameters, [*values[:given], *carried[:live]])
        outputs = [each for each in found[: self.inputs] if each is not None]
        after = [
            found[self.inputs + n]
            if found[self.inputs + n] is not None
            else full(inner, 0, self.shapes[self.outputs + n])
            for n in range(self.carries)
            if self.live[self.outputs + n]
        ]
        return inner.built(ops.tuple_((*outputs, *after, *carried[live:])))

    def _sliced(self, shape: Any) -> Shape:
        """The shape of one slice."""
        return Shape(shape.dtype, (*shape.dims[: self.axis], *shape.dims[self.axis + 1 :]))


def scan_of(back: Pullback, operands: Sequence[Value]) -> Sequence[Any]:
    """The cotangents of the operands of a scan."""
    scan = Scan(back, operands)
    return scan.back_scan(scan.augment())
