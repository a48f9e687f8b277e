"""What a program communicates, and assertions on programs.

Sections:

    The program of a function and its arguments
    What a program communicates
    Assertions
    checked: a decorator
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from attrs import frozen

from shape_inference import Shape, leaves, primitive_type
from shape_inference.escaping import in_line

from ..checking import Verdict, check
from ..core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from ..core.report_text import MOST_ROWS, join_words, more_text
from ..costs import Cost, CostRow, cost
from ..costs.analysis import communication
from ..costs.report import columns, short
from ..files.programs import program_in
from ..linting.rematerialization import find_rematerializations
from ..properties.effects import base_of
from ..properties.mesh import Mesh
from ..sharding.stated_shardings import mesh_of_shardings

Program: TypeAlias = Computation | Module | ModuleGroup


class ContractError(AssertionError):
    """Raised if a contract does not hold; the message states the expected and the actual number."""


class DataDependentWarning(UserWarning):
    """Warns that a program passes `assert_no_deadlock` but hangs on some data; the message is the report."""


# ----------------------------------------------------------------------------
# The program of a function and its arguments


def program_of(target: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Program:
    """The program that XLA compiles for a function of JAX and its arguments, or the program that a target is."""
    if not (arguments or named):
        program = module_in(program_in(target))
        if isinstance(program, Computation | Module | ModuleGroup):
            return program
    if not callable(target):
        kind = type(target).__name__
        raise TypeError(
            f"expected a JAX function with its arguments, or a program without arguments, got {kind}"
            + (f" and {len(arguments) + len(named)} arguments" if arguments or named else "")
        )
    from ..files.jax_functions import compiled_by_jax

    return compiled_by_jax(target, arguments, named)


# ----------------------------------------------------------------------------
# What a program communicates

Unit: TypeAlias = Literal["instructions", "arrays", "executions"]
"""What a contract counts."""

OPS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "ragged_all_to_all",
    "collective_permute",
    "collective_broadcast",
    "send",
    "recv",
)
"""The ops that a contract can name; an asynchronous start counts as its op, and its done does not count."""

_COMBINED = ("all_reduce", "all_gather", "reduce_scatter", "collective_permute", "collective_broadcast")

Count: TypeAlias = int | range | Mapping[str, "int | range"]
"""A number, a range of numbers such as `range(1, 3)` or `at_least(1)`, or either for each mesh axis."""


def at_least(number: int) -> range:
    """Return the range that contains this number and all larger ones, for the counts of `assert_collectives` and
    `assert_ops`.

    >>> 7 in at_least(1), 0 in at_least(1)
    (True, False)

    Source: docs/testing.md.
    """
    return range(number, sys.maxsize)


@frozen
class CollectiveRow:
    """An instruction that communicates: one execution moves `bytes` bytes on a device, in `arrays` arrays, and the
    instruction is executed `times` times.

    `axes` are the mesh axes of its groups, or those along which its pairs of devices differ. If `axes` is empty,
    `where` says which devices take part. `dtypes` lists the names of the element types that the instruction moves,
    such as "bf16". `scope` is the name that the author gave the place (`op_name`), and `line` is the Python line.
    """

    op: str
    name: str
    axes: tuple[str, ...]
    where: str
    dtypes: tuple[str, ...]
    arrays: int
    bytes: int
    times: int
    is_async: bool
    scope: str
    line: str

    def count(self, unit: Unit) -> int:
        return {"instructions": 1, "arrays": self.arrays, "executions": self.times}[unit]


@frozen
class Collectives:
    """The collectives and transfers of a program; a computation precedes the computations that it calls.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[1024])(xb.cross_replica_sum)
    >>> found = xb.testing.collectives(xb.Module("total", total, num_replicas=4))
    >>> found.count("all_reduce"), found.bytes
    (1, 4096)
    >>> print([(each.op, each.where, each.bytes) for each in found])
    [('all_reduce', 'axis a', 4096)]
    """

    items: tuple[CollectiveRow, ...]

    def __iter__(self) -> Iterator[CollectiveRow]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def only(
        self, op: str | None = None, axis: str | None = None, scope: str | None = None, dtype: Any = None
    ) -> Collectives:
        """Return the collectives that match all given conditions: an op, a mesh axis among the axes, a text in the
        scope, and an element type among those moved.
        """
        name = None if dtype is None else primitive_type(dtype).name
        return Collectives(
            tuple(
                each
                for each in self.items
                if (op is None or each.op == op)
                and (axis is None or axis in each.axes)
                and (scope is None or scope in each.scope)
                and (name is None or name in each.dtypes)
            )
        )

    def count(self, op: str | None = None, unit: Unit = "instructions") -> int:
        """Return the number of collectives, of one op or of all."""
        return sum(each.count(unit) for each in self.only(op))

    @property
    def bytes(self) -> int:
        """The bytes that each device contributes, over all executions; a transfer counts at its send."""
        return sum(each.bytes * each.times for each in self.items if each.op != "recv")

    def __str__(self) -> str:
        return "\n".join(self.table())

    def table(self) -> Iterator[str]:
        """Return the lines of the report."""
        if not self.items:
            yield "no collectives"
            return
        heads = ("op", "along", "type", "arrays", "bytes", "times", "instruction", "place")
        rows = [
            (
                each.op.replace("_", "-") + (" (async)" if each.is_async else ""),
                each.where,
                ", ".join(each.dtypes),
                str(each.arrays),
                short(each.bytes, "B"),
                str(each.times),
                in_line(each.name),
                in_line(each.line or each.scope),
            )
            for each in self.items[:MOST_ROWS]
        ]
        yield from (line.rstrip() for line in columns(heads, rows))
        if len(self.items) > MOST_ROWS:
            yield more_text(len(self.items) - MOST_ROWS, "str(xb.cost(...)) lists all", "collective")


def collectives(target: Any, *args: Any, mesh: Mesh | None = None, **kwargs: Any) -> Collectives:
    """List what a program communicates, including asynchronous forms and the collectives in loops, branches and calls.

    `target` is a JAX function, which is compiled for `args` and `kwargs`, or a program. `mesh` names the axes. By
    default they are the axes of the program's shardings, or are inferred from the device groups.
    Raises TypeError if the target is neither a function nor a program, missing_extra if a function is given and JAX is
    not installed, and the same errors as `xb.cost`.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[8])(xb.cross_replica_sum)
    >>> [each.op for each in xb.testing.collectives(xb.Module("total", total, num_replicas=2))]
    ['all_reduce']

    Source: StableHLO, Specification, Distribution.
    """
    return collectives_of(program_of(target, args, kwargs), mesh)


def collectives_of(program: Program, mesh: Mesh | None) -> Collectives:
    """The collectives of a program, of all branches and inside fusions too."""
    rows = communication(program, mesh=mesh or _stated_mesh(program))
    starts = dict.fromkeys(row.instruction.called[0] for row in rows if row.collective is None)
    started = {each for start in starts for called in start.reachable() for each in called.instructions}
    return Collectives(tuple(_collective(row, row.instruction in started) for row in rows if row.collective))


def _stated_mesh(program: Program) -> Mesh | None:
    if not isinstance(program, Module):
        return None
    mesh = mesh_of_shardings(program)
    return mesh if mesh is not None and mesh.num_devices == program.num_devices else None


def _collective(row: CostRow, is_started: bool) -> CollectiveRow:
    assert row.collective is not None
    instruction, (kind, _, names) = row.instruction, row.axis.partition(" ")
    moved = row.collective.moved_along
    along = f" along {'axis' if len(moved) == 1 else 'axes'} {', '.join(moved)}" if moved else ""
    return CollectiveRow(
        op=base_of(instruction),
        name=instruction.name,
        axes=tuple(names.split(", ")) if kind in ("axis", "axes") else moved,
        where=row.axis + along,
        dtypes=_moved_dtypes(instruction),
        arrays=_count_arrays(instruction),
        bytes=row.collective.payload,
        times=row.times,
        is_async=is_started or instruction.opcode.endswith("_start"),
        scope=row.scope,
        line=str(instruction.source or ""),
    )


def _moved_dtypes(instruction: Instruction) -> tuple[str, ...]:
    """The element types that it moves, each once: those of its operands, and of a recv those of its result."""
    op, operands = base_of(instruction), instruction.operands
    if op == "recv":
        moved = [instruction.shape.elements[0]]  # type: ignore[union-attr]
    else:
        moved = [each.shape for each in (operands if op in _COMBINED or op == "all_to_all" else operands[:1])]
    return tuple(dict.fromkeys(a.dtype.name for shape in moved for a in leaves(shape) if isinstance(a, Shape)))


def _count_arrays(instruction: Instruction) -> int:
    """How many arrays it moves: a combined collective moves several, and most parts of an all-to-all are one array."""
    return len(instruction.operands) if base_of(instruction) in _COMBINED else 1


# ----------------------------------------------------------------------------
# Assertions


def assert_no_deadlock(target: Any, *args: Any, strict: bool = False, **kwargs: Any) -> Verdict:
    """Assert that a program cannot hang and is well formed, and return the verdict.

    Unless `strict`, the verdict `depends` also passes: only the shapes of the arguments count, and the data decide. If
    the program then hangs on some data although its host callbacks return, a DataDependentWarning with the report is
    issued. `target`, `args` and `kwargs` are as in `collectives`. Raises ContractError with the report if the verdict
    is `deadlock` or `error` or, with `strict`, `depends`.

    >>> import xbuild as xb
    >>> total = xb.computation(xb.f32[8])(xb.cross_replica_sum)
    >>> xb.testing.assert_no_deadlock(xb.Module("total", total, num_replicas=2)).kind
    'ok'

    Source: docs/checker.md.
    """
    __tracebackhide__ = True
    verdict = check(program_of(target, args, kwargs))
    if verdict.refused or (strict and verdict.kind != "ok"):
        raise ContractError(str(verdict))
    if verdict.may_hang:
        hint = "to fail instead, pass strict=True, or make xbuild.testing.DataDependentWarning an error"
        warnings.warn(f"assert_no_deadlock passes, but {verdict}\n{hint}", DataDependentWarning, stacklevel=2)
    return verdict


def assert_collectives(
    target: Any,
    *args: Any,
    axis: str | None = None,
    scope: str | None = None,
    dtype: Any = None,
    unit: Unit = "instructions",
    others: int | None = None,
    bytes_at_most: int | None = None,
    mesh: Mesh | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **counts: Count,
) -> Collectives:
    """Assert how many collectives a program has and how many bytes they move, and return the counted collectives.

    For each op, `counts` gives a number (`all_reduce=1, all_gather=0`), a range (such as `range(1, 3)` or
    `at_least(1)`), or numbers by mesh axis (such as `all_reduce={"data": 1, "model": 2}`). Ops that are not named are
    not counted; `others=0` asserts that no collectives of other ops exist.

    If `axis` is given, only collectives along that mesh axis are counted; if `scope` is given, only those whose
    `op_name` contains that text; and if `dtype` is given, only those that move that element type (an HLO name such as
    "bf16", or a NumPy or JAX dtype).

    `unit` is the unit of the counts. With "instructions", a start and its done count once. With "arrays", a combined
    all-reduce of three arrays counts three times, as before it was combined. With "executions", a collective in a loop
    counts once per trip. `bytes_at_most` limits the total bytes of all counted executions on a device; splitting and
    combining do not change this total.

    `target` and `args` are as in `collectives`, and `kwargs` are keyword arguments of the function.
    Raises ContractError if a number differs, TypeError for an unknown op, unit or element type, and the same errors as
    `collectives`.

    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[8])(xb.cross_replica_sum), num_replicas=2)
    >>> len(xb.testing.assert_collectives(total, all_reduce=1, others=0, bytes_at_most=32))
    1
    >>> xb.testing.assert_collectives(total, all_reduce=0)
    Traceback (most recent call last):
    xbuild.testing.contracts.ContractError: expected 0 all-reduce instructions, got 1
      op          along   type  arrays  bytes  times  instruction...
      all-reduce  axis a  f32   1       32 B   1      all-reduce...

    Source: StableHLO, Specification, Distribution; XLA, all-reduce-combiner and async collective creation.
    """
    __tracebackhide__ = True
    unknown = [name for name in counts if name not in OPS]
    if unknown:
        raise TypeError(f"assert_collectives: {unknown[0]!r} is not a collective; expected one of {', '.join(OPS)}")
    if unit not in get_args(Unit):
        raise TypeError(f"assert_collectives: unit={unit!r}; expected one of {', '.join(get_args(Unit))}")
    every = collectives_of(program_of(target, args, kwargs or {}), mesh)
    found = every.only(axis=axis, scope=scope, dtype=dtype)
    such = "".join(
        [f" along axis {axis}" * (axis is not None), f" in scope {scope!r}" * (scope is not None)]
        + ([] if dtype is None else [f" of element type {primitive_type(dtype).name}"])
    )
    faults = [fault for op, count in counts.items() for fault in _faults(found.only(op), op, count, unit, such)]
    rest = Collectives(tuple(each for each in found if each.op not in counts))
    if others is not None and rest.count(unit=unit) != others:
        faults.append(f"expected {others} {unit} of other collectives{such}, got {rest.count(unit=unit)}")
    if bytes_at_most is not None and found.bytes > bytes_at_most:
        faults.append(f"expected at most {bytes_at_most:,} bytes in collectives{such}, got {found.bytes:,}")
    if faults:
        raise ContractError("\n".join([join_words(faults), *every.table()]))
    return found


def _faults(found: Collectives, op: str, count: Count, unit: Unit, such: str) -> Iterator[str]:
    """What is wrong with the number of collectives of one op, for each axis if numbers are given by axis."""
    wanted = count if isinstance(count, Mapping) else {None: count}
    for axis, number in wanted.items():
        actual = found.only(axis=axis).count(unit=unit)
        along = f" along axis {axis}" if axis else ""
        yield from count_faults(number, actual, f"{op.replace('_', '-')} {unit}", along + such)


def count_faults(number: int | range, actual: int, plural: str, such: str) -> Iterator[str]:
    """The sentence about a number that is not as expected; none if it is."""
    wanted = number if isinstance(number, range) else range(number, number + 1)
    if not wanted:
        raise TypeError(f"the range for the number of {plural} must not be empty, got {number!r}")
    if actual in wanted:
        return
    is_one = len(wanted) == 1 and wanted[0] == 1
    if len(wanted) == 1:
        expected = str(wanted[0])
    elif wanted.stop == sys.maxsize:
        expected = f"at least {wanted.start}"
    else:
        expected = f"{wanted.start} to {wanted[-1]}"
    yield f"expected {expected} {plural[:-1] if is_one else plural}{such}, got {actual}"


def assert_memory(target: Any, *args: Any, at_most: int, **kwargs: Any) -> Cost:
    """Assert that a device needs at most `at_most` bytes of memory, in the order of the instructions, and return the
    cost.

    This is `xb.cost(...).memory.reserved`: arguments, results and temporaries, placed as XLA places them. A compiler
    that reorders instructions may need less memory. `target`, `args` and `kwargs` are as in `collectives`.
    Raises ContractError, which lists the largest arrays that are live at the peak.

    >>> import xbuild as xb
    >>> twice = xb.computation(xb.f32[256])(lambda x: xb.exp(x) * 2.0)
    >>> xb.testing.assert_memory(twice, at_most=4096).reserved_memory
    3072

    Source: docs/cost.md.
    """
    __tracebackhide__ = True
    found = cost(program_of(target, args, kwargs))
    if found.reserved_memory > at_most:
        largest = sorted(found.memory.alive, key=lambda each: -each.bytes)[:MOST_ROWS]
        rows = [(short(each.bytes, "B"), each.instruction.name, str(each.instruction.source or "")) for each in largest]
        live = f" ({found.peak_memory:,} alive at once)" if found.peak_memory < found.reserved_memory else ""
        first = f"expected at most {at_most:,} bytes of memory, got {found.reserved_memory:,}{live}"
        raise ContractError("\n".join([first, *columns(("bytes", "alive at the peak", "place"), rows)]))
    return found


def assert_flops(target: Any, *args: Any, at_most: int, **kwargs: Any) -> Cost:
    """Assert that a device computes at most `at_most` FLOPs, counted as in `xb.cost`, and return the cost.

    `target`, `args` and `kwargs` are as in `collectives`.
    Raises ContractError, which lists the ops with the most FLOPs.

    >>> import xbuild as xb
    >>> square = xb.computation(xb.f32[8, 8])(lambda x: xb.dot(x, x))
    >>> xb.testing.assert_flops(square, at_most=1024).flops
    1024

    Source: XLA, xla/service/hlo_cost_analysis.cc.
    """
    __tracebackhide__ = True
    found = cost(program_of(target, args, kwargs))
    if found.flops > at_most:
        rows = [(short(each.flops, "FLOP"), each.name, str(each.rows)) for each in found.by("op")[:MOST_ROWS]]
        first = f"expected at most {at_most:,} FLOPs on a device, got {found.flops:,}"
        raise ContractError("\n".join([first, *columns(("FLOPs", "op", "instructions"), rows)]))
    return found


def assert_equivalent(one: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """Assert that two programs compute the same function, up to rounding, and return the verdict.

    `one` and `other` are JAX functions for the same `args`, or programs without `args`; a global program and its
    partitioned form may be in any order. `kwargs` are as in `xb.equivalent`. Raises ContractError with the report
    unless the verdict is `equal`.

    >>> import xbuild as xb
    >>> left = xb.computation(xb.f32[8])(lambda x: (x + 1.0) * (x - 1.0))
    >>> right = xb.computation(xb.f32[8])(lambda x: x * x - 1.0)
    >>> xb.testing.assert_equivalent(left, right).kind
    'equal'

    Source: docs/equivalence.md.
    """
    __tracebackhide__ = True
    from ..running import equivalent

    verdict = equivalent(*(program_of(each, args, {}) for each in (one, other)), **kwargs)
    if not verdict:
        raise ContractError(str(verdict))
    return verdict


def assert_no_rematerialization(target: Any, *args: Any, at_least: int = 0, **kwargs: Any) -> None:
    """Assert that no array is gathered from all devices only to be split again ("involuntary full rematerialization").

    XLA's partitioner inserts such a gather where it cannot reshard an array directly. Arrays smaller than `at_least`
    bytes are ignored. `target`, `args` and `kwargs` are as in `collectives`.
    Raises ContractError, which lists each gather, its slices, the bytes and the lines.

    >>> import xbuild as xb
    >>> xb.testing.assert_no_rematerialization(xb.computation(xb.f32[8])(lambda x: x + 1.0))

    Source: XLA, xla/service/spmd/spmd_partitioner.cc.
    """
    __tracebackhide__ = True
    found = [each for each in find_rematerializations(program_of(target, args, kwargs)) if each.bytes >= at_least]
    if found:
        first = f"{len(found)} array{'s are' if len(found) > 1 else ' is'} gathered only to be split again"
        raise ContractError("\n".join([first, *(f"  {each}" for each in found)]))


# ----------------------------------------------------------------------------
# checked: a decorator

F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    """Check every program that JAX compiles while the function runs, before the program runs.

    Programs that JAX compiled earlier are not compiled again, so they are not checked.
    The function raises `ContractError` with the report instead of running a refused program.

    >>> import jax
    >>> import xbuild as xb
    >>> @xb.testing.checked
    ... def double(x):
    ...     return jax.jit(lambda x: x * 2)(x)
    >>> int(double(4))
    8

    Source: docs/guard.md.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        from .. import guard

        try:
            with guard.active("stop"):
                return function(*args, **kwargs)
        except guard.ProgramRefused as error:
            raise ContractError(str(error)) from None

    return run  # type: ignore[return-value]
