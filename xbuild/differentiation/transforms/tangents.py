"""The derivative in forward mode: jvp of computations, functions and modules."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ... import ops
from ...core.builder import Value
from ...core.context import apart
from ...core.graph import Computation
from ...variance import Program
from ...variance.derivatives import specs_of_jvp
from .. import trees
from ..context import Context
from ..forward import regions as regions
from ..forward import transfers as transfers
from ..forward.pushing import dense, pushed
from .derivatives import finished, recorder_of
from .programs import applied


@frozen
class Tangents:
    """The tangents of the result, from tangents of the parameters that come as parameters."""

    def wanted(self, computation: Computation) -> tuple[Any, ...]:
        """The trees of the parameters' leaves that have a tangent."""
        return tuple([trees.differentiable(p.shape) for p in computation.parameters])

    def specs(self, program: Program) -> Any:
        """For a program on a mesh the specs of the parameters and of the result."""
        return specs_of_jvp(program)

    def answer(self, computation: Computation, context: Context) -> Computation:
        """The computation that gives them."""
        recorder = recorder_of(computation, "jvp", adopts=False)
        recorder.mode = "jvp"
        parameters = [recorder.append(p) for p in computation.parameters]
        count = len(parameters)
        made: list[Value] = []

        def tangent(shape: Any) -> Value | None:
            if not trees.is_differentiable(shape):
                return None
            number, name = count + len(made), recorder.fresh("tangent")
            made.append(ops.parameter(recorder, number=number, shape=shape.plain(), name=name))
            return made[-1]

        tangents = [trees.of_shape(p.shape, tangent) for p in computation.parameters]
        with apart():
            _, found = pushed(context, recorder, computation, parameters, tangents)
        shape = computation.root.shape
        results = dense(recorder, trees.differentiable(shape), found, shape)
        return finished(recorder, ops.tuple_(results, builder=recorder), keeps_collectives=context.is_group)


def jvp(program: Any) -> Any:
    """The program that takes tangents along: of all parameters to all results.

    Of a Computation a Computation: its parameters are those of the computation, then one tangent for each float or
    complex leaf of them, in order; its result is the tuple of the tangents of all float and complex leaves of the
    result, and nothing else. Of modules, groups and functions as xb.vjp. Loops whose number of trips is not known
    have a derivative in this direction, too.
    Raises ShapeError (not_differentiable) where a tangent meets an op that has no derivative; TypeError and
    ScheduleError as xb.vjp.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[()], xb.f32[()])
    ... def product(x, y):
    ...     return x * xb.sin(y)
    >>> evaluate(xb.jvp(product), 2.0, 0.0, 1.0, 1.0)
    (np.float32(2.0),)

    Source: JAX, jax.jvp.
    """
    return applied(Tangents(), program, {})
