"""`equivalent`: whether two programs compute the same function, whatever the rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import evolve

from shape_inference import XbuildError, refuse
from xbuild.checking.model.program import as_program
from xbuild.core.graph import Module, ModuleGroup, module_in
from xbuild.process.limits import DeadlineError, within
from xbuild.properties.effects import communicates
from xbuild.properties.elementwise import wider
from xbuild.properties.placement import target_of
from xbuild.sharding.stated_shardings import shardings_in_text, with_stated_shardings
from xbuild.sharding.unpartitioned import is_device_form_of, is_per_device_in_part

from ..rules.limits import Limits
from ..runtime.run import Refused
from .comparison import BEYOND_ARITHMETIC, ProgramComparison
from .draws import domains_of
from .layouts import Layouts, ResolvedLayouts, layouts_in_text, own_layouts, resolve_layouts, with_more
from .other_readings import other_readings
from .reduction import LARGE, SmallerPrograms, has_long_loops, reduced, work
from .rules.opaque import RowDims, is_opaque
from .run import Subject
from .unknowns import Constants, pair_unknowns, unpaired, with_parameters
from .variants import with_smaller_extents
from .verdict import NAMES, Equivalence, refusal

MOST_TRIPS = 10_000
"""The trips of a loop after which a run without limits stops: a loop may converge only in floats."""


def equivalent(
    one: Any,
    other: Any,
    *,
    inputs: Layouts = None,
    outputs: Layouts = None,
    arguments: Mapping[int, Any] | None = None,
    domain: Mapping[int, Any] | None = None,
    values: Mapping[str, tuple[str, Any]] | None = None,
    constants: Constants | None = None,
    rowwise: RowDims | None = None,
    reduce_extents: bool | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    names: tuple[str, str] | None = None,
) -> Equivalence:
    """Decide whether two programs compute the same function, up to rounding.

    `one` and `other` are each a Computation, a Module, a ModuleGroup, an object with a `module`, program text, a path,
    or a JAX function that is lowered (for the global program) or compiled (for the program with its shardings). Both
    programs have the same number of devices and get the same inputs, or `one` has one device and the devices of `other`
    hold parts of each array. `inputs` and `outputs` state the layout of each array, in the order of parameters and
    results. A layout is a `Sharding`, a tuple with the slices of the global array for each device, or None if the
    shapes determine it (an array of equal shape is replicated). The default layouts are the `in_shardings` and
    `out_shardings` of `other`, or its specs if it is the program of a shard_map.

    If `one` is the program of each device and `other` is global, they are compared in the other order. Names and
    numbers below always refer to `one` and `other` as given.

    `arguments` gives values for parameters of `one`, by number, where random values are unsuitable (trip counts,
    indices). `domain` gives, for parameters of `one`, by number, the range in which the programs are compared:
    "positive", "nonnegative", "negative", "nonpositive", "nonzero", "unit" (from 0 to 1), or a pair (low, high),
    both ends included. For a tuple parameter, the domain applies to all of its arrays. `limits` applies to each run; by
    default a loop may run 10,000 trips.

    `values` maps the name of an instruction of `one` to the name of the instruction of `other` that should have the
    same value, and to its layout, given as for an input. If the programs differ, the verdict reports the first of these
    values that differs.

    A custom call to an unknown function without effects is treated as a random function of its operands: calls with the
    same target, configuration and extents return equal results for equal operands. `rowwise` maps such targets to the
    dimensions of their first operand and result along which the function maps each row independently. A constant whose
    elements are omitted from the text is an unknown array: `constants` maps its name in `one` to its name in `other`,
    or to the name and a layout; if each program has only one such constant of a shape, the two are paired
    automatically.

    If the elements along a dimension are interchangeable and fewer are enough to decide, large programs are compared at
    smaller extents, which the verdict lists. If `reduce_extents` is true, this applies to programs of any size; if it
    is false, to none.

    The report calls the programs by `names`; without them, by the names of their modules if these differ.

    Both programs are evaluated on random inputs over two 31-bit prime fields at once, without rounding. Floats become
    residues; integers and pred values are unchanged. Functions such as exp become random functions of their operands,
    and maxima and sorts follow a fixed random order. The verdict is true if the programs are equal. docs/equivalence.md
    explains what the verdict decides and what it assumes.

    Raises TypeError if `one` or `other` is not a program, and ArgumentError if an argument does not fit its parameter.
    Raises invalid_attribute if the numbers of devices, the shapes and the layouts are inconsistent. Also raises the
    same errors as `execute` if `one` itself is refused or stops.

    >>> import xbuild as xb
    >>> spec = xb.f32[8]
    >>> left = xb.computation(spec, spec)(lambda x, y: (x + y) * (x - y))
    >>> right = xb.computation(spec, spec)(lambda x, y: x * x - y * y)
    >>> bool(xb.equivalent(left, right))
    True
    >>> xb.equivalent(left, xb.computation(spec, spec)(lambda x, y: x * x + y * y)).kind
    'different'

    Source: Schwartz, Fast probabilistic algorithms for verification of polynomial identities (1980); Zippel (1979).
    """
    one, other = _read_programs(one, other)
    names = names or _names_of(one, other)
    if is_device_form_of(*(getattr(each, "module", each) for each in (one, other))):
        one, other, names = other, one, names[::-1]
        constants = {name: pair for pair, name in (constants or {}).items()}
        values = {name: (own, layout) for own, (name, layout) in (values or {}).items()}
    one, other = _partition_parts(one, other)
    found = _compare(
        one, other, inputs, outputs, arguments or {}, domain or {}, values or {}, constants or {}, rowwise or {},
        reduce_extents, seed, limits or Limits(trips=MOST_TRIPS),
    )  # fmt: skip
    return evolve(found, names=names)


def _names_of(*programs: Any) -> tuple[str, str]:
    one, other = (getattr(getattr(each, "module", each), "name", None) for each in programs)
    return (one, other) if one and other and one != other else NAMES


def _compare(
    one: Any,
    other: Any,
    inputs: Layouts,
    outputs: Layouts,
    arguments: Mapping[int, Any],
    domain: Mapping[int, Any],
    values: Mapping[str, tuple[str, Any]],
    constants: Constants,
    rowwise: RowDims,
    reduce_extents: bool | None,
    seed: int,
    limits: Limits,
) -> Equivalence:
    """The verdict on two programs in the order in which they are compared; the arguments are those of `equivalent`."""
    inputs = own_layouts(other, "in") if inputs is None else inputs
    outputs = own_layouts(other, "out") if outputs is None else outputs
    first = _first(_program_of(one), is_laid=inputs is not None or outputs is not None)
    try:
        second = Subject(_program_of(other))
    except Refused as error:
        return refusal(error.verdict)
    if inputs is None and outputs is None:
        inputs, outputs = layouts_in_text(first, second)
        first = _first(first.program, is_laid=True) if inputs is not None else first
    unknowns = pair_unknowns(first.program, second.program, constants)
    inputs = with_more(inputs, len(first.inputs(0)), [pair.layout for pair in unknowns])
    first = Subject(with_parameters(first.program, [pair.one for pair in unknowns]), rowwise)
    second = Subject(with_parameters(second.program, [pair.other for pair in unknowns]), rowwise)
    _check_rowwise(first, second)
    layouts = resolve_layouts(first, second, inputs, outputs)
    domains = domains_of(first.modules[0].entry.parameters, domain)
    known = unpaired(first.program, second.program)

    def compared(one: Subject, other: Subject, laid: ResolvedLayouts, **given: Any) -> ProgramComparison:
        """The comparison of two programs with the parameters of the given ones."""
        return ProgramComparison(
            one, other, laid, seed=seed, limits=limits, domains=domains,
            unknowns=tuple(unknowns), unpaired=known, **given,
        )  # fmt: skip

    def at(extents: Callable[[Module | ModuleGroup, int], Module | None], number: int) -> ProgramComparison | None:
        programs = extents(first.program, number), extents(second.program, number)
        if None in programs or arguments:
            return None
        try:
            one, two = (Subject(program, first.rowwise) for program in programs)  # type: ignore[arg-type]
            return compared(one, two, resolve_layouts(one, two, inputs, outputs))
        except (Refused, XbuildError):
            return None

    def at_smaller(**given: bool) -> tuple[SmallerPrograms, ProgramComparison] | None:
        """The programs with smaller extents, and their comparison."""
        found = None
        with suppress(DeadlineError), within(limits.seconds):
            found = reduced(first, second, layouts, arguments, **given)
        if found is None:
            return None
        return found, compared(
            found.one, found.other, found.laid,
            arguments=arguments, extents=found.texts, corresponds=found.corresponds,
        )  # fmt: skip

    if reduce_extents is not False and not values and (reduce_extents or work(first) + work(second) > LARGE):
        if first.devices == 1 and all(map(has_long_loops, (first, second))):
            for given, decide in (
                ({"by_trips": True}, ProgramComparison.verdict_by_trips),
                ({"is_search": True}, ProgramComparison.difference),
            ):
                smaller = at_smaller(**given)
                found = None if smaller is None else decide(smaller[1])
                if smaller is not None and found is not None and found.kind != "undecided":
                    return smaller[0].given_verdict(evolve(found, details=smaller[1].details), (first, second))
        smaller = at_smaller()
        if smaller is not None:
            return smaller[0].given_verdict(smaller[1].verdict(), (first, second))
    comparison = compared(
        first,
        second,
        layouts,
        arguments=arguments,
        values=values,
        smaller=partial(at, with_smaller_extents),
        wider=partial(at, wider),
    )
    found = comparison.verdict()
    if found.undecided != (BEYOND_ARITHMETIC,) or values:
        return found
    for read in other_readings(first.program, second.program):
        one, other = (Subject(program, first.rowwise) for program in read.programs)
        again = compared(one, other, layouts, arguments=arguments).verdict()
        if again:
            return read.verdict(comparison.after_float_runs(again))
    return found


def _read_programs(*programs: Any) -> list[Any]:
    """Programs, read from texts, paths or objects of JAX; those that have a module unchanged."""
    return [each if hasattr(each, "module") else module_in(each, is_global=True) for each in programs]


def _partition_parts(one: Any, other: Any) -> tuple[Any, Any]:
    """Both programs; a global program of which a part is per device is partitioned, since only devices can run it.

    The first is partitioned with the shardings of the other's parameters and results, if that is for several devices.
    """
    if not isinstance(one, Module) or not isinstance(other, Module):
        return one, other
    from xbuild.sharding.partition import partition

    if is_per_device_in_part(other):
        other = partition(other).module
    if not is_per_device_in_part(one):
        return one, other
    if other.num_partitions == 1:
        return partition(one).module, other
    return partition(with_stated_shardings(one, *shardings_in_text(other), is_global=True)).module, other


def _check_rowwise(one: Subject, other: Subject) -> None:
    """Refuse a target of rows that no custom call of an unknown function has."""
    every = (*one.instructions(), *other.instructions())
    targets = [*dict.fromkeys(target_of(each) for each in every if is_opaque(each))]
    for target in one.rowwise:
        if target not in targets:
            known = ", ".join(targets) or "none"
            refuse(
                "invalid_attribute",
                f"equivalent: no custom call of an unknown function has the target {target!r}; targets are: {known}",
            )


def _first(program: Module | ModuleGroup, *, is_laid: bool) -> Subject:
    return Subject(_as_one_device(program) if is_laid else program)


def _as_one_device(program: Module | ModuleGroup) -> Module | ModuleGroup:
    """A program of which layouts are given as that of one device: a global program may count partitions already."""
    if isinstance(program, ModuleGroup) or program.num_devices == 1 or communicates(program.entry):
        return program
    return evolve(program, num_replicas=1, num_partitions=1)


def _program_of(given: Any) -> Module | ModuleGroup:
    program = as_program(getattr(given, "module", given))
    if not isinstance(program, Module | ModuleGroup):
        raise TypeError(f"equivalent: expected a Computation, a Module or a ModuleGroup, got {given!r}")
    return program
