"""The public derivatives in reverse mode: vjp, grad and value_and_grad of computations, functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import Any

from attrs import evolve, frozen

from ...checking import ScheduleError, check
from ...core.graph import Computation, Module, ModuleGroup
from ...core.regions import computation as traced
from ...editing import repaired
from ...editing.header import kept_annotations
from ...variance import Program, ShardedFunction
from ...variance.derivatives import of_program
from ...variance.region import Region
from ..activity import Activity
from ..context import Channels, Context, reached
from ..regions.expansion import call_counts, expanded
from .options import check_argnums, check_names, check_options
from .requests import Argnums, Cotangents, Gradient

Options = dict[str, Any]


def vjp(program: Any, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None) -> Any:
    """The program that takes cotangents back: of all results to all parameters.

    Of a Computation a Computation: its parameters are those of the computation, then one cotangent for each float or
    complex leaf of the result; its result is the tuple of the cotangents of all float and complex leaves of the
    parameters, in order, and nothing else. Of a Module the module with such an entry, for the same replicas and
    partitions; of a ModuleGroup the group of such modules; of a function a function of shapes, as xb.computation takes
    them. Cotangents of complex values are plain transposes, without conjugation. With several devices the loss is the
    sum of those of all devices; the cotangents of what is sent go back on new channels, and the program is checked
    again.
    `checkpoint`: True, or the names of loops, calls and conditionals whose values are computed again on the way back
    instead of being kept. `max_trips`: for how many trips values are kept of a loop whose number of trips is not known
    before the run; a run with more gives NaN.
    Raises ShapeError (not_differentiable) where a cotangent meets an op that has no derivative, or a loop whose number
    of trips is not known; invalid_attribute for a checkpoint that names none of them, or a max_trips that is no number;
    TypeError where `program` is none of these; ScheduleError where the program, or what it became, has no order in
    which it runs to the end.

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
    return applied(Cotangents(), program, {"checkpoint": checkpoint, "max_trips": max_trips})


def grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    """The program that gives the gradient of its one real result for a parameter, or a tuple for several.

    `argnums` counts parameters: an int gives the bare gradient, a sequence a tuple of them. The gradient of a parameter
    that is a tuple is the tuple of those of its float and complex elements. For a complex parameter it is
    df/dx - i df/dy, whose conjugate points up. Programs, options and errors are those of xb.vjp. In a ModuleGroup each
    program gives the gradient for its own parameters, and one whose result is no real number adds nothing to the loss.
    Raises, as well: not_differentiable where the result is not one real number or a parameter is of integers;
    index_out_of_range where argnums names no parameter, invalid_attribute where it is no number.

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
    return applied(Gradient(argnums, False), program, {"checkpoint": checkpoint, "max_trips": max_trips})


def value_and_grad(
    program: Any, argnums: Argnums = 0, *, checkpoint: bool | Container[str] = False, max_trips: int | None = None
) -> Any:
    """The program that gives its one real result and the gradient of that, as a pair; otherwise as xb.grad.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.computation(xb.f32[()])
    ... def square(x):
    ...     return x * x
    >>> evaluate(xb.value_and_grad(square), 3.0)
    (np.float32(9.0), np.float32(6.0))

    Source: JAX, jax.value_and_grad.
    """
    return applied(Gradient(argnums, True), program, {"checkpoint": checkpoint, "max_trips": max_trips})


Request = Any


@frozen(eq=False)
class OfShapes:
    """The derivative of a function: a function of shapes that gives the program, and that has derivatives itself."""

    program: Callable[..., Any]

    def __call__(self, *shapes: Any) -> Any:
        return self.program(*shapes)


@frozen
class _Plan:
    """Programs that run together, and what is asked of them."""

    request: Request
    options: Options
    entries: dict[int, Computation]
    counts: tuple[int | None, int | None] = (None, None)
    is_group: bool = False

    def answers(self) -> dict[int, Computation]:
        """What is asked, for each program."""
        distinct = dict.fromkeys(self.entries.values())
        check_names(self.options, distinct)
        channels = Channels.beyond(distinct)
        calls = {entry: call_counts(entry) for entry in distinct}
        whole = {entry: expanded(entry, calls[entry], {}) for entry in distinct}
        active = arriving([whole[entry] for entry in distinct], self.request, self.is_group)
        made: dict[Computation, Computation] = {}
        for entry in distinct:
            activity = Activity(active, self.is_group)
            context = Context(activity, channels=channels, calls=calls[entry], is_group=self.is_group, **self.options)
            context.num_replicas, context.num_partitions = self.counts
            made[entry] = self.request.answer(whole[entry], context)
        return {device: made[entry] for device, entry in self.entries.items()}


def arriving(entries: list[Computation], request: Request, is_group: bool) -> frozenset[int]:
    """The channels on which something arrives that varies, since what is sent there does, perhaps by what arrived."""
    if not any(i.opcode == "send" for each in reached(entries) for i in each.instructions):
        return frozenset()
    found: frozenset[int] = frozenset()
    while True:
        activity = Activity(found, is_group)
        for entry in entries:
            activity.of(entry, request.wanted(entry))
        more = found | activity.sent()
        if more == found:
            return found
        found = more


def applied(request: Request, program: Any, options: Options) -> Any:
    """What is asked, of a computation, a function, a module, a group of modules, or a program on a mesh."""
    check_options(options)
    if isinstance(request, Gradient):
        check_argnums(request.argnums)
    if isinstance(program, ShardedFunction):
        return OfShapes(lambda *shapes: applied(request, program.program(*shapes), options))
    if isinstance(program, OfShapes):
        return OfShapes(lambda *shapes: applied(request, program(*shapes), options))
    if isinstance(program, Program):
        return of_program(program, partial(_of_region, request, program, options), request.specs(program))
    if isinstance(program, Computation):
        return _Plan(request, options, {0: program}).answers()[0]
    if isinstance(program, Module):
        counts = program.num_replicas, program.num_partitions
        (entry,) = _Plan(request, options, {0: program.entry}, counts).answers().values()
        return _checked(_with_entry(program, entry))
    if isinstance(program, ModuleGroup):
        shared = evolve(request, is_group=True) if isinstance(request, Gradient) else request
        entries = {device: module.entry for device, module in program.modules.items()}
        answers = _Plan(shared, options, entries, (program.num_devices, 1), is_group=True).answers()
        made: dict[Module, Module] = {}
        for device, module in program.modules.items():
            made.setdefault(module, _with_entry(module, answers[device]))
        return _checked(ModuleGroup({device: made[module] for device, module in program.modules.items()}))
    if callable(program):
        return OfShapes(lambda *shapes: applied(request, traced(*shapes)(program), options))
    raise TypeError(
        f"a Computation, a Module, a ModuleGroup or a function is wanted, and a {type(program).__name__} is given"
    )


def _of_region(request: Request, program: Program, options: Options, region: Region) -> Computation:
    """What is asked of a program on a mesh, whose collectives are transposed by types."""
    counts = program.typed.num_replicas, program.typed.num_partitions
    plan = _Plan(request, {**options, "region": region}, {0: program.typed.entry}, counts)
    return plan.answers()[0]


def _with_entry(module: Module, entry: Computation) -> Module:
    notes = kept_annotations(module.annotations, module.entry, entry)
    return evolve(module, entry=entry, computations=(), annotations=notes, is_scheduled=False)


def _checked(program: Any) -> Any:
    """The program, in the order of its repair where the one that was recorded would not end."""
    modules = [program] if isinstance(program, Module) else list(program.modules.values())
    if not any(i.opcode == "send" for each in reached([m.entry for m in modules]) for i in each.instructions):
        return program
    verdict = check(program)
    if verdict.refused and verdict.repair is not None:
        return repaired(verdict)
    if verdict.refused:
        raise ScheduleError(verdict)
    return program
