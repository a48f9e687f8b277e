"""Which dimensions of two programs have the same elements, as factors of extents that all of them share.

Sections:

    Atoms: the factors of extents that dimensions share
    Which dimensions of a program are the same, and which need their extent
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import Shape, leaves
from shape_inference.elided import ElidedArray
from xbuild.core.callbacks import CALLBACKS
from xbuild.core.graph import Instruction, Module
from xbuild.core.op import opcodes
from xbuild.process.limits import ask
from xbuild.properties.effects import PLAIN_CALLS, start_of
from xbuild.properties.placement import is_same, target_of
from xbuild.properties.sites import reached
from xbuild.sharding.rules import reducer_of, rule_of

from .device_axes import SUMS, groups_along, is_kept, layout_axes, rows_taken
from .layouts import DeviceLayout, ResolvedLayouts, pieces_of
from .rules.opaque import RowDims, function_key, has_rows, is_opaque
from .run import Subject

# ----------------------------------------------------------------------------
# Atoms: the factors of extents that dimensions share.


@define(eq=False)
class Atom:
    """A factor of extents; all dimensions that have it change together. `is_fixed`: it keeps its size.

    `same` is the atom that replaces it, `parts` are the major and the minor factor into which it is split.
    """

    size: int
    is_fixed: bool = False
    same: Atom | None = None
    parts: tuple[Atom, ...] = ()


Factors = list[Atom]
"""The factors of a dimension, the major one first."""


def found(atom: Atom) -> Atom:
    """The atom that stands for all that are the same."""
    while atom.same is not None:
        atom = atom.same
    return atom


def flat(factors: Iterable[Atom]) -> Factors:
    """The factors that are not split any further."""
    every: Factors = []
    for atom in map(found, factors):
        every += flat(atom.parts) if atom.parts else [atom]
    return every


def fix(factors: Iterable[Atom]) -> None:
    """Let the factors keep their sizes."""
    for atom in flat(factors):
        atom.is_fixed = True


def unify(one: Iterable[Atom], other: Iterable[Atom]) -> None:
    """Make the factors of two dimensions of the same extent the same, split as far as that needs; else fix them."""
    left, right = ([atom for atom in flat(each) if atom.size != 1] for each in (one, other))
    if any(atom.size == 0 for atom in (*left, *right)):
        fix([*left, *right])
        return
    while left and right:
        a, b = found(left.pop()), found(right.pop())
        if a is b:
            continue
        if a.size == b.size:
            a.same, b.is_fixed = b, a.is_fixed or b.is_fixed
        elif a.size % b.size == 0:
            left += _split(a, b.size)
            right.append(b)
        elif b.size % a.size == 0:
            right += _split(b, a.size)
            left.append(a)
        else:
            left.append(a)
            right.append(b)
            break
        left, right = flat(left), flat(right)
    fix([*left, *right])


def _split(atom: Atom, minor: int) -> Factors:
    atom.parts = (Atom(atom.size // minor, atom.is_fixed), Atom(minor, atom.is_fixed))
    return [*atom.parts]


def in_units(extents: Sequence[int], bounds: Iterable[int]) -> list[Factors]:
    """Factors of dimensions that are cut at multiples of one number, whose smallest units are interchangeable."""
    unit = gcd(*extents, *bounds)
    atom = Atom(max(unit, 1), unit == 0)
    return [[Atom(extent // max(unit, 1), is_fixed=True), atom] for extent in extents]


# ----------------------------------------------------------------------------
# Which dimensions of a program are the same, and which need their extent.

SAME_ARRAYS = frozenset({
    "tuple", "copy", "opt_barrier", "domain", "all_reduce", "collective_permute", "collective_broadcast",
    "all_reduce_start", "all_reduce_done", "async_update",
})  # fmt: skip
"""Ops whose results have the extents of their operands, array by array."""
STARTS = frozenset({"all_gather_start", "collective_permute_start", "copy_start", "async_start"})
"""Ops whose results are their operands, then the results of the op that they start."""
DONES = frozenset({"all_gather_done", "collective_permute_done", "copy_done", "async_done"})
"""Ops whose results are those of the op that was started."""
_BY_RULE = opcodes(lambda op: op.elements == "same_place") | {
    "broadcast", "transpose", "reshape", "reverse", "pad", "dynamic_slice", "dynamic_update_slice", "gather", "dot",
    "reduce", "sort", "topk", "iota", "constant", "reduce_window", "convolution", "cholesky", "triangular_solve", "fft",
    "bitcast", "bitcast_convert", "batch_norm_inference",
}  # fmt: skip
"""Ops whose sharding rule says which dimensions are the same, element by element."""


@define(eq=False)
class SharedExtents:
    """The factors of the dimensions of all values of two programs.

    `devices` are those of the number of a device of the second program; empty if its devices have no axes.
    """

    rowwise: RowDims
    devices: Factors = field(factory=list)
    dims: dict[tuple[Instruction, int], list[Factors]] = field(factory=dict)
    functions: dict[Any, list[list[Factors]]] = field(factory=dict)

    def of(self, value: Instruction, number: int = 0) -> list[Factors]:
        """The factors of the dimensions of an array of a value, which counts the arrays of a tuple."""
        if (value, number) not in self.dims:
            for place, shape in enumerate(leaves(value.shape)):
                is_fixed = not isinstance(shape, Shape) or shape.is_dynamic
                dims = [[Atom(n, is_fixed)] for n in shape.dims] if isinstance(shape, Shape) else []
                self.dims.setdefault((value, place), dims)
        return self.dims[value, number]

    def arrays(self, value: Instruction) -> list[list[Factors]]:
        """The factors of all arrays of a value."""
        return [self.of(value, number) for number, _ in enumerate(leaves(value.shape))]

    def read(self, module: Module) -> None:
        """Take all instructions of a program."""
        rows = self._read_numbers(module) if self.devices else {}
        for computation in reached(module.entry):
            for each in computation.instructions:
                ask()
                if each in rows:
                    self._take_row(each)
                else:
                    self._read(each)
        for computation in reached(module.entry):
            for each in computation.instructions:
                if each.opcode == "constant":
                    self._fix_places(each)

    def _read_numbers(self, module: Module) -> dict[Instruction, Instruction]:
        """Let the number of a device have the axes along which collectives go, and constants with a row for each.

        Axes keep their extents if anything else depends on the number of a device.
        """
        rows, is_only = rows_taken(module)
        if not is_only or any(is_kept(each) for one in reached(module.entry) for each in one.instructions):
            fix(self.devices)
        for table in dict.fromkeys(rows.values()):
            unify(self.of(table)[0], self.devices)
        return rows

    def _take_row(self, each: Instruction) -> None:
        """A dynamic-slice of the row of the device: the row has the other dimensions of the constant."""
        for given, made in zip(self.of(each.operands[0])[1:], self.of(each)[1:], strict=True):
            if extent_of(given) == extent_of(made):
                unify(given, made)
            else:
                fix([*given, *made])

    def axes(self, each: Instruction) -> Factors | None:
        """The axes along which a collective goes, the major one first; None if it does not go along axes."""
        axes = flat(self.devices)
        extents = [atom.size for atom in axes]
        along = groups_along(each, prod(extents), extents) if axes else None
        return None if along is None else [axes[number] for number in along]

    def _axes_or_fixed(self, each: Instruction, count: int) -> Factors:
        """The axes of a group of so many devices; a number that stays if it does not go along axes."""
        axes = self.axes(each)
        if axes is not None and prod(atom.size for atom in axes) == count:
            return axes
        fix(self.devices)
        return [Atom(count, is_fixed=True)]

    def _same(self, one: Iterable[list[Factors]], other: Iterable[list[Factors]]) -> None:
        for left, right in zip(one, other, strict=True):
            if len(left) != len(right) or any(extent_of(a) != extent_of(b) for a, b in zip(left, right, strict=True)):
                fix(atom for dim in (*left, *right) for atom in dim)
                continue
            for a, b in zip(left, right, strict=True):
                unify(a, b)

    def _fix_all(self, each: Instruction) -> None:
        inner = (value for called in each.called for one in called.reachable() for value in one.instructions)
        for value in (each, *each.operands, *inner):
            fix(atom for array in self.arrays(value) for dim in array for atom in dim)

    def _read(self, each: Instruction) -> None:
        opcode = each.opcode
        if opcode in SUMS:
            axes = self.axes(each)
            fix(self.devices if axes is None else () if adds(each) else axes)
        if opcode == "parameter":
            self.arrays(each)
        elif opcode in SAME_ARRAYS or (is_same(each) and len(each.operands) == 1):
            self._same_leaves(each)
        elif opcode == "get_tuple_element":
            self._same(self.arrays(each), self._element(each))
        elif opcode in STARTS:
            self._start(each)
        elif opcode in DONES:
            first = first_result(each)
            self._same_as_first(self.arrays(each), self.arrays(each.operands[0])[first:], each)
        elif opcode in PLAIN_CALLS:
            self._same_call(each)
        elif opcode == "while":
            for called in each.called:
                self._same(self.arrays(called.parameters[0]), self.arrays(each.operands[0]))
            for value in (each, each.attributes.body.root):
                self._same(self.arrays(value), self.arrays(each.operands[0]))
        elif opcode == "conditional":
            for called, operand in zip(each.called, each.operands[1:], strict=True):
                self._same(self.arrays(called.parameters[0]), self.arrays(operand))
                self._same(self.arrays(called.root), self.arrays(each))
        elif opcode == "all_gather" and len(each.operands) == 1:
            whole, part = self.of(each), self.of(each.operands[0])
            self._split_over_devices(each, whole, part, each.attributes.all_gather_dimension)
        elif opcode == "reduce_scatter" and len(each.operands) == 1:
            whole, part = self.of(each.operands[0]), self.of(each)
            self._split_over_devices(each, whole, part, each.attributes.scatter_dimension)
        elif opcode == "all_to_all" and each.attributes.split_dimension is not None:
            self._exchange(each)
        elif opcode == "scatter" and len(each.operands) == 3:
            self._scatter(each)
        elif opcode == "slice":
            self._sliced(each)
        elif opcode == "concatenate":
            self._concatenated(each)
        elif is_opaque(each) and target_of(each) not in CALLBACKS:
            self._called_unknown(each)
        elif opcode in _BY_RULE and rule_of(each) is not None:
            self._by_rule(each)
        else:
            self._fix_all(each)

    def _same_leaves(self, each: Instruction) -> None:
        given = [array for operand in each.operands for array in self.arrays(operand)]
        if len(given) == len(self.arrays(each)):
            self._same(self.arrays(each), given)
        else:
            self._fix_all(each)

    def _start(self, each: Instruction) -> None:
        """The operands among the results are those given; the others are of the op that is started."""
        given = [array for operand in each.operands for array in self.arrays(operand)]
        arrays = self.arrays(each)
        if each.opcode == "copy_start":
            self._same(arrays[:2], given * 2)
            return
        self._same(arrays[: len(given)], given)
        results = arrays[len(given) :]
        if each.opcode == "async_start":
            (called,) = each.called
            for parameter, array in zip(called.parameters, given, strict=True):
                self._same(self.arrays(parameter), [array])
            roots = self.arrays(called.root)
            self._same(roots, results[: len(roots)])
        elif each.opcode == "all_gather_start":
            for whole, part in zip(results, given, strict=True):
                self._split_over_devices(each, whole, part, each.attributes.all_gather_dimension)
        else:
            self._same_as_first(given, results, each)

    def _same_as_first(self, one: list[list[Factors]], other: list[list[Factors]], each: Instruction) -> None:
        """Make arrays the same as the first of several others."""
        if len(other) < len(one):
            self._fix_all(each)
        else:
            self._same(one, other[: len(one)])

    def _element(self, each: Instruction) -> list[list[Factors]]:
        first = first_leaf(each)
        return [self.of(each.operands[0], first + number) for number, _ in enumerate(leaves(each.shape))]

    def _same_call(self, each: Instruction) -> None:
        (called,) = each.called
        for parameter, operand in zip(called.parameters, each.operands, strict=True):
            self._same(self.arrays(parameter), self.arrays(operand))
        self._same(self.arrays(called.root), self.arrays(each))

    def _split_over_devices(self, each: Instruction, whole: list[Factors], part: list[Factors], along: int) -> None:
        """The dimensions of an array, and of one of the equal parts that devices have of one dimension."""
        count = extent_of(whole[along]) // max(extent_of(part[along]), 1)
        axes = self._axes_or_fixed(each, count)
        for dim, (a, b) in enumerate(zip(whole, part, strict=True)):
            unify(a, [*axes, *b] if dim == along else b)

    def _exchange(self, each: Instruction) -> None:
        """An all-to-all: one dimension loses the axes of the group as its major factors, and one gets them."""
        a, (given, made) = each.attributes, (self.of(each.operands[0]), self.of(each))
        axes = self._axes_or_fixed(each, a.split_count)
        for dim, (before, after) in enumerate(zip(given, made, strict=True)):
            if a.split_dimension == a.concat_dimension == dim:
                rest = [Atom(extent_of(before) // a.split_count)]
                unify(before, [*axes, *rest])
                unify(after, [*axes, *rest])
            elif dim == a.split_dimension:
                unify(before, [*axes, *after])
            elif dim == a.concat_dimension:
                unify(after, [*axes, *before])
            else:
                unify(before, after)

    def _scatter(self, each: Instruction) -> None:
        """Windows of updates go to rows that integers state; if they are added to zeros, updates are terms of a sum."""
        rule = rule_of(each)
        if rule is None:
            self._fix_all(each)
            return
        self._by_rule(each)
        a = each.attributes
        for dim in (*a.scatter_dims_to_operand_dims, *a.inserted_window_dims):
            fix(self.of(each)[dim])
        if is_sum(each):
            return
        updates = self.of(each.operands[2])
        fix(atom for dim in summed(each) for atom in updates[dim])

    def _sliced(self, each: Instruction) -> None:
        a = each.attributes
        for dim, (given, made) in enumerate(zip(self.of(each.operands[0]), self.of(each), strict=True)):
            if extent_of(given) == extent_of(made):
                unify(given, made)
            elif a.strides and a.strides[dim] != 1:
                fix([*given, *made])
            else:
                bounds = a.start_indices[dim], a.limit_indices[dim]
                for side, own in zip((given, made), in_units([extent_of(given), extent_of(made)], bounds), strict=True):
                    unify(side, own)

    def _concatenated(self, each: Instruction) -> None:
        along = each.attributes.dimension
        sides = [self.of(value) for value in (each, *each.operands)]
        for dim in range(len(sides[0])):
            if dim == along:
                every = [side[dim] for side in sides]
                for given, own in zip(every, in_units([extent_of(given) for given in every], ()), strict=True):
                    unify(given, own)
            else:
                for side in sides[1:]:
                    unify(sides[0][dim], side[dim])

    def _called_unknown(self, each: Instruction) -> None:
        """Calls of one unknown function have the same extents; those of rows are the same in operands and results."""
        rows = self.rowwise.get(target_of(each), ())
        arrays = [*self.arrays(each), *(array for operand in each.operands for array in self.arrays(operand))]
        first = arrays[0] if arrays else []
        extents = {dim: extent_of(first[dim]) for dim in rows if dim < len(first)}
        inside = []
        for array in arrays:
            is_mapped = has_rows(tuple(map(extent_of, array)), extents)
            for dim in extents if is_mapped else ():
                unify(first[dim], array[dim])
            inside.append([factors for dim, factors in enumerate(array) if not is_mapped or dim not in extents])
        known = self.functions.setdefault(function_key(each, self.rowwise), inside)
        self._same(known, inside)

    def _by_rule(self, each: Instruction) -> None:
        rule = rule_of(each)
        assert rule is not None
        atoms = [Atom(factor.size) for factor in rule.factors]
        sums = is_sum(each)
        arrays = [array for value in (*each.operands, each) for array in self.arrays(value)]
        for array, maps in zip(arrays, (*rule.operands, *rule.results), strict=True):
            for factors, numbers in zip(array, maps, strict=True):
                given = [atoms[number] for number in numbers]
                kinds = {rule.factors[number].kind for number in numbers}
                if prod(atom.size for atom in given) != extent_of(factors):
                    fix([*factors, *given])
                    continue
                unify(factors, given)
                if not kinds <= ({"pass_through", "reduction"} if sums else {"pass_through"}):
                    fix(atom for atom, n in zip(given, numbers, strict=True)
                        if rule.factors[n].kind not in ("pass_through", "reduction" if sums else ""))  # fmt: skip
        if each.opcode == "iota":
            fix(self.of(each)[each.attributes.iota_dimension])
        if each.opcode == "dynamic_update_slice":
            for given, update in zip(*map(self.of, each.operands[:2]), strict=True):
                if extent_of(given) != extent_of(update):
                    fix([*given, *update])

    def _fix_places(self, constant: Instruction) -> None:
        """Fix the factors along which the elements of a constant differ."""
        literal = constant.attributes.literal
        if isinstance(literal, ElidedArray) or not isinstance(constant.shape, Shape):
            return self._fix_all(constant)
        factors = [atom for dim in self.of(constant) for atom in flat(dim)]
        array = np.asarray(literal).reshape([atom.size for atom in factors])
        for axis, atom in enumerate(factors):
            first = np.take(array, [0], axis) if atom.size else array
            if not bool(np.all((array == first) | ((array != array) & (first != first)))):
                atom.is_fixed = True
        return None

    def match(self, one: Subject, other: Subject, laid: ResolvedLayouts) -> None:
        """Make dimensions of the arguments and results of both programs the same, by the layouts on the devices."""
        sides = [entry_arrays(self, subject) for subject in (one, other)]
        for layouts, left, right in zip((laid.inputs, laid.outputs), *sides, strict=True):
            if layouts is None:
                self._same(left, right)
                continue
            for layout, whole, local in zip(layouts, left, right, strict=True):
                if layout.sums is not None:
                    fix(self.devices)
                for dim, (a, b) in enumerate(zip(whole, local, strict=True)):
                    self._match_layout(layout, dim, a, b)

    def _match_layout(self, layout: DeviceLayout, dim: int, whole: Factors, local: Factors) -> None:
        axes = flat(self.devices)
        along = layout_axes(layout, dim, extent_of(local), [atom.size for atom in axes]) if axes else None
        if along is not None and extent_of(whole) == extent_of(local) * prod(axes[axis].size for axis in along):
            unify(whole, [*(axes[axis] for axis in along), *local])
            return
        fix(self.devices)
        rows = [pieces_of(part[dim]) for part in layout.parts]
        sizes = {layout.sizes(device)[dim] for device in range(len(rows))}
        bounds = [end for row in rows for each in row for end in (each.start, each.stop)]
        if sizes != {extent_of(local)}:  # padded
            fix([*whole, *local])
        elif sizes == {extent_of(whole)}:
            unify(whole, local)
        else:
            for side, own in zip((whole, local), in_units([extent_of(whole), extent_of(local)], bounds), strict=True):
                unify(side, own)


def entry_arrays(shared: SharedExtents, subject: Subject) -> tuple[list[list[Factors]], list[list[Factors]]]:
    entry = subject.modules[0].entry
    parameters = [(value, n) for value in entry.parameters for n, _ in numbered_arrays(value)]
    return [shared.of(*each) for each in parameters], [shared.of(entry.root, n) for n, _ in numbered_arrays(entry.root)]


def numbered_arrays(value: Instruction) -> list[tuple[int, Shape]]:
    """The arrays of a value with their numbers among its leaves."""
    return [(n, leaf) for n, leaf in enumerate(leaves(value.shape)) if isinstance(leaf, Shape)]


def first_leaf(element: Instruction) -> int:
    """The number of the first leaf of an element among those of its tuple."""
    shapes: Any = element.operands[0].shape
    return sum(len([*leaves(shape)]) for shape in shapes.elements[: element.attributes.index])


def first_result(done: Instruction) -> int:
    """The number of the first array that the value of a start has of the op that it starts."""
    start = start_of(done)
    if start is None or start.opcode == "copy_start":
        return 0
    return sum(len([*leaves(operand.shape)]) for operand in start.operands)


def extent_of(factors: Factors) -> int:
    return prod(atom.size for atom in map(found, factors))


def is_sum(each: Instruction) -> bool:
    """Whether an instruction sums over dimensions that it removes: a dot, or a reduction or scatter that adds to 0."""
    if not isinstance(each.shape, Shape) or each.shape.dtype.kind == "pred":
        return False
    if each.opcode not in ("reduce", "scatter"):
        return each.opcode == "dot"
    if len(each.operands) != (2 if each.opcode == "reduce" else 3) or not adds(each):
        return False
    start = each.operands[1 if each.opcode == "reduce" else 0]
    while start.opcode in ("convert", "copy", "broadcast"):
        start = start.operands[0]
    literal = start.attributes.literal if start.opcode == "constant" else None
    return literal is not None and not isinstance(literal, ElidedArray) and bool(np.all(np.asarray(literal) == 0))


def adds(each: Instruction) -> bool:
    """Whether the computation that an instruction applies to elements adds numbers."""
    return reducer_of(each.attributes.to_apply) == "add" and each.shape.dtype.kind != "pred"  # type: ignore[union-attr]


def terms_of(each: Instruction) -> Instruction:
    """The operand of whose dimensions a sum goes over some."""
    return each.operands[2 if each.opcode == "scatter" else 0]


def summed(each: Instruction) -> tuple[int, ...]:
    """The dimensions of the terms over which a sum goes."""
    a = each.attributes
    if each.opcode == "scatter":
        return tuple(dim for dim in range(terms_of(each).shape.rank) if dim not in a.update_window_dims)  # type: ignore[union-attr]
    return a.lhs_contracting_dims if each.opcode == "dot" else a.dimensions  # type: ignore[no-any-return]
