"""Record instructions of one computation, and what is known of their values on each device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import define, field

from .program import Computation, Instruction, Reducer
from .values import Endless, value

SLOTS = 4  # how many numbers of data a program has room for


@define(eq=False)
class Module:
    """What the computations of one module share: names, the devices that run it, the grid."""

    devices: tuple[int, ...]
    replicas: int
    partitions: int
    rng: random.Random
    numbers: Any = field(factory=itertools.count)

    def name(self, stem: str) -> str:
        return f"{stem}.{next(self.numbers)}"


@define(eq=False)
class Builder:
    """Records one computation; `pool` are the scalars that decisions may be made of."""

    module: Module
    computation: Computation
    pool: list[Instruction] = field(factory=list)
    after: tuple[Instruction, ...] = ()

    @property
    def rng(self) -> random.Random:
        return self.module.rng

    def inner(self, stem: str) -> Builder:
        return Builder(self.module, Computation(self.module.name(stem)))

    def emit(
        self,
        opcode: str,
        shape: str,
        operands: Sequence[Instruction] = (),
        attributes: str = "",
        *,
        given: Any = None,
        inner: Sequence[Computation] = (),
        name: str | None = None,
    ) -> Instruction:
        made = Instruction(
            name or self.module.name(opcode), opcode, shape, tuple(operands), attributes, given, tuple(inner)
        )
        if not made.effects:
            self._know(made)
        else:
            made.control, self.after = self.after, ()
        return self.computation.add(made)

    def _know(self, made: Instruction) -> None:
        if made.opcode == "parameter":
            return
        if all(each.values is not None for each in made.operands):
            try:
                made.values = {device: self._value(made, device) for device in self.module.devices}
            except Endless:
                made.values = None
        if made.values is not None:
            made.uniform = len(set(map(repr, made.values.values()))) == 1
        else:
            made.uniform = all(each.uniform for each in made.operands) and not any(map(_by_device, made.inner))

    def _value(self, made: Instruction, device: int) -> Any:
        operands = [each.values[device] for each in made.operands if each.values is not None]
        return value(made, operands, divmod(device, self.module.partitions))

    def constant(self, number: Any, of: str = "s32") -> Instruction:
        dims = f"[{len(number)}]" if isinstance(number, tuple) else "[]"
        return self.emit("constant", of + dims, given=number)

    def parameter(self, number: int, like: Instruction | str) -> Instruction:
        shape = like if isinstance(like, str) else like.shape
        made = self.emit("parameter", shape, given=number)
        if isinstance(like, Instruction):
            made.values, made.uniform = like.values, like.uniform
        return made

    def unary(self, opcode: str, a: Instruction) -> Instruction:
        return self.emit(opcode, a.shape, [a])

    def binary(self, opcode: str, a: Instruction, b: Instruction) -> Instruction:
        return self.emit(opcode, a.shape, [a, b])

    def compare(self, direction: str, a: Instruction, b: Instruction) -> Instruction:
        shape = "pred" + a.shape[a.shape.index("[") :]
        return self.emit("compare", shape, [a, b], f", direction={direction}", given=direction)

    def convert(self, a: Instruction, to: str) -> Instruction:
        return a if a.type == to else self.emit("convert", to + a.shape[a.shape.index("[") :], [a])

    def element(self, whole: Instruction, index: int, shape: str) -> Instruction:
        return self.emit("get-tuple-element", shape, [whole], f", index={index}", given=index)

    def tuple(self, parts: Sequence[Instruction]) -> Instruction:
        return self.emit("tuple", f"({', '.join(each.shape for each in parts)})", parts)

    def reshape(self, a: Instruction, dims: str) -> Instruction:
        return self.emit("reshape", a.type + dims, [a])

    def slice(self, a: Instruction, start: int, stop: int) -> Instruction:
        attributes = f", slice={{[{start}:{stop}]}}"
        return self.emit("slice", f"{a.type}[{stop - start}]", [a], attributes, given=(start, stop))

    def concatenate(self, parts: Sequence[Instruction]) -> Instruction:
        size = sum(size_of(each) for each in parts)
        return self.emit("concatenate", f"{parts[0].type}[{size}]", parts, ", dimensions={0}")

    def broadcast(self, a: Instruction, size: int) -> Instruction:
        return self.emit("broadcast", f"{a.type}[{size}]", [a], ", dimensions={}", given=size)

    def reduce(self, a: Instruction, opcode: str, start: Any) -> Instruction:
        reducer = Reducer(f"{opcode}.{a.type}")
        first = self.constant(start, a.type)
        return self.emit("reduce", f"{a.type}[]", [a, first], f", dimensions={{0}}, to_apply={reducer}", given=reducer)

    def build(self, root: Instruction) -> Computation:
        self.computation.root = root
        return self.computation

    def traced(self, opcode: str, operands: Sequence[Instruction], body: Callable[..., Instruction]) -> Instruction:
        """A call or a fusion of what `body` makes of its parameters; a fusion uses all of them, and only computes."""
        inside = self.inner("fused" if opcode == "fusion" else "called")
        parameters = [inside.parameter(n, each) for n, each in enumerate(operands)]
        root = body(inside, *parameters)
        used = {each for i in inside.computation.instructions for each in i.operands}
        if any(each.inner for each in inside.computation.instructions) or not used.issuperset(parameters):
            opcode = "call"
        attribute = ", kind=kLoop, calls=" if opcode == "fusion" else ", to_apply="
        computation = inside.build(root)
        return self.emit(opcode, root.shape, operands, attribute + computation.name, inner=[computation])


def size_of(a: Instruction) -> int:
    """The size of a vector."""
    return int(a.shape[a.shape.index("[") + 1 : -1])


def _by_device(computation: Computation) -> bool:
    return any(
        each.opcode in ("replica-id", "partition-id") or any(map(_by_device, each.inner))
        for each in computation.instructions
    )


def tabled(builder: Builder, numbers: Iterable[Any], index: Instruction, of: str = "s32") -> Instruction:
    """A look-up in a table that stands in the program, by one of several ops."""
    table = builder.constant(tuple(numbers), of)
    if builder.rng.random() < 0.5:
        at = builder.emit("dynamic-slice", f"{of}[1]", [table, index], ", dynamic_slice_sizes={1}", given=1)
    else:
        attributes = (
            ", offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
        )
        at = builder.emit("gather", f"{of}[1]", [table, builder.reshape(index, "[1]")], attributes)
    return builder.reshape(at, "[]")
