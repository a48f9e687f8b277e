"""An op with operands and attributes that were drawn, and modules that compute many such instances at once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

import xbuild as xb
from interpreter import evaluate, execute
from interpreter.rules.denormals import Denormals
from shape_inference import PrimitiveType, TupleShape
from tests.support.compare import shape_of
from xbuild.core.builder import Values
from xbuild.core.op import OPS

from . import Job

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class Instance:
    """One call of an op: its operands are arrays, and tuples of arrays where the op takes a list or a tuple.

    `dtype` is the column that it counts for. `is_exact`: no order of adding, and no other way to compute it, gives
    another result, so that the op's tolerance does not apply. `finish` makes of the op's value what is compared;
    `record` stands for the plain call. On several devices each array has a first dimension over the devices.
    """

    opcode: str
    dtype: PrimitiveType
    operands: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = {}
    is_exact: bool = False
    finish: Callable[[xb.Value], Any] | None = None
    record: Callable[..., Any] | None = None
    num_replicas: int = 1
    num_partitions: int = 1

    @property
    def whole(self) -> str:
        """The op of which this is one half, or itself."""
        return "all_to_all" if self.opcode.startswith("async_") else re.sub("_(start|done)$", "", self.opcode)

    @property
    def devices(self) -> int:
        return self.num_replicas * self.num_partitions

    def value(self, builder: xb.Builder, operands: Sequence[Any]) -> Any:
        """The instance recorded on values in the place of its arrays."""
        if self.record:
            return self.record(builder, *operands)
        schema = OPS[self.opcode]
        given = [
            xb.tuple_(list(each), builder=builder) if isinstance(each, tuple) and kind is not Values else each
            for each, kind in zip(operands, schema.kinds, strict=True)
        ]
        if schema.takes_builder:
            value = recorder(self.opcode)(builder, *given, **self.attributes)
        else:
            value = recorder(self.opcode)(*given, builder=builder, **self.attributes)
        return self.finish(value) if self.finish else value

    def __str__(self) -> str:
        return f"{self.opcode} {self.dtype} {dict(self.attributes)}\n  {self.operands!r}"


def recorder(opcode: str) -> Callable[..., xb.Value]:
    """The function of `xbuild.ops` that records the op."""
    return getattr(xb.ops, opcode, None) or getattr(xb.ops, f"{opcode}_")


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a tree of tuples and lists."""
    if isinstance(tree, tuple | list):
        for each in tree:
            yield from leaves(each)
    else:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree of tuples with the function applied to each leaf."""
    return tuple(mapped(function, each) for each in tree) if isinstance(tree, tuple) else function(tree)


def flat(value: Any) -> list[xb.Value]:
    """The values of arrays in a value, or a list of values, of whatever shape."""
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in flat(each)]
    if isinstance(value.shape, TupleShape):
        return [leaf for element in value for leaf in flat(element)]
    return [value]


@frozen(eq=False)
class Batch:
    """A module that computes several instances, its text, its arguments by device, and how many leaves each gives."""

    module: xb.Module
    text: str
    arguments: list[list[Array]]
    sizes: list[int]

    @property
    def job(self) -> Job:
        return Job(self.text, self.arguments, self.module.num_replicas, self.module.num_partitions)

    def fed(self, instances: Sequence[Instance]) -> Batch:
        """The same module with the arguments of others of the same shapes and attributes."""
        return evolve(self, arguments=_arguments(instances))

    def ours(self, denormals: Denormals = "flush") -> list[list[Array]]:
        """What the interpreter gives, for each device the leaves."""
        if len(self.arguments) == 1:
            return [list(map(np.asarray, leaves(evaluate(self.module.entry, *self.arguments[0], denormals=denormals))))]
        return [list(map(np.asarray, leaves(row))) for row in execute(self.module, self.arguments, denormals=denormals)]

    def shared_out(self, results: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """For each instance its own leaves, those of the first device first."""
        parts = itertools.pairwise(itertools.accumulate(self.sizes, initial=0))
        return [[leaf for row in results for leaf in row[start:end]] for start, end in parts]


def batch(instances: Sequence[Instance]) -> Batch:
    """One module for instances on equally many devices."""
    first, builder = instances[0], xb.Builder("instances")
    arguments = _arguments(instances)
    parameters = iter([xb.parameter(builder, number=n, shape=shape_of(a)) for n, a in enumerate(arguments[0])])
    results = [flat(i.value(builder, mapped(lambda _: next(parameters), i.operands))) for i in instances]
    root = xb.tuple_([leaf for each in results for leaf in each], builder=builder)
    module = xb.Module(
        "instances", builder.build(root), num_replicas=first.num_replicas, num_partitions=first.num_partitions
    )
    return Batch(module, module.to_hlo(), arguments, list(map(len, results)))


def _arguments(instances: Sequence[Instance]) -> list[list[Array]]:
    arrays = [array for instance in instances for array in leaves(instance.operands)]
    devices = instances[0].devices
    return [[np.asarray(a if devices == 1 else a[device]) for a in arrays] for device in range(devices)]
