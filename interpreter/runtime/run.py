"""The entry points of runs: `evaluate` runs a computation on one device, `execute` a program on all its devices.

Sections:

    `evaluate`
    `execute`, and what it prepares
    Direct evaluation: without a grid, if a computation needs neither other devices nor the host
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from attrs import define, evolve, field

from shape_inference import AnyShape, Shape, TupleShape
from xbuild import checking
from xbuild.checking import Refused as Refused
from xbuild.checking import Verdict
from xbuild.checking.model.program import as_module, as_program, grid_of, program_of
from xbuild.checking.structure.transfers import ABSENT, find_absent_devices
from xbuild.core.diagnostics import BuildError
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.core.hooks import Hook
from xbuild.core.memos import memo, remembered
from xbuild.process.limits import SHALLOW, DeadlineError, depth, room_for_calls, within
from xbuild.properties.effects import name_in_report

from ..compiler.emit import PlanOptions
from ..compiler.facts import MOST_BYTES, communicates, depends_on_device, largest_buffer, largest_value
from ..compiler.plan import Plan, plan_of
from ..compiler.sharing import CallPath, SharedPool, shared_sites
from ..custom_calls import check_targets
from ..kernels.values import Given, NativeMemory, by_device, feeds_by_device, read, wrong_count
from ..rules.denormals import (
    CONTROL,
    FLAGS,
    HAS_MODE,
    Denormals,
    Environment,
    environment,
    fegetenv,
    fesetenv,
    is_flush,
    with_mode,
)
from ..rules.limits import Limits, unlimited
from ..strict import Ledger, StrictFailure, check_promises
from .device import Device
from .ends import drive, raise_end
from .estimates import YEAR, check_bytes, check_time, least_seconds
from .grid import Grid
from .observers import AnyObserver, MarkObserver, PathObserver, Watching, as_path_observer
from .report import Report, Stopped

if TYPE_CHECKING:
    from xbuild.checking.races import BufferFrame
    from xbuild.runtimes.record import Runtime


class ProgramRunner(Protocol):
    """Which of two programs a run is of: the given one, or one with native code in the places of some parts."""

    def run(self, function: Callable[..., Any], arguments: Sequence[Any], **options: Any) -> Any:
        """Run a program with `evaluate` or `execute`, on these arguments and with these options."""


choice_of: Hook[[Computation | Module | ModuleGroup, str], ProgramRunner] = Hook("chooses an engine for a program")

Engine: TypeAlias = Literal["interpreter", "auto"]


def evaluate(
    computation: Computation,
    *arguments: Any,
    seed: int = 0,
    strict: bool = False,
    sequential: bool = False,
    observer: AnyObserver | None = None,
    limits: Limits | None = None,
    denormals: Denormals = "flush",
    runtime: Runtime | str | None = None,
    engine: Engine = "interpreter",
) -> Any:
    """Run a computation on one device. Return an array, a NumPy scalar for rank 0, or a tuple of these.

    `arguments` has one item for each parameter. An item is an array of the parameter's shape and element type, or
    Python numbers and nested lists, which are converted to the element type. The item for a tuple parameter is a tuple.
    Arrays of NumPy's default types for Python numbers are also converted: float64 is rounded to a float type,
    complex128 to a complex type, and int64 becomes any type that can hold all its numbers. Arrays of other types, and
    numbers that the conversion would change, are refused.

    `seed` is the integer that seeds the random numbers. With `sequential`, every reduction combines the elements one
    after another, in order. For each instruction that runs, `observer` is called with the step, the device, the
    instruction and its value. `limits` sets limits on loop trips, seconds and bytes (`Limits`). See `execute` for
    `strict`, `denormals`, `runtime` and `engine`.

    Raises TypeError if the first argument is not a Computation, and ArgumentError if an argument does not fit its
    parameter. Raises Refused if the check refuses the computation, and Stopped if a limit is reached or a registered
    function raises. Raises StrictFailure at the end of a strict run with findings.

    >>> import xbuild as xb
    >>> evaluate(xb.computation(xb.f32[3])(lambda x: x * 2.0), [1.0, 2.0, 3.0])
    array([2., 4., 6.], dtype=float32)

    Source: Operation Semantics, which defines the value of each op.
    """
    if not isinstance(computation, Computation):
        raise TypeError(f"evaluate: expected a Computation, got {_type_and_name(computation)}; {_HINT}")
    if engine != "interpreter":
        choice = choice_of(computation, engine)
        return choice.run(
            evaluate, arguments, seed=seed, strict=strict, sequential=sequential, observer=observer, limits=limits,
            denormals=denormals, runtime=runtime,
        )  # fmt: skip
    flush = denormals == "flush" or is_flush(denormals)
    is_plain = observer is None and limits is None and runtime is None
    if is_plain and not strict and not sequential and unlimited() and (flush or HAS_MODE):
        quick = _quick(computation)
        if quick is not None and len(quick.types) == len(arguments):
            return quick(arguments, flush)
    (result,) = execute(
        as_module(computation),
        [arguments],
        seed=seed,
        strict=strict,
        sequential=sequential,
        observer=observer,
        limits=limits,
        denormals=denormals,
        runtime=runtime,
    )
    return result


_HINT = (
    "pass builder.build() or module.entry, as in xb.evaluate(builder.build(), x); to run a Module, use "
    "execute(module, inputs)"
)


def _type_and_name(value: Any) -> str:
    name = getattr(value, "name", None)
    return f"a {type(value).__name__}{f' named {name!r}' if name else ''}"


@remembered
def _quick(computation: Computation) -> Quick | None:
    """The direct evaluation of a computation; None if the computation needs a grid or is too deeply nested."""
    if depth(computation) > SHALLOW:
        return None
    module = as_module(computation)
    verdict = checked(module, 0)
    plan = plan_of(computation, _ordered(PlanOptions(flushed=not HAS_MODE), verdict, 0))
    return Quick(module, verdict, plan) if is_quick(computation) else None


def execute(
    program: Computation | Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None = None,
    outfeed: Callable[[int, Any], None] | None = None,
    send_buffers: float = 0,
    runtime: Runtime | str | None = None,
    seed: int = 0,
    strict: bool = False,
    sequential: bool = False,
    observer: AnyObserver | None = None,
    limits: Limits | None = None,
    check: bool = True,
    denormals: Denormals = "flush",
    engine: Engine = "interpreter",
) -> list[Any]:
    """Check a program, then run it on all its devices. Return a list with the value of each device.

    `program` may be a Computation, which runs on one device. `inputs` has a list of arguments for each device, in the
    form that `evaluate` takes. The lists are in device order, or in a mapping from device numbers; device = replica *
    num_partitions + partition. A value is an array with the root's shape, a NumPy scalar for rank 0, or a tuple of
    these. The number of cores does not change the result.

    `infeed` has an iterable of items for each device; each item has the shape of the infeed that reads it. For each
    outfeed, `outfeed` is called with the device and the item. `send_buffers` is the number of sends on each channel
    that complete before their recvs are posted. With a `runtime` (`xb.check`), devices wait as that runtime makes
    them wait; if the order in which calls take places matters, they take them in the order in which the check found
    a hang. `seed` seeds the random numbers that each device draws for itself. With `sequential`, every reduction
    combines the elements one after another, in order. For each instruction that runs, `observer` is called with the
    step, the device, the instruction and its value. `limits` sets limits on loop trips, seconds and bytes
    (`Limits`). `check=False` skips the deadlock check before the run. The program is then refused only if it names
    devices that do not exist. It runs in recorded order until it ends or no device can continue.

    `denormals` is "flush", as on XLA:CPU, or "keep", as in IEEE 754. With "flush", arithmetic reads denormal operands
    as zeros of the same sign, and returns such zeros for denormal results. Ops that only move elements keep denormals.
    Denormal numbers of f16 and smaller types are kept in both modes, because these types are computed in f32. User
    functions (custom calls, observers, infeeds) run in the mode of the calling thread.

    With the engine "auto", jaxlib compiles parts of a program that is run often or for long, if measured runs are then
    faster (`interpreter.auto`; the extra `xla`). Results may change once, between two runs, within the tolerances of
    `xb.engines.compare`.

    Each op rounds its result. There is one exception, as on XLA:CPU. If a sum or difference of f32 or f64 arrays has
    one product as an operand and is used only in comparisons that are reduced, this product is not rounded
    (`interpreter/compiler/facts.py`).

    `strict` checks every value without changing the results. If there are findings, StrictFailure is raised at the end,
    with `findings` and `results`. Findings are clamped indices; dropped updates; conversions out of range; integer
    divisions by zero or of the smallest integer by -1; shifts by at least the width; NaNs and infinities that no
    contributing element has; elements that never got a value; races of a scheduled program; and broken promises. A
    promise is broken if indices are not as promised, if parameters differ although `parameter_replication` or
    `sharding` promises that they are equal, or if values differ although a type on a mesh says that they are equal.
    Overflow of integers in +, - and * is defined, so it is not a finding. The computations of map, reduce, sort and
    similar ops are checked on complete arrays while they run. For a collective, and for a computation that consists
    of one known op, only the results are checked. A strict run takes about twice as long for elementwise ops on
    floats, up to five times as long for divisions and shifts of integers, and a tenth longer for matrix products.
    Without `strict` there is no cost.

    Raises Refused if the check refuses the program, and ArgumentError if an input does not fit its parameter or infeed.
    Raises Stopped if no device can continue, a limit is reached or a registered function raises. Raises StrictFailure
    at the end of a strict run with findings. Raises BuildError if calls are nested more than 500 deep, or if an
    unchecked program names a device that does not exist.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]

    Source: Operation Semantics, which defines the value of each op; for denormal numbers and rounding, XLA:CPU.
    """
    program, flush = as_program(program), is_flush(denormals)
    assert not isinstance(program, Computation)
    if engine != "interpreter":
        return choice_of(program, engine).run(  # type: ignore[no-any-return]
            execute, (inputs,), infeed=infeed, outfeed=outfeed, send_buffers=send_buffers, runtime=runtime, seed=seed,
            strict=strict, sequential=sequential, observer=observer, limits=limits, check=check, denormals=denormals,
        )  # fmt: skip
    with room_for_calls({module.entry for module in modules_of(program)}):
        limits = limits or Limits()
        if not check:
            _refuse_absent_devices(program)
        record = None
        if runtime is not None:
            from xbuild.runtimes.record import runtime_of  # few runs are those of a runtime

            record = runtime_of(runtime)
        verdict = checked(program, send_buffers, limits.seconds, record) if check else None
        modules = modules_of(program)
        check_targets(modules)
        rows = by_device(inputs, [len(module.entry.parameters) for module in modules])
        arguments = read_all(modules, rows)
        for module in dict.fromkeys(modules):
            check_bytes(module, limits)
            check_time(module, limits)
        watch = None if observer is None else as_path_observer(observer)
        ledger = Ledger() if strict else None
        if ledger is not None:
            check_promises(program, arguments, ledger)
            for number, (module, row) in enumerate(zip(modules, arguments, strict=True)):
                ledger.compare_arguments(number, module, row)
        with _stop_after(limits.seconds, "prepared"):
            shared = frozenset() if strict else _shared(modules, arguments, verdict, watch)
            options = PlanOptions(
                observed=isinstance(watch, PathObserver), marked=isinstance(watch, MarkObserver), sequential=sequential,
                shared=shared, strict=strict, flushed=flush and not HAS_MODE,
                complete=record is not None and bool(record.synchronizing),
            )  # fmt: skip
            frames: Mapping[int, BufferFrame] = {}
            if strict:
                from ..strict.buffers import BufferTracker, frames_by_device

                frames = frames_by_device(program)
            plans = [
                plan_of(module.entry, _ordered(evolve(options, buffered=True) if n in frames else options, verdict, n))
                for n, module in enumerate(modules)
            ]
        pool = SharedPool(len(modules))
        devices = [
            Device(number, module, plan, watch, pool, seed, ledger)
            for number, (module, plan) in enumerate(zip(modules, plans, strict=True))
        ]
        for number, frame in frames.items():
            assert ledger is not None
            devices[number].buffers = BufferTracker(frame, devices[number], ledger)
        with _add_findings_to_errors(ledger):
            feeds = feeds_by_device(infeed, len(devices))
            grid = Grid(devices, feeds, outfeed, send_buffers, grid_of(program))
            if record is not None:
                from .runtime_grid import RuntimeGrid

                orders = (
                    verdict_of(program, send_buffers, limits.seconds, record).interleavings if record.is_timed else ()
                )
                grid = RuntimeGrid(
                    devices, feeds, outfeed, send_buffers, grid_of(program),
                    runtime=record, program=program, interleavings=orders,
                )  # fmt: skip
            drive(grid, arguments, limits, verdict, flush)
        handout = Given(arguments)
        results = [handout.out(device.result) for device in devices]
        if ledger is not None and ledger.findings:
            raise StrictFailure(ledger.report(), results)
        return results


@contextmanager
def _stop_after(seconds: float | None, participle: str) -> Iterator[None]:
    """Raise Stopped if the analyses inside take more than this number of seconds."""
    try:
        with within(seconds):
            yield
    except DeadlineError:
        if seconds is None:  # the deadline of a caller
            raise
        message = f"the limit of {seconds:g} seconds was reached while the program was {participle}"
        raise Stopped(Report("limit_seconds", message)) from None


@contextmanager
def _add_findings_to_errors(ledger: Ledger | None) -> Iterator[None]:
    """An exception of a strict run that is raised inside the block gets a note with the findings so far."""
    try:
        yield
    except Exception as error:
        if ledger is not None and ledger.findings:
            error.add_note(str(ledger.report()))
        raise


def _shared(
    modules: list[Module],
    arguments: list[tuple[Any, ...]],
    verdict: Verdict | None,
    watch: Watching | None,
) -> frozenset[CallPath]:
    """The call paths whose values one device computes for all: one program, one order, no observer of values."""
    alike = len(modules) > 1 and not isinstance(watch, PathObserver) and all(module is modules[0] for module in modules)
    if not alike or (verdict is not None and len({verdict.orders(device) for device in range(len(modules))}) > 1):
        return frozenset()
    same = tuple(all(value is column[0] for value in column) for column in zip(*arguments, strict=True))
    return memo(modules[0], "shared", same, lambda: shared_sites(modules[0], same))


def _name_of(parameter: Instruction) -> str:
    name = name_in_report(parameter)
    return name if name != parameter.name else f"%{name}"


def modules_of(program: Module | ModuleGroup) -> list[Module]:
    """The program of each device, in the order of the devices."""
    if isinstance(program, Module):
        return [program] * program.num_devices
    return [program.modules[device] for device in sorted(program.modules)]


def verdict_of(
    program: Module | ModuleGroup, send_buffers: float, seconds: float | None = None, runtime: Runtime | None = None
) -> Verdict:
    """The verdict on the program, computed once for each module.

    Raises Stopped where the check takes more than this number of seconds.
    """
    with _stop_after(seconds, "checked"):
        key = send_buffers if runtime is None else (send_buffers, runtime)
        return memo(
            program, "verdicts", key, lambda: checking.check(program, send_buffers=send_buffers, runtime=runtime)
        )


def checked(
    program: Module | ModuleGroup, send_buffers: float, seconds: float | None = None, runtime: Runtime | None = None
) -> Verdict:
    """The verdict on the program; raises Refused if the program is refused."""
    verdict = verdict_of(program, send_buffers, seconds, runtime)
    if verdict.refused:
        is_alone = isinstance(program, Module) and program.num_devices == 1
        is_elsewhere = any(finding.kind in ABSENT for finding in verdict.findings)
        raise Refused(verdict, *([_SEVERAL] if is_alone and is_elsewhere else []))
    return verdict


def _refuse_absent_devices(program: Module | ModuleGroup) -> None:
    """Raise BuildError if a collective or transfer names a device that does not exist."""
    findings = memo(program, "absent", (), lambda: find_absent_devices(program_of(program)))
    if findings:
        first = findings[0]
        where = "".join(f", at {source}" for source in first.sources[:1])
        raise BuildError(first.kind, f"{first.message}{where}", (first.repair_text,) if first.repair_text else ())


_SEVERAL = (
    "this program has only device 0; for two devices, run xb.Module('name', computation, num_replicas=2) with "
    "xb.execute(module, [[x0], [x1]])"
)


def _ordered(options: PlanOptions, verdict: Verdict | None, device: int) -> PlanOptions:
    orders = () if verdict is None else verdict.orders(device)
    return evolve(options, orders=orders) if orders else options


def read_all(
    modules: list[Module], rows: list[tuple[Any, ...]], numbers: Sequence[int] | None = None
) -> list[tuple[Any, ...]]:
    """The arguments of each device, converted for its plan; an object passed to several devices is converted once.

    `numbers` are the numbers of the devices, if the rows are not those of all devices.
    """
    known: dict[tuple[int, AnyShape], Any] = {}

    def read_once(value: Any, parameter: Instruction, number: int, device: int) -> Any:
        key = id(value), parameter.shape
        if key not in known:
            known[key] = read(value, parameter.shape, f"argument {number} ({_name_of(parameter)}) of device {device}")
        return known[key]

    arguments = []
    for device, module, row in zip(numbers or range(len(rows)), modules, rows, strict=True):
        parameters = module.entry.parameters
        if len(row) != len(parameters):
            raise wrong_count(module.entry, len(row), device)
        arguments.append(
            tuple(read_once(v, p, n, device) for n, (v, p) in enumerate(zip(row, parameters, strict=True)))
        )
    return arguments


# ----------------------------------------------------------------------------
# Direct evaluation: the plan of a computation that needs neither other devices nor the host, without a grid.

ArrayType: TypeAlias = tuple[Any, np.dtype[Any], tuple[int, ...]]


@define(eq=False)
class Quick:
    """A computation prepared for direct evaluation: its plan, and the array types that need no conversion."""

    module: Module
    verdict: Verdict
    plan: Plan
    types: tuple[ArrayType | None, ...] = field(init=False)
    plain: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        shapes = [parameter.shape for parameter in self.module.entry.parameters]
        self.types = tuple(map(_array_type, shapes))
        self.plain = not any(isinstance(shape, TupleShape) for shape in shapes)

    def __call__(self, arguments: tuple[Any, ...], flush: bool) -> Any:
        values = [
            value
            if type_ and type(value) is type_[0] and value.dtype is type_[1] and value.shape == type_[2]
            else self._read(number, value)
            for number, (value, type_) in enumerate(zip(arguments, self.types, strict=True))
        ]
        try:
            result = self._run(values, flush)
        except BaseException as error:
            self._raise_end(error)
        return result if self._is_own(result, values) else Given(values).out(result)

    def _run(self, values: list[Any], flush: bool) -> Any:
        """The result of the plan, with denormal numbers flushed or kept, and without NumPy's warnings."""
        try:
            run_environment = _FREE.pop()
        except IndexError:
            run_environment = _RunEnvironment()
        own = run_environment.own
        fegetenv(own)
        if own[CONTROL] | FLAGS != run_environment.control or flush is not run_environment.flush:
            run_environment.fit(flush)
        try:
            fesetenv(run_environment.of_run)
            return run_environment.quiet(self.plan.function, None, *values)
        finally:
            fesetenv(own)
            _FREE.append(run_environment)

    def _is_own(self, result: Any, values: list[Any]) -> bool:
        """Whether a quick test shows that a result shares its memory with no argument and no literal."""
        if type(result) is not np.ndarray or not result.flags.writeable:
            return False
        if result.base is not None and not isinstance(result.base, NativeMemory):
            return False
        return self.plain and not any(result is value for value in values)

    def _read(self, number: int, value: Any) -> Any:
        parameter = self.module.entry.parameters[number]
        return read(value, parameter.shape, f"argument {number} ({_name_of(parameter)}) of device 0")

    def _raise_end(self, error: BaseException) -> None:
        grid = Grid([Device(0, self.module, self.plan)], {}, None, 0)
        grid.running = grid.devices[0]
        raise_end(grid, error, self.verdict)


@define(eq=False)
class _RunEnvironment:
    """The environment of a run: a context without NumPy's warnings, and the floating-point environment.

    Environments are kept and reused, since making one takes as long as a short run.
    """

    quiet: Callable[..., Any] = field(init=False)
    own: Environment = field(factory=environment)
    of_run: Environment = None
    control: int = -1
    flush: bool = True

    def __attrs_post_init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.quiet = context.run

    def fit(self, flush: bool) -> None:
        """Adapt the floating-point environment of the run to that of the calling thread."""
        self.of_run, self.control, self.flush = with_mode(self.own, flush), self.own[CONTROL] | FLAGS, flush


_FREE: list[_RunEnvironment] = []
"""The environments that no run uses."""


def _array_type(shape: Any) -> ArrayType | None:
    """The type, element type and extents of an argument that needs no conversion; None if `read` must check it."""
    if not isinstance(shape, Shape) or shape.dynamic:
        return None
    dtype = shape.dtype.dtype
    return np.ndarray if shape.dims else dtype.type, dtype, shape.dims


def is_quick(computation: Computation) -> bool:
    """Whether a computation can be evaluated without a grid, and its values and time are within the limits."""
    most = Limits().bytes
    fits = most is None or largest_buffer(computation).shape.bytes <= most
    fits = fits and largest_value(computation).shape.bytes <= MOST_BYTES and least_seconds(computation) <= YEAR
    return fits and not communicates(computation) and not depends_on_device(computation)
