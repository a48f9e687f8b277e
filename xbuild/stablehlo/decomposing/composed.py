"""Operations as calls of computations that are composed of ops, traced once for the shapes of their operands."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

from shape_inference import XbuildError

from ...core.builder import Builder
from ...core.graph import Computation, Instruction
from ...ops.leaves import parameter
from ...text.spelling.faults import Fault
from ..reading.operation import Reading
from ..reading.reader import Reader

_TRACED: WeakKeyDictionary[Reader, dict[Hashable, Computation]] = WeakKeyDictionary()
"""For each module under reading, the computations by name, shapes of the operands, and what else they depend on."""


def composed(
    op: Reading, name: str, function: Callable[..., Any], *operands: Instruction, key: Hashable = None
) -> Instruction:
    """The operation as a call of what a function records on the operands; `key` tells functions of one name apart."""
    reader = op.scope.reader
    known = _TRACED.setdefault(reader, {})
    wanted = (name, key, tuple([each.shape for each in operands]))
    if wanted not in known:
        try:
            known[wanted] = _traced(reader, name, function, operands)
        except XbuildError as error:
            raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    return op.result("call", operands, to_apply=known[wanted])


def _traced(reader: Reader, name: str, function: Callable[..., Any], operands: tuple[Instruction, ...]) -> Computation:
    builder = Builder(reader.computation_names.fresh(name))
    builder.reserve(computations=[each.name for each in reader.order])
    values = [parameter(builder=builder, number=n, shape=each.shape) for n, each in enumerate(operands)]
    made = builder.build(function(*values))
    for computation in made.reachable():
        if computation not in reader.order:
            reader.add(computation)
    return made
