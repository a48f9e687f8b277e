"""The public derivatives: vjp, grad and value_and_grad of computations, functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from attrs import evolve

from shape_inference import AnyShape, TupleShape
from shape_inference.rules import ShapeError

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module
from ..core.regions import computation as traced
from ..editing.header import kept_annotations
from . import trees
from .context import Context, back_channels
from .derivatives import finished, leaves_of, pulled_back, recorder_of, scalar_seed, seeds
from .expansion import call_counts, expanded
from .recorder import Recorder

Argnums = int | Sequence[int]


def vjp_of(computation: Computation, context: Context) -> Computation:
    recorder = recorder_of(computation, "vjp")
    wanted = tuple([trees.differentiable(p.shape) for p in computation.parameters])
    seed = seeds(recorder, computation)
    cotangents = pulled_back(recorder, computation, wanted, seed, context)
    found = [
        leaf
        for parameter, cotangent in zip(computation.parameters, cotangents, strict=True)
        for leaf in leaves_of(recorder, parameter, cotangent)
    ]
    return finished(recorder, ops.tuple_(found, builder=recorder))


def grad_of(computation: Computation, context: Context, argnums: Argnums, with_value: bool) -> Computation:
    recorder = recorder_of(computation, "value_and_grad" if with_value else "grad")
    seed = scalar_seed(recorder, computation)
    numbers = _numbers(computation, argnums)
    wanted = tuple(
        [
            trees.mapped(lambda leaf, n=n: leaf and n in numbers, trees.differentiable(p.shape))
            for n, p in enumerate(computation.parameters)
        ]
    )
    cotangents = pulled_back(recorder, computation, wanted, seed, context)
    found = [_as_parameter(recorder, computation.parameters[n], cotangents[n]) for n in numbers]
    result = found[0] if isinstance(argnums, int) else ops.tuple_(found, builder=recorder)
    if with_value:
        result = ops.tuple_((recorder.value(computation.root), result))
    return finished(recorder, result)


def _numbers(computation: Computation, argnums: Argnums) -> list[int]:
    """The parameters that argnums names, refused where one is none or has no derivative."""
    count = len(computation.parameters)
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not -count <= number < count:
            raise ShapeError(
                "index_out_of_range",
                f"grad: argnums={argnums} names parameter {number}, and {computation.name} has {count} "
                "[index_out_of_range]",
            )
        parameter = computation.parameters[number]
        if not trees.any_of(trees.differentiable(parameter.shape)):
            raise ShapeError(
                "not_differentiable",
                f"grad: parameter {number % count} of {computation.name}, %{parameter.name}, is {parameter.shape}, and "
                "only floats and complex numbers have a gradient [not_differentiable]\n"
                f"{_at(parameter)}  hint: leave it out of argnums={argnums}, or convert it to a float",
            )
    return [number % count for number in numbers]


def _at(instruction: Instruction) -> str:
    return f"  at {instruction.source}\n" if instruction.source is not None else ""


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


def applied(transform: Callable[[Computation, Context], Computation], program: Any, options: dict[str, Any]) -> Any:
    """A transform of computations on a computation, a function, a module, or a group of modules."""
    if isinstance(program, Computation):
        return _transformed(transform, program, options)
    if isinstance(program, Module):
        entry = _transformed(transform, program.entry, options)
        notes = kept_annotations(program.annotations, program.entry, entry)
        return evolve(program, entry=entry, computations=(), annotations=notes, is_scheduled=False)
    if callable(program):
        return lambda *shapes: applied(transform, traced(*shapes)(program), options)
    raise TypeError(f"a Computation, a function, a Module or a ModuleGroup is wanted, and {program!r} is given")


def _transformed(
    transform: Callable[[Computation, Context], Computation], entry: Computation, options: dict[str, Any]
) -> Computation:
    """The transform of a program by its entry, with small calls written out."""
    calls = call_counts(entry)
    context = Context(channels=back_channels([entry]), calls=calls, **options)
    return transform(expanded(entry, calls, context.known), context)


def vjp(program: Any, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None) -> Any:
    return applied(vjp_of, program, {"checkpoint": checkpoint, "max_trips": max_trips})


def grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    return applied(
        lambda computation, context: grad_of(computation, context, argnums, False),
        program,
        {"checkpoint": checkpoint, "max_trips": max_trips},
    )


def value_and_grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    return applied(
        lambda computation, context: grad_of(computation, context, argnums, True),
        program,
        {"checkpoint": checkpoint, "max_trips": max_trips},
    )
