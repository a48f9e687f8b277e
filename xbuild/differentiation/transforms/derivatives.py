"""From a computation to the computation of its cotangents: the walk, and what is left of it without dead code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shape_inference import Shape
from shape_inference.rules import ShapeError

from ... import ops
from ...core.builder import Value
from ...core.context import apart
from ...core.graph import Computation, Instruction
from ...core.identifiers import nearest
from ...properties.effects import COLLECTIVES, START_OF, STARTS, collective_in, has_effect, start_of
from ...properties.order import ordered
from ...properties.patterns import reducer_of
from .. import trees
from ..context import Context
from ..pruning import lean
from ..recorder import Recorder
from ..rules import full
from ..walk import Walk


def recorder_of(computation: Computation, suffix: str, adopts: bool = True) -> Recorder:
    """A recorder that holds the instructions of a computation, and gives nothing a name that these have."""
    recorder = Recorder(nearest(f"{computation.name}_{suffix}"))
    for called in computation.reachable():
        recorder.reserve_names_of(called)
        share_reducer(recorder, called)
    if adopts:
        recorder.adopt(ordered(computation))
    return recorder


def share_reducer(recorder: Recorder, called: Computation) -> None:
    """Use a sum that the program has for the sums of its derivative."""
    if reducer_of(called) == "add" and all(isinstance(p.shape, Shape) for p in called.parameters):
        shapes = tuple([p.shape.plain() for p in called.parameters])
        if shapes == (called.root.shape.plain(),) * 2:
            recorder.traced.setdefault((ops.add, shapes), called)


def seeds(recorder: Recorder, computation: Computation) -> Any:
    """A parameter for the cotangent of each float or complex leaf of the result."""
    count = len(computation.parameters)
    found: list[Value] = []
    for _, shape in trees.paths(computation.root.shape):
        if trees.is_differentiable(shape):
            name = recorder.fresh("ct")
            found.append(ops.parameter(recorder, number=count + len(found), shape=shape.plain(), name=name))
    given = iter(found)
    return trees.of_shape(computation.root.shape, lambda leaf: next(given) if trees.is_differentiable(leaf) else None)


def pulled_back(
    recorder: Recorder, computation: Computation, wanted: tuple[Any, ...], seed: Any, context: Context
) -> Any:
    """The trees of the cotangents of the parameters, of which the leaves that are True in `wanted` are asked for."""
    active = context.activity.of(computation, wanted)
    with apart():
        return Walk(context, recorder, active).back(computation, seed)


def leaves_of(recorder: Recorder, parameter: Instruction, cotangent: Any) -> Iterator[Value]:
    """The cotangents of the float and complex leaves of a parameter, zeros where there is none."""
    for path, shape in trees.paths(parameter.shape):
        if trees.is_differentiable(shape):
            found = trees.at(cotangent, path)
            yield found if found is not None else full(recorder, 0, shape.plain())


def finished(recorder: Recorder, root: Value, *, keeps_collectives: bool = False) -> Computation:
    """The computation of what was recorded, without what neither the root nor an effect needs."""
    instructions = recorder.assembled()
    last = recorder.now(root.instruction)
    return lean(recorder.name, instructions, last, None if keeps_collectives else is_collective)


def is_collective(instruction: Instruction) -> bool:
    """Whether it is a collective, or a half of one, or a call of nothing else."""
    opcode = instruction.opcode
    if opcode in COLLECTIVES or opcode in STARTS:
        return True
    if opcode in START_OF:
        start = start_of(instruction)
        return start is not None and collective_in(start) is not None
    if opcode == "async_start" and collective_in(instruction) is not None:
        return True
    return bool(instruction.called) and all(
        is_collective(each) for called in instruction.called for each in called.instructions if has_effect(each)
    )


def scalar_seed(recorder: Recorder, computation: Computation) -> Value:
    """The cotangent 1 of a result of which a gradient can be asked: one real number."""
    shape = computation.root.shape
    if not (isinstance(shape, Shape) and shape.rank == 0 and shape.dtype.kind == "float"):
        raise ShapeError(
            "not_differentiable",
            f"grad: the result of {computation.name} is {shape}, and one real number is wanted, such as f32[] "
            "[not_differentiable]\n  hint: xb.vjp takes a cotangent for a result of any shape",
        )
    return ops.constant(recorder, literal=np.ones((), shape.dtype.dtype), name=recorder.fresh("ct"))
