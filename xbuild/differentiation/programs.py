"""The public derivatives vjp, grad, value_and_grad and jvp, of computations, functions and modules.

Sections:

    Options of derivatives and their argnums
    From a computation to the computation of its cotangents
    Requests
    Reverse mode: vjp, grad and value_and_grad
    Forward mode: jvp
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from attrs import evolve, frozen

from shape_inference import AnyShape, Shape, TupleShape, refuse
from shape_inference.rules import ShapeError

from .. import ops
from ..checking import ScheduleError, check
from ..core.builder import Value
from ..core.context import apart
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.identifiers import nearest
from ..core.memos import remembered
from ..core.regions import computation as traced
from ..editing import repaired
from ..editing.rebuild import kept_annotations
from ..properties.effects import COLLECTIVES, START_OF, STARTS, collective_in, has_effect, start_of
from ..properties.order import ordered
from ..properties.patterns import reducer_of
from ..variance import MeshProgram, ShardedFunction
from ..variance.derivatives import differentiate_program, specs_of_grad, specs_of_jvp, specs_of_vjp
from ..variance.program import ManualRegion
from . import trees
from .activity import Activity
from .context import Channels, DerivativeContext, call_counts, inline_calls, reachable_computations
from .forward import dense_tangents, push_forward
from .pruning import prune
from .recorder import DerivativeRecorder
from .rules import full, refuse_bits
from .walk import CotangentWalk

# ----------------------------------------------------------------------------
# Options of derivatives and their argnums
#
# Checked for their types and for the names and parameters they refer to.

_RECOMPUTED = ("while", "scan", "call", "conditional", "fusion", "map")


def check_options(options: Mapping[str, Any]) -> None:
    """Raises invalid_attribute for a checkpoint or max_trips of the wrong type."""
    checkpoint, trips = options.get("checkpoint", False), options.get("max_trips")
    if isinstance(checkpoint, str):
        refuse(
            "invalid_attribute",
            f"checkpoint={checkpoint!r} is a string, not a sequence of names",
            f"checkpoint=[{checkpoint!r}]",
        )
    if not hasattr(checkpoint, "__contains__") and not isinstance(checkpoint, bool):
        refuse("invalid_attribute", f"checkpoint={checkpoint!r}: pass True, False, or the names of loops and calls")
    if trips is not None and (not isinstance(trips, int) or isinstance(trips, bool) or trips < 0):
        refuse("invalid_attribute", f"max_trips={trips!r}: the number of trips must be an int that is 0 or more")


def check_names(options: Mapping[str, Any], entries: Iterable[Computation]) -> None:
    """Raises invalid_attribute for names in checkpoint that are no loop, call or conditional of the programs."""
    names = options.get("checkpoint", False)
    if isinstance(names, bool) or not isinstance(names, Collection):
        return
    known = [
        i.name
        for computation in reachable_computations(entries)
        for i in computation.instructions
        if i.opcode in _RECOMPUTED
    ]
    for name in names:
        if name not in known:
            candidates = (
                f"the program has {', '.join(known)}" if known else "the program has no loop, call or conditional"
            )
            refuse(
                "invalid_attribute",
                f"checkpoint contains {name!r}, which is not a loop, call or conditional; {candidates}",
            )


def check_argnums(argnums: Any) -> None:
    """Raises invalid_attribute unless argnums is a number or a sequence of numbers."""
    numbers = argnums if isinstance(argnums, Iterable) and not isinstance(argnums, str) else [argnums]
    kind = Integral if numbers is argnums else int
    if not all(isinstance(number, kind) and not isinstance(number, bool) for number in numbers):
        refuse(
            "invalid_attribute",
            f"argnums={argnums!r}: expected the number of a parameter, or a sequence of such numbers",
        )


# ----------------------------------------------------------------------------
# From a computation to the computation of its cotangents
#
# The walk records them; dead code is removed at the end.


def new_recorder(computation: Computation, suffix: str, adopts: bool = True) -> DerivativeRecorder:
    """A recorder that holds the instructions of a computation and reuses none of their names."""
    recorder = DerivativeRecorder(nearest(f"{computation.name}_{suffix}"))
    for called in computation.reachable():
        recorder.reserve_names_of(called)
        share_reducer(recorder, called)
    if adopts:
        recorder.adopt(ordered(computation))
    return recorder


def share_reducer(recorder: DerivativeRecorder, called: Computation) -> None:
    """Use the program's own addition region for sums in the derivative."""
    if reducer_of(called) == "add" and all(isinstance(p.shape, Shape) for p in called.parameters):
        shapes = tuple([p.shape.plain() for p in called.parameters])
        if shapes == (called.root.shape.plain(),) * 2:
            recorder.traced.setdefault((ops.add, shapes), called)


def record_seeds(recorder: DerivativeRecorder, computation: Computation) -> Any:
    """Record a parameter for the cotangent of each float or complex leaf of the result."""
    count = len(computation.parameters)
    cotangents: list[Value] = []
    for _, shape in trees.paths(computation.root.shape):
        if trees.is_differentiable(shape):
            name = recorder.fresh("ct")
            cotangents.append(ops.parameter(recorder, number=count + len(cotangents), shape=shape.plain(), name=name))
    in_order = iter(cotangents)
    return trees.map_leaves(
        lambda leaf: next(in_order) if trees.is_differentiable(leaf) else None, computation.root.shape
    )


def pull_back(
    recorder: DerivativeRecorder,
    computation: Computation,
    wanted: tuple[Any, ...],
    seed: Any,
    context: DerivativeContext,
) -> Any:
    """The cotangents of the parameters, as trees, at the leaves that are True in `wanted`."""
    active = context.activity.varying_leaves(computation, wanted)
    with apart():
        return CotangentWalk(context, recorder, active).pull_back(computation, seed)


def cotangent_leaves(recorder: DerivativeRecorder, parameter: Instruction, cotangent: Any) -> Iterator[Value]:
    """The cotangents of the float and complex leaves of a parameter, zeros for missing ones."""
    for path, shape in trees.paths(parameter.shape):
        if trees.is_differentiable(shape):
            leaf = trees.at(cotangent, path)
            yield leaf if leaf is not None else full(recorder, 0, shape.plain())


def finish(recorder: DerivativeRecorder, root: Value, *, keeps_collectives: bool = False) -> Computation:
    """The recorded computation, without instructions that neither the root nor an effect needs."""
    instructions = recorder.assemble()
    last = recorder.latest(root.instruction)
    return prune(recorder.name, instructions, last, None if keeps_collectives else is_collective)


def is_collective(instruction: Instruction) -> bool:
    """Whether it is a collective, a half of one, or a call whose only effects are collectives."""
    opcode = instruction.opcode
    if opcode in COLLECTIVES or opcode in STARTS:
        return True
    if opcode in START_OF:
        start = start_of(instruction)
        return start is not None and collective_in(start) is not None
    if opcode == "async_start" and collective_in(instruction) is not None:
        return True
    return bool(instruction.called) and all(map(_has_only_collectives, instruction.called))


@remembered
def _has_only_collectives(computation: Computation) -> bool:
    """Whether collectives are the only instructions with an effect."""
    return all(map(is_collective, filter(has_effect, computation.instructions)))


def record_scalar_seed(recorder: DerivativeRecorder, computation: Computation) -> Value:
    """The cotangent 1 of a scalar real result; other results have no gradient."""
    shape = computation.root.shape
    if not (isinstance(shape, Shape) and shape.rank == 0 and shape.dtype.kind == "float"):
        raise ShapeError(
            "not_differentiable",
            f"grad: the result of {computation.name} is {shape}; expected a real scalar such as f32[] "
            "[not_differentiable]\n  hint: xb.vjp differentiates a result of any shape",
        )
    return ops.constant(recorder, literal=np.ones((), shape.dtype.dtype), name=recorder.fresh("ct"))


# ----------------------------------------------------------------------------
# Requests
#
# All cotangents of a computation, or the gradient of its scalar result.

Argnums = int | Sequence[int]


@frozen
class VjpRequest:
    """The cotangents of all parameters, given the cotangents of the result as further parameters."""

    def active_leaves(self, computation: Computation) -> tuple[Any, ...]:
        """The parameters' leaves with respect to which it differentiates, as trees."""
        return tuple([trees.differentiable_leaves(p.shape) for p in computation.parameters])

    def build(self, computation: Computation, context: DerivativeContext) -> Computation:
        """The computation of the cotangents."""
        recorder = new_recorder(computation, "vjp")
        seed = record_seeds(recorder, computation)
        cotangents = pull_back(recorder, computation, self.active_leaves(computation), seed, context)
        leaves = [
            leaf
            for parameter, cotangent in zip(computation.parameters, cotangents, strict=True)
            for leaf in cotangent_leaves(recorder, parameter, cotangent)
        ]
        return finish(recorder, ops.tuple_(leaves, builder=recorder), keeps_collectives=context.is_group)

    def specs(self, program: MeshProgram) -> Any:
        """The specs of the parameters and of the result, for a program on a mesh."""
        return specs_of_vjp(program)


@frozen
class GradRequest:
    """The gradient of a real scalar result with respect to some parameters, with the value if `with_value`.

    In a group (`is_group`), a program with any other result adds nothing to the loss, and a program without the
    parameters returns an empty tuple.
    """

    argnums: Argnums
    with_value: bool
    is_group: bool = False

    def active_leaves(self, computation: Computation) -> tuple[Any, ...]:
        """The parameters' leaves with respect to which it differentiates, as trees."""
        numbers = self._numbers(computation)
        return tuple(
            [
                trees.differentiable_leaves(p.shape) if n in numbers else trees.fill(p.shape, False)
                for n, p in enumerate(computation.parameters)
            ]
        )

    def build(self, computation: Computation, context: DerivativeContext) -> Computation:
        """The computation of the gradient."""
        recorder = new_recorder(computation, "value_and_grad" if self.with_value else "grad")
        seed = None if self._adds_no_loss(computation) else record_scalar_seed(recorder, computation)
        numbers = self._numbers(computation)
        cotangents = pull_back(recorder, computation, self.active_leaves(computation), seed, context)
        gradients = [_shape_like_parameter(recorder, computation.parameters[n], cotangents[n]) for n in numbers]
        is_bare = isinstance(self.argnums, int) and bool(gradients)
        result = gradients[0] if is_bare else ops.tuple_(gradients, builder=recorder)
        if self.with_value:
            result = ops.tuple_((recorder.value(computation.root), result))
        return finish(recorder, result, keeps_collectives=context.is_group)

    def specs(self, program: MeshProgram) -> Any:
        """The specs of the parameters and of the result, for a program on a mesh."""
        self._numbers(program.typed.entry)
        return specs_of_grad(program, self.argnums, self.with_value)

    def _adds_no_loss(self, computation: Computation) -> bool:
        return self.is_group and not is_real_number(computation.root.shape)

    def _numbers(self, computation: Computation) -> list[int]:
        """The parameters that argnums names; raises if one does not exist or has no derivative."""
        count, argnums = len(computation.parameters), self.argnums
        numbers = [argnums] if isinstance(argnums, int) else list(argnums)
        if self.is_group:
            numbers = [n for n in numbers if -count <= n < count and _has_float(computation.parameters[n])]
        for number in numbers:
            if not -count <= number < count:
                raise ShapeError(
                    "index_out_of_range",
                    f"grad: argnums={argnums} selects parameter {number}, but {computation.name} has {count} "
                    "parameters [index_out_of_range]",
                )
            _check_parameter(computation, number % count, argnums)
        return [number % count for number in numbers]


def is_real_number(shape: AnyShape) -> bool:
    """Whether it is the shape of a real scalar, as a loss has."""
    return isinstance(shape, Shape) and shape.rank == 0 and shape.dtype.kind == "float"


def _has_float(parameter: Instruction) -> bool:
    return trees.has_any(trees.differentiable_leaves(parameter.shape))


def _check_parameter(computation: Computation, number: int, argnums: Argnums) -> None:
    parameter = computation.parameters[number]
    if not _has_float(parameter):
        place = f"  at {parameter.source}\n" if parameter.source is not None else ""
        raise ShapeError(
            "not_differentiable",
            f"grad: parameter {number} of {computation.name}, %{parameter.name}, is {parameter.shape}, but only "
            f"floats and complex numbers have a gradient [not_differentiable]\n{place}  hint: omit it from "
            f"argnums={argnums}, or convert it to a float",
        )


def _shape_like_parameter(recorder: DerivativeRecorder, parameter: Instruction, cotangent: Any) -> Value:
    """The cotangent in the form of its parameter; for a tuple, a tuple of the elements that have one."""
    leaves = cotangent_leaves(recorder, parameter, cotangent)

    def pack(shape: AnyShape) -> Value | None:
        if isinstance(shape, TupleShape):
            elements = [part for element in shape.elements if (part := pack(element)) is not None]
            return ops.tuple_(elements, builder=recorder)
        return next(leaves) if trees.is_differentiable(shape) else None

    result = pack(parameter.shape)
    assert result is not None
    return result


# ----------------------------------------------------------------------------
# Reverse mode: vjp, grad and value_and_grad
#
# Of computations, functions and modules.

Options = dict[str, Any]


def vjp(program: Any, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None) -> Any:
    """Return the program that maps cotangents of all results to cotangents of all parameters (reverse mode).

    For a Computation, the result is a Computation. Its parameters are the original ones, followed by one cotangent for
    each float or complex leaf of the result. Its result is the tuple of the cotangents of all float and complex leaves
    of the parameters, in order. For a Module, it is a module with such an entry and the same replicas and partitions.
    For a ModuleGroup, it is a group of such modules. For a function, it is a function of shapes, like those that
    xb.computation takes. Cotangents of complex values use the plain transpose, without conjugation. On several devices,
    the loss is the sum of the losses of all devices. Cotangents of sent values travel back on new channels, and the new
    program is checked. `checkpoint` is True, or the names of loops, calls and conditionals whose values the backward
    pass recomputes instead of keeping. `max_trips` is the number of trips whose values are kept for loops with an
    unknown trip count; a run with more trips returns NaN. Raises ShapeError (not_differentiable) if a cotangent reaches
    an op without a derivative or a loop with an unknown trip count. Raises invalid_attribute if `checkpoint` contains a
    name that is not the name of a loop, call or conditional, or if `max_trips` is not a number. Raises TypeError if
    `program` is none of the above, and ScheduleError if the program or its derivative cannot run to completion in any
    order.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[2], xb.f32[2])
    ... def product(x, y):
    ...     return x * xb.sin(y)
    >>> print(xb.vjp(product))
    ENTRY product_vjp {
      parameter.1 = f32[2] parameter(0)
      parameter.2 = f32[2] parameter(1)
      sine.3 = f32[2] sine(parameter.2)
      ct = f32[2] parameter(2)
      multiply.4.vjp = f32[2] multiply(ct, sine.3)
      multiply.4.vjp.1 = f32[2] multiply(ct, parameter.1)
      sine.3.vjp = f32[2] cosine(parameter.2)
      sine.3.vjp.1 = f32[2] multiply(multiply.4.vjp.1, sine.3.vjp)
      ROOT tuple.6 = (f32[2], f32[2]) tuple(multiply.4.vjp, sine.3.vjp.1)
    }

    Source: JAX, jax.vjp and the transposition rules of jax.lax.
    """
    return differentiate(VjpRequest(), program, {"checkpoint": checkpoint, "max_trips": max_trips})


def grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    """Return the program that computes the gradient of its real scalar result with respect to some parameters.

    `argnums` gives the numbers of these parameters: for an int, the result is the gradient itself; for a sequence, it
    is a tuple of gradients. The gradient with respect to a tuple is the tuple of the gradients of its float and complex
    elements. For a complex parameter, the gradient is df/dx - i df/dy; its conjugate points in the direction of
    steepest ascent. Takes the same programs and options as xb.vjp, and raises the same errors. In a ModuleGroup, each
    program returns the gradient of its own parameters; a program whose result is not a real scalar adds nothing to the
    loss. Also raises not_differentiable if the result is not a real scalar or a parameter holds integers,
    index_out_of_range if `argnums` refers to a parameter that does not exist, and invalid_attribute if `argnums` is not
    a number.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[3], xb.f32[3])
    ... def loss(w, x):
    ...     return xb.reduce(xb.tanh(w * x), 0.0, xb.add)
    >>> evaluate(xb.grad(loss), [0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    array([1., 2., 3.], dtype=float32)
    >>> evaluate(xb.grad(lambda x: x * x * x)(xb.f32[()]), 2.0)
    np.float32(12.0)

    Source: JAX, jax.grad.
    """
    return differentiate(GradRequest(argnums, False), program, {"checkpoint": checkpoint, "max_trips": max_trips})


def value_and_grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    """Return the program that computes the pair of the given program's real scalar result and its gradient. Otherwise,
    this function is like xb.grad.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[()])
    ... def square(x):
    ...     return x * x
    >>> evaluate(xb.value_and_grad(square), 3.0)
    (np.float32(9.0), np.float32(6.0))

    Source: JAX, jax.value_and_grad.
    """
    return differentiate(GradRequest(argnums, True), program, {"checkpoint": checkpoint, "max_trips": max_trips})


Request = Any


@frozen(eq=False)
class FunctionOfShapes:
    """The derivative of a function: a function from shapes to the program, which can be differentiated again."""

    program: Callable[..., Any]

    def __call__(self, *shapes: Any) -> Any:
        return self.program(*shapes)


@frozen
class _Plan:
    """Programs that run together, and the request to apply to them."""

    request: Request
    options: Options
    entries: dict[int, Computation]
    counts: tuple[int | None, int | None] = (None, None)
    is_group: bool = False

    def build_all(self) -> dict[int, Computation]:
        """The derivative of each program."""
        distinct = dict.fromkeys(self.entries.values())
        check_names(self.options, distinct)
        channels = Channels.unused_in(distinct)
        calls = {entry: call_counts(entry) for entry in distinct}
        inlined = {entry: inline_calls(entry, calls[entry], {}) for entry in distinct}
        active = find_varying_channels([inlined[entry] for entry in distinct], self.request, self.is_group)
        derived: dict[Computation, Computation] = {}
        for entry in distinct:
            activity = Activity(active, self.is_group)
            context = DerivativeContext(
                activity, channels=channels, calls=calls[entry], is_group=self.is_group, **self.options
            )
            context.num_replicas, context.num_partitions = self.counts
            derived[entry] = self.request.build(inlined[entry], context)
        return {device: derived[entry] for device, entry in self.entries.items()}


def find_varying_channels(entries: list[Computation], request: Request, is_group: bool) -> frozenset[int]:
    """The channels on which a varying value arrives, because a varying value is sent there: a fixed point."""
    if not any(i.opcode == "send" for computation in reachable_computations(entries) for i in computation.instructions):
        return frozenset()
    channels: frozenset[int] = frozenset()
    while True:
        activity = Activity(channels, is_group)
        for entry in entries:
            activity.varying_leaves(entry, request.active_leaves(entry))
        more = channels | activity.sending_channels()
        if more == channels:
            return channels
        channels = more


def differentiate(request: Request, program: Any, options: Options) -> Any:
    """Apply a request to a computation, function, module, group of modules or program on a mesh."""
    check_options(options)
    if isinstance(request, GradRequest):
        check_argnums(request.argnums)
    if isinstance(program, ShardedFunction):
        return FunctionOfShapes(lambda *shapes: differentiate(request, program.program(*shapes), options))
    if isinstance(program, FunctionOfShapes):
        return FunctionOfShapes(lambda *shapes: differentiate(request, program(*shapes), options))
    if isinstance(program, MeshProgram):
        return differentiate_program(
            program, partial(_differentiate_on_mesh, request, program, options), request.specs(program)
        )
    if isinstance(program, Computation):
        return _Plan(request, options, {0: program}).build_all()[0]
    if isinstance(program, Module):
        counts = program.num_replicas, program.num_partitions
        (entry,) = _Plan(request, options, {0: program.entry}, counts).build_all().values()
        return _check_schedule(_with_entry(program, entry))
    if isinstance(program, ModuleGroup):
        shared = evolve(request, is_group=True) if isinstance(request, GradRequest) else request
        entries = {device: module.entry for device, module in program.modules.items()}
        derivatives = _Plan(shared, options, entries, (program.num_devices, 1), is_group=True).build_all()
        made: dict[Module, Module] = {}
        for device, module in program.modules.items():
            made.setdefault(module, _with_entry(module, derivatives[device]))
        return _check_schedule(ModuleGroup({device: made[module] for device, module in program.modules.items()}))
    if callable(program):
        return FunctionOfShapes(lambda *shapes: differentiate(request, traced(*shapes)(program), options))
    raise TypeError(f"expected a Computation, a Module, a ModuleGroup or a function, got a {type(program).__name__}")


def _differentiate_on_mesh(
    request: Request, program: MeshProgram, options: Options, region: ManualRegion
) -> Computation:
    """Apply a request to a program on a mesh, whose collectives are transposed by the types of their operands."""
    counts = program.typed.num_replicas, program.typed.num_partitions
    plan = _Plan(request, {**options, "region": region}, {0: program.typed.entry}, counts)
    return plan.build_all()[0]


def _with_entry(module: Module, entry: Computation) -> Module:
    notes = kept_annotations(module.annotations, module.entry, entry)
    return evolve(module, entry=entry, computations=(), annotations=notes, is_scheduled=False)


def _check_schedule(program: Any) -> Any:
    """The program, in the repaired order if the recorded order would deadlock."""
    modules = [program] if isinstance(program, Module) else list(program.modules.values())
    if not any(
        i.opcode == "send"
        for computation in reachable_computations([m.entry for m in modules])
        for i in computation.instructions
    ):
        return program
    verdict = check(program)
    if verdict.refused and verdict.repair is not None:
        return repaired(verdict)
    if verdict.refused:
        raise ScheduleError(verdict)
    return program


# ----------------------------------------------------------------------------
# Forward mode: jvp
#
# Of computations, functions and modules.


@frozen
class JvpRequest:
    """The tangents of the result, given the tangents of the parameters as further parameters."""

    def active_leaves(self, computation: Computation) -> tuple[Any, ...]:
        """The parameters' leaves that have a tangent, as trees."""
        return tuple([trees.differentiable_leaves(p.shape) for p in computation.parameters])

    def specs(self, program: MeshProgram) -> Any:
        """The specs of the parameters and of the result, for a program on a mesh."""
        return specs_of_jvp(program)

    def build(self, computation: Computation, context: DerivativeContext) -> Computation:
        """The computation of the tangents."""
        context.activity.varying_leaves(computation, self.active_leaves(computation))
        for (
            instruction
        ) in context.activity.floats_made_of_bits():  # integers have no tangent, so none would reach these
            refuse_bits(instruction)
        recorder = new_recorder(computation, "jvp", adopts=False)
        recorder.mode = "jvp"
        parameters = [recorder.append(p) for p in computation.parameters]
        count = len(parameters)
        parameters_of_tangents: list[Value] = []

        def tangent(shape: Any) -> Value | None:
            if not trees.is_differentiable(shape):
                return None
            number, name = count + len(parameters_of_tangents), recorder.fresh("tangent")
            parameters_of_tangents.append(ops.parameter(recorder, number=number, shape=shape.plain(), name=name))
            return parameters_of_tangents[-1]

        tangents = [trees.map_leaves(tangent, p.shape) for p in computation.parameters]
        with apart():
            _, result_tangents = push_forward(context, recorder, computation, parameters, tangents)
        shape = computation.root.shape
        results = dense_tangents(recorder, trees.differentiable_leaves(shape), result_tangents, shape)
        return finish(recorder, ops.tuple_(results, builder=recorder), keeps_collectives=context.is_group)


def jvp(program: Any) -> Any:
    """Return the program that maps tangents of all parameters to tangents of all results (forward mode).

    For a Computation, the result is a Computation. Its parameters are the original ones, followed by one tangent for
    each of their float and complex leaves, in order. Its result is the tuple of the tangents of all float and complex
    leaves of the result. Modules, groups and functions are treated as in xb.vjp. Loops with an unknown trip count can
    be differentiated in forward mode. Raises ShapeError (not_differentiable) if a tangent reaches an op without a
    derivative, and raises TypeError and ScheduleError in the same cases as xb.vjp.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[()], xb.f32[()])
    ... def product(x, y):
    ...     return x * xb.sin(y)
    >>> evaluate(xb.jvp(product), 2.0, 0.0, 1.0, 1.0)
    (np.float32(2.0),)

    Source: JAX, jax.jvp.
    """
    return differentiate(JvpRequest(), program, {})
