"""The entry points: `evaluate` runs a computation on one device, `execute` a program on all its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from shape_inference import AnyShape
from shape_inference.escaping import Harmless
from xbuild import checking
from xbuild.checking import Verdict
from xbuild.checking.model.program import alone, grid_of, runnable
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.core.memos import memo, remembered
from xbuild.process.recursion_limit import SHALLOW, depth, room_for_calls

from ..compiler.emit import Options
from ..compiler.facts import MOST_BYTES, largest, vastest
from ..compiler.plan import plan_of
from ..compiler.sharing import CallPath, Pool, shared_sites
from ..custom_calls import check_targets
from ..kernels.values import ArgumentError, Given, by_device, read, wrong_count
from ..rules.denormals import HAS_MODE, Denormals, is_flush
from ..rules.limits import Limits, unlimited
from ..strict import Ledger, StrictFailure, check_promises
from .driver import drive
from .estimates import check_time
from .grid import Grid
from .observers import AnyObserver, MarkObserver, PathObserver, Watching, watching
from .quick import Quick, is_quick
from .replica import Device
from .report import Stopped, too_large


class Refused(Harmless):
    """The scheduler refuses the program; `verdict` says why."""

    def __init__(self, verdict: Verdict, *hints: str) -> None:
        super().__init__("\n".join([str(verdict), *(f"  hint: {hint}" for hint in hints)]))
        self.verdict = verdict

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_()


def evaluate(
    computation: Computation,
    *arguments: Any,
    seed: int = 0,
    strict: bool = False,
    sequential: bool = False,
    observer: AnyObserver | None = None,
    limits: Limits | None = None,
    denormals: Denormals = "flush",
) -> Any:
    """The result of a computation on one device: an array, a NumPy scalar for rank 0, or a tuple of these.

    Arguments: arrays of the parameters' shapes. Python numbers and lists take the declared element type, and so do
    arrays of NumPy's own types for them: float64 is rounded to a float parameter's type, complex128 to a complex one's,
    int64 becomes any type that holds each of its numbers. Whatever else would change a number, and arrays of all other
    types than the declared one, are refused.
    `seed` sets the random numbers. `sequential` asks for every fold one element after the other, in order. `observer`
    is called with the step, the device, the instruction and its value. `strict` checks each value, as `execute` says,
    where `denormals` stands, too.
    Raises ArgumentError where an argument does not fit, Refused, Stopped where the run comes to a limit, StrictFailure.

    >>> import xbuild as xb
    >>> evaluate(xb.computation(xb.f32[3])(lambda x: x * 2.0), [1.0, 2.0, 3.0])
    array([2., 4., 6.], dtype=float32)
    """
    if not isinstance(computation, Computation):
        raise TypeError(f"evaluate: {_described(computation)} is no Computation; {_WAYS}")
    flush = denormals == "flush" or is_flush(denormals)
    if observer is None and limits is None and not strict and not sequential and unlimited() and (flush or HAS_MODE):
        quick = _quick(computation)
        if quick is not None and len(quick.wanted) == len(arguments):
            return quick(arguments, flush)
    (result,) = execute(
        alone(computation),
        [arguments],
        seed=seed,
        strict=strict,
        sequential=sequential,
        observer=observer,
        limits=limits,
        denormals=denormals,
    )
    return result


_WAYS = (
    "builder.build() and module.entry give one, as in xb.evaluate(builder.build(), x), and execute(module, inputs) "
    "runs a Module"
)


def _described(given: Any) -> str:
    name = getattr(given, "name", None)
    return f"a {type(given).__name__}{f' of the name {name!r}' if name else ''}"


@remembered
def _quick(computation: Computation) -> Quick | None:
    """The direct evaluation of a computation; None where the computation needs a grid or is too deeply nested."""
    if depth(computation) > SHALLOW:
        return None
    module = alone(computation)
    verdict = checked(module, 0)
    plan = plan_of(computation, _ordered(Options(flushed=not HAS_MODE), verdict, 0))
    return Quick(module, verdict, plan) if is_quick(computation) else None


def execute(
    program: Computation | Module | ModuleGroup,
    inputs: Iterable[Iterable[Any]] | Mapping[int, Iterable[Any]],
    *,
    infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None = None,
    outfeed: Callable[[int, Any], None] | None = None,
    send_buffers: float = 0,
    seed: int = 0,
    strict: bool = False,
    sequential: bool = False,
    observer: AnyObserver | None = None,
    limits: Limits | None = None,
    check: bool = True,
    denormals: Denormals = "flush",
) -> list[Any]:
    """Check a program, then run it on all its devices; the results by device.

    Inputs: for each device its arguments, as lists in a list; a Computation is the program of one device. Infeed: for
    each device an iterable of items; `outfeed` is called with the device and the item. `seed` sets the random numbers,
    of which each device has its own.
    Device = replica * num_partitions + partition. Deterministic on any number of cores.
    Raises Refused where the scheduler refuses, Stopped where nobody can go on or a limit is reached, ArgumentError,
    StrictFailure, and BuildError where calls are nested more than 500 deep.

    `denormals`: as on XLA:CPU they are flushed, so that arithmetic takes denormal operands for zeros of their sign and
    gives such zeros for denormal results, while what only moves numbers keeps them ("flush"), or they are kept as IEEE
    754 has them ("keep"). Of f16 and smaller types they are kept, since these are computed in f32. The user's own
    functions (registered for custom calls, observers, infeeds) run in the mode that the thread had before.

    Each op rounds its result, with one exception, as on XLA:CPU: of f32 and f64 arrays a sum or difference with one
    product that is only compared, for a reduction, takes the product unrounded (`interpreter/compiler/contraction.py`).

    `strict` checks each value, gives the same results, and raises StrictFailure at the end where it has found
    something, with the `findings` and the `results`: an index that was moved inside or an update that was dropped, a
    conversion out of range, an integer division by zero or of the least number by -1, a shift by the width or more, a
    NaN or an infinity that is born (no element that contributes has it), an element that nobody has given, a promise
    about indices that does not hold, parameters that `parameter_replication` or `sharding` promise equal, and are not,
    and values that differ where a type on a mesh states one. Integers that wrap in + - * are defined, and not told. The
    computations of map, reduce, sort and the like are checked as they run, on whole arrays; those of one known op, and
    collectives, at their result. Off, it costs nothing; on, elementwise ops of floats take about twice as long,
    divisions and shifts of integers up to five times, matrix products a tenth longer.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]
    """
    program, flush = runnable(program), is_flush(denormals)
    assert not isinstance(program, Computation)
    with room_for_calls({module.entry for module in modules_of(program)}):
        limits = limits or Limits()
        verdict = checked(program, send_buffers) if check else None
        modules = modules_of(program)
        check_targets(modules)
        rows = by_device(inputs, len(modules))
        arguments = read_all(modules, rows)
        for module in dict.fromkeys(modules):
            check_bytes(module, limits)
            check_time(module, limits)
        watch = None if observer is None else watching(observer)
        ledger = Ledger() if strict else None
        if ledger is not None:
            check_promises(program, arguments, ledger)
            for number, (module, row) in enumerate(zip(modules, arguments, strict=True)):
                ledger.given(number, module, row)
        shared = frozenset() if strict else _shared(modules, arguments, verdict, watch)
        options = Options(
            observed=isinstance(watch, PathObserver), marked=isinstance(watch, MarkObserver), sequential=sequential,
            shared=shared, strict=strict, flushed=flush and not HAS_MODE,
        )  # fmt: skip
        pool = Pool(len(modules))
        devices = [
            Device(number, module, plan_of(module.entry, _ordered(options, verdict, number)), watch, pool, seed, ledger)
            for number, module in enumerate(modules)
        ]
        with _noted(ledger):
            grid = Grid(devices, _feeds(infeed, len(devices)), outfeed, send_buffers, grid_of(program))
            drive(grid, arguments, limits, verdict, flush)
        given = Given(arguments)
        results = [given.out(device.result) for device in devices]
        if ledger is not None and ledger.findings:
            raise StrictFailure(ledger.report(), results)
        return results


@contextmanager
def _noted(ledger: Ledger | None) -> Iterator[None]:
    """Inside, an exception of a strict run gets a note with the findings so far."""
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
    """The call paths whose values one device computes for all: in one program, in one order, without an observer."""
    alike = len(modules) > 1 and not isinstance(watch, PathObserver) and all(module is modules[0] for module in modules)
    if not alike or (verdict is not None and len({verdict.orders(device) for device in range(len(modules))}) > 1):
        return frozenset()
    same = tuple(all(value is column[0] for value in column) for column in zip(*arguments, strict=True))
    return memo(modules[0], "shared", same, lambda: shared_sites(modules[0], same))


def modules_of(program: Module | ModuleGroup) -> list[Module]:
    """The program of each device, in the order of the devices."""
    if isinstance(program, Module):
        return [program] * program.num_devices
    return [program.modules[device] for device in sorted(program.modules)]


def checked(program: Module | ModuleGroup, send_buffers: float) -> Verdict:
    """The verdict on the program, computed once for each module; raises Refused where the program is refused."""
    verdict = memo(program, "verdicts", send_buffers, lambda: checking.check(program, send_buffers=send_buffers))
    if verdict.refused:
        is_alone = isinstance(program, Module) and program.num_devices == 1
        is_elsewhere = any(finding.kind in ("invalid_group", "device_out_of_range") for finding in verdict.findings)
        raise Refused(verdict, *([_SEVERAL] if is_alone and is_elsewhere else []))
    return verdict


_SEVERAL = (
    "this program has one device, whose id is 0: xb.Module('name', computation, num_replicas=2) is a program of two, "
    "and xb.execute(module, [[x0], [x1]]) runs it"
)


def check_bytes(module: Module, limits: Limits) -> None:
    """Stop, before the run, a program with a single value that exceeds the limit of bytes."""
    instruction = largest(module.entry)
    if limits.bytes is not None and instruction.shape.bytes > limits.bytes:
        raise Stopped(too_large(instruction, limits.bytes))
    view = vastest(module.entry)
    if view.shape.bytes > MOST_BYTES:
        raise Stopped(too_large(view, MOST_BYTES))


def _ordered(options: Options, verdict: Verdict | None, device: int) -> Options:
    orders = () if verdict is None else verdict.orders(device)
    return evolve(options, orders=orders) if orders else options


def read_all(
    modules: list[Module], rows: list[tuple[Any, ...]], numbers: Sequence[int] | None = None
) -> list[tuple[Any, ...]]:
    """The arguments of each device, converted for its plan; an object that several devices are given is converted once.

    `numbers` are the numbers of the devices, where the rows are not those of all devices.
    """
    known: dict[tuple[int, AnyShape], Any] = {}

    def read_once(value: Any, parameter: Instruction, number: int, device: int) -> Any:
        key = id(value), parameter.shape
        if key not in known:
            known[key] = read(value, parameter.shape, f"argument {number} (%{parameter.name}) of device {device}")
        return known[key]

    found = []
    for device, module, row in zip(numbers or range(len(rows)), modules, rows, strict=True):
        parameters = module.entry.parameters
        if len(row) != len(parameters):
            raise wrong_count(module.entry, len(row), device)
        found.append(tuple(read_once(v, p, n, device) for n, (v, p) in enumerate(zip(row, parameters, strict=True))))
    return found


def _feeds(
    infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None, devices: int
) -> dict[int, Iterator[Any]]:
    items = dict(infeed) if isinstance(infeed, Mapping) else dict(enumerate(infeed or ()))
    if unknown := set(items) - set(range(devices)):
        raise ArgumentError(
            "argument_mismatch", f"infeed for device {min(unknown)}, and the program has {devices} devices"
        )
    return {device: iter(items.get(device, ())) for device in range(devices)}
