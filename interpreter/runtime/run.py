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
from xbuild.checking.model.program import as_module, grid_of, runnable
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.core.memos import memo, remembered
from xbuild.process.recursion_limit import SHALLOW, depth, room_for_calls

from ..compiler.emit import Options
from ..compiler.plan import plan_of
from ..compiler.sharing import CallPath, Pool, shared_sites
from ..custom_calls import check_targets
from ..kernels.values import Given, by_device, feeds_by_device, read, wrong_count
from ..rules.denormals import HAS_MODE, Denormals, is_flush
from ..rules.limits import Limits, unlimited
from ..strict import Ledger, StrictFailure, check_promises
from .driver import drive
from .estimates import check_bytes, check_time
from .grid import Grid
from .observers import AnyObserver, MarkObserver, PathObserver, Watching, watching
from .quick import Quick, is_quick
from .replica import Device


class Refused(Harmless):
    """Raised where the check before the run refuses a program; `verdict` has the findings."""

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
    """Run a computation on one device; the result is an array, a NumPy scalar for rank 0, or a tuple of these.

    `arguments`: one for each parameter, an array of its shape and element type, or Python numbers and nested lists,
    which are converted to the element type; for a tuple parameter, a tuple. Arrays of the types that NumPy gives Python
    numbers are converted as well: float64 is rounded to a float type, complex128 to a complex type, and int64 becomes
    any type that holds each of its numbers. Other types, and numbers that would be lost, are refused.

    `seed`: the seed of the random numbers, an integer. `sequential`: every fold takes one element after the other, in
    order. `observer`: called with the step, the device, the instruction and the value of each instruction. `limits`:
    trips of loops, seconds and bytes (`Limits`). `strict` and `denormals` are explained at `execute`.

    Raises TypeError for anything but a Computation, ArgumentError where an argument does not fit its parameter, Refused
    where the check refuses the computation, Stopped where a limit is reached or a registered function raises, and
    StrictFailure at the end of a strict run with findings.

    >>> import xbuild as xb
    >>> evaluate(xb.computation(xb.f32[3])(lambda x: x * 2.0), [1.0, 2.0, 3.0])
    array([2., 4., 6.], dtype=float32)

    Source: Operation Semantics, which defines the value of each op.
    """
    if not isinstance(computation, Computation):
        raise TypeError(f"evaluate: {_described(computation)} is no Computation; {_WAYS}")
    flush = denormals == "flush" or is_flush(denormals)
    if observer is None and limits is None and not strict and not sequential and unlimited() and (flush or HAS_MODE):
        quick = _quick(computation)
        if quick is not None and len(quick.wanted) == len(arguments):
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
    module = as_module(computation)
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
    """Check a program, then run it on all its devices; the result is a list with the value of each device.

    `program`: a Computation is the program of one device. `inputs`: for each device a list of its arguments, as
    `evaluate` takes them, in the order of the devices or by number; device = replica * num_partitions + partition.
    A value is an array of the shape of the root, a NumPy scalar for rank 0, or a tuple of these. The result is the same
    on any number of cores.

    `infeed`: for each device an iterable of items, each of the shape of the infeed that takes it. `outfeed`: called
    with the device and the item of each outfeed. `send_buffers`: the number of sends of a channel that go on before
    their recvs are posted. `seed`: the seed of the random numbers, from which each device draws its own. `sequential`:
    every fold takes one element after the other, in order. `observer`: called with the step, the device, the
    instruction and the value of each instruction. `limits`: trips of loops, seconds and bytes (`Limits`). `check`:
    whether the program is checked for deadlock before the run.

    `denormals` is "flush", as on XLA:CPU, or "keep", as in IEEE 754. Where they are flushed, arithmetic takes denormal
    operands as zeros of their sign and gives such zeros for denormal results; ops that only move elements keep them.
    Denormal numbers of f16 and smaller types are kept in both modes, since these types are computed in f32. Functions
    of the user (custom calls, observers, infeeds) run in the mode that the calling thread had.

    Each op rounds its result, with one exception, as on XLA:CPU: where a sum or difference of f32 or f64 arrays has one
    product as an operand and is only compared, for a reduction, the product is not rounded
    (`interpreter/compiler/contraction.py`).

    `strict` checks every value, and leaves the results as they are. At the end, StrictFailure is raised where there are
    findings, with `findings` and `results`. A finding is: an index that was clamped, or an update that was dropped; a
    conversion out of range; an integer division by zero, or of the least number by -1; a shift by at least the width; a
    NaN or infinity that no contributing element has; an element that was never given a value; a broken promise about
    indices; parameters that differ although `parameter_replication` or `sharding` promises that they are equal; values
    that differ where a type on a mesh says that they are equal. Overflow of integers in +, - and * is defined, and no
    finding. Computations of map, reduce, sort and the like are checked while they run, on whole arrays; those that are
    one known op, and collectives, are checked by their results. A strict run takes about twice the time for elementwise
    ops of floats, up to five times for divisions and shifts of integers, and a tenth more for matrix products; without
    `strict` there is no cost.

    Raises Refused where the check refuses the program, Stopped where no device can go on, a limit is reached or a
    registered function raises, ArgumentError where an input does not fit, StrictFailure as above, and BuildError where
    calls are nested more than 500 deep.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    >>> execute(xb.Module("total", total, num_replicas=2), [[[1.0, 2.5]], [[3.0, 5.25]]])
    [array([4.  , 7.75], dtype=float32), array([4.  , 7.75], dtype=float32)]

    Source: Operation Semantics, which defines the value of each op; for denormal numbers and rounding, XLA:CPU.
    """
    program, flush = runnable(program), is_flush(denormals)
    assert not isinstance(program, Computation)
    with room_for_calls({module.entry for module in modules_of(program)}):
        limits = limits or Limits()
        verdict = checked(program, send_buffers) if check else None
        modules = modules_of(program)
        check_targets(modules)
        rows = by_device(inputs, [len(each.entry.parameters) for each in modules])
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
            grid = Grid(devices, feeds_by_device(infeed, len(devices)), outfeed, send_buffers, grid_of(program))
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
