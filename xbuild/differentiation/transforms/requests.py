"""What may be asked of a computation: all its cotangents, or the gradient of its one result; and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.rules import ShapeError

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...variance import Program
from ...variance.derivatives import specs_of_grad, specs_of_vjp
from .. import trees
from ..context import Context
from ..recorder import Recorder
from .derivatives import finished, leaves_of, pulled_back, recorder_of, scalar_seed, seeds

Argnums = int | Sequence[int]


@frozen
class Cotangents:
    """The cotangents of all parameters, from cotangents of the result that come as parameters."""

    def wanted(self, computation: Computation) -> tuple[Any, ...]:
        """The trees of the parameters' leaves that are asked for."""
        return tuple([trees.differentiable(p.shape) for p in computation.parameters])

    def answer(self, computation: Computation, context: Context) -> Computation:
        """The computation that gives them."""
        recorder = recorder_of(computation, "vjp")
        seed = seeds(recorder, computation)
        cotangents = pulled_back(recorder, computation, self.wanted(computation), seed, context)
        found = [
            leaf
            for parameter, cotangent in zip(computation.parameters, cotangents, strict=True)
            for leaf in leaves_of(recorder, parameter, cotangent)
        ]
        return finished(recorder, ops.tuple_(found, builder=recorder), keeps_collectives=context.is_group)

    def specs(self, program: Program) -> Any:
        """For a program on a mesh the specs of the parameters and of the result."""
        return specs_of_vjp(program)


@frozen
class Gradient:
    """The gradient of a result that is one real number, for some parameters, beside the value where that is asked for.

    In a group (`is_group`) a program whose result is no such number adds nothing to the loss, and one that lacks a
    parameter gives an empty tuple.
    """

    argnums: Argnums
    with_value: bool
    is_group: bool = False

    def wanted(self, computation: Computation) -> tuple[Any, ...]:
        """The trees of the parameters' leaves that are asked for."""
        numbers = self._numbers(computation)
        return tuple(
            [
                trees.differentiable(p.shape) if n in numbers else trees.constant(p.shape, False)
                for n, p in enumerate(computation.parameters)
            ]
        )

    def answer(self, computation: Computation, context: Context) -> Computation:
        """The computation that gives it."""
        recorder = recorder_of(computation, "value_and_grad" if self.with_value else "grad")
        seed = None if self._is_no_loss(computation) else scalar_seed(recorder, computation)
        numbers = self._numbers(computation)
        cotangents = pulled_back(recorder, computation, self.wanted(computation), seed, context)
        found = [_as_parameter(recorder, computation.parameters[n], cotangents[n]) for n in numbers]
        is_bare = isinstance(self.argnums, int) and bool(found)
        result = found[0] if is_bare else ops.tuple_(found, builder=recorder)
        if self.with_value:
            result = ops.tuple_((recorder.value(computation.root), result))
        return finished(recorder, result, keeps_collectives=context.is_group)

    def specs(self, program: Program) -> Any:
        """For a program on a mesh the specs of the parameters and of the result."""
        self._numbers(program.typed.entry)
        return specs_of_grad(program, self.argnums, self.with_value)

    def _is_no_loss(self, computation: Computation) -> bool:
        return self.is_group and not is_real_number(computation.root.shape)

    def _numbers(self, computation: Computation) -> list[int]:
        """The parameters that argnums names, refused where one is none or has no derivative."""
        count, argnums = len(computation.parameters), self.argnums
        numbers = [argnums] if isinstance(argnums, int) else list(argnums)
        if self.is_group:
            numbers = [n for n in numbers if -count <= n < count and _is_smooth(computation.parameters[n])]
        for number in numbers:
            if not -count <= number < count:
                raise ShapeError(
                    "index_out_of_range",
                    f"grad: argnums={argnums} names parameter {number}, and {computation.name} has {count} "
                    "[index_out_of_range]",
                )
            _check_parameter(computation, number % count, argnums)
        return [number % count for number in numbers]


def is_real_number(shape: AnyShape) -> bool:
    """Whether it is the shape of one real number, which a gradient can be asked of."""
    return isinstance(shape, Shape) and shape.rank == 0 and shape.dtype.kind == "float"


def _is_smooth(parameter: Instruction) -> bool:
    return trees.any_of(trees.differentiable(parameter.shape))


def _check_parameter(computation: Computation, number: int, argnums: Argnums) -> None:
    parameter = computation.parameters[number]
    if not _is_smooth(parameter):
        place = f"  at {parameter.source}\n" if parameter.source is not None else ""
        raise ShapeError(
            "not_differentiable",
            f"grad: parameter {number} of {computation.name}, %{parameter.name}, is {parameter.shape}, and only floats "
            f"and complex numbers have a gradient [not_differentiable]\n{place}"
            f"  hint: leave it out of argnums={argnums}, or convert it to a float",
        )


def _as_parameter(recorder: Recorder, parameter: Instruction, cotangent: Any) -> Value:
    """The cotangent of a parameter in its form; of a tuple the elements that have one."""
    leaves = leaves_of(recorder, parameter, cotangent)

    def packed(shape: AnyShape) -> Value | None:
        if isinstance(shape, TupleShape):
            elements = [found for each in shape.elements if (found := packed(each)) is not None]
            return ops.tuple_(elements, builder=recorder)
        return next(leaves) if trees.is_differentiable(shape) else None

    found = packed(parameter.shape)
    assert found is not None
    return found
