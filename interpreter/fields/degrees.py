"""Degrees of values, and the probability of a wrong verdict that follows from them.

Each value is a quotient of polynomials in the inputs and in the values of random functions.

Sections:

    Degrees of quotients of polynomials, and of nested tuples of them
    Bounds on degrees
    The probability of a wrong verdict, and the number of draws that a verdict needs
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from math import ceil, log2, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Dims, Shape
from shape_inference import leaves as arrays_of
from shape_inference.trees import flatten
from xbuild.core.graph import Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import LOOPS, MEETS, PLAIN_CALLS
from xbuild.properties.placement import is_same
from xbuild.properties.sites import reached

from ..compiler.lines import Path
from .rules.evaluation import is_float, touches_floats
from .rules.functions import NAMES
from .rules.lapack import ROUTINES, SOLVES
from .rules.opaque import is_opaque
from .rules.places import known

# ----------------------------------------------------------------------------
# Degrees of quotients of polynomials, and of nested tuples of them

Coordinate: TypeAlias = tuple[int, int]
"""A dimension of an array, and how many places along it count as one: (d, 4) counts a place i along d as i // 4."""
ALL: Coordinate = (-1, 1)
"""Any place along a dimension of a family."""
_MANY = 512
"""From so many families on they count as the product of all families so far."""


class Family(NamedTuple):
    """Polynomials that are in the denominators of an array: how often each counts, and the degree of each.

    `extents` are those of the array of the family. `along` says for each of its dimensions which places an element has
    in its denominator: the one place that follows from that of the element along one dimension, or all.
    """

    times: int
    weight: int
    extents: Dims = ()
    along: tuple[Coordinate, ...] = ()

    @property
    def total(self) -> int:
        """The degree of what an element has of the family in its denominator."""
        places = (extent for extent, at in zip(self.extents, self.along, strict=True) if at == ALL)
        return self.times * self.weight * prod(places)


@frozen
class Degree:
    """The degree of the numerator of each element of an array, over the product of its families.

    A family that counts negatively is a factor of the numerators. An element may have more of a family in its
    denominator than it needs; then its numerator has it too.
    """

    numerator: int = 0
    families: Mapping[Any, Family] = field(factory=dict)

    @property
    def total(self) -> int:
        """The degree of numerator and denominator together."""
        return self.numerator + sum(abs(family.total) for family in self.families.values())


Tree: TypeAlias = Degree | tuple["Tree", ...]
"""The degree of an array, or those of the elements of a tuple; a tuple may have one for all its elements."""
Moves: TypeAlias = Callable[[Coordinate, int], Coordinate]
"""The coordinate of an element of a result that says which of so many places of an operand it comes from."""


def joined(degrees: Iterable[Degree]) -> Degree:
    """The degree of sums of elements at the same place of several arrays, and of choices."""
    each = list({id(degree): degree for degree in degrees}.values())
    if len(each) == 1:
        return each[0]
    targets: dict[Any, Family] = {}
    for key in dict.fromkeys(key for degree in each for key in degree.families):
        several = [degree.families[key] for degree in each if key in degree.families]
        along = _common(several)
        times = max(family.times for family in several)
        if len(several) < len(each) or any(family.along != along for family in several):
            times = max(times, 0)
        targets[key] = Family(times, max(family.weight for family in several), several[0].extents, along)
    numerator = max((_numerator_over(degree, targets) for degree in each), default=0)
    return Degree(numerator, {key: target for key, target in targets.items() if target.times})


def _common(several: Sequence[Family]) -> tuple[Coordinate, ...]:
    """The places of all of these that an element may have."""
    first = several[0].along
    if all(family.along == first for family in several):
        return first
    return tuple(ats[0] if len({*ats}) == 1 else ALL for ats in zip(*(f.along for f in several), strict=True))


def _numerator_over(degree: Degree, targets: Mapping[Any, Family]) -> int:
    """The degree of the numerators over other denominators, which have what these have."""
    own = sum(family.total for family in degree.families.values())
    return degree.numerator + sum(target.total for target in targets.values()) - own


def joined_trees(one: Tree, other: Tree) -> Tree:
    """The degrees of the elements of what is one of two values."""
    if isinstance(one, Degree) and isinstance(other, Degree):
        return joined([one, other])
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(joined_trees(*pair) for pair in zip(one, other, strict=True))
    return of_any([one, other])


def of_any(trees: Iterable[Tree]) -> Degree:
    """The degree of an array that has elements of several others."""
    leaves = [leaf for tree in trees for leaf in flatten(tree)]
    return leaves[0] if len(leaves) == 1 else joined(map(spread, leaves))


def multiplied(degrees: Iterable[Degree]) -> Degree:
    """The degree of products of elements at the same place of several arrays."""
    each = list(degrees)
    numerator, families = sum(degree.numerator for degree in each), dict[Any, Family]()
    for key in dict.fromkeys(key for degree in each for key in degree.families):
        several = [degree.families[key] for degree in each if key in degree.families]
        along, weight, times = _common(several), max(family.weight for family in several), 0
        for family in several:
            wider = family._replace(along=along, weight=weight)
            if family.along == along or family.times > 0:
                times += family.times
                numerator += max(wider.total - family.total, 0)
            else:
                numerator -= family.total
        if times:
            families[key] = Family(times, weight, several[0].extents, along)
    return Degree(numerator, families)


def moved(degree: Degree, to: Moves) -> Degree:
    """The degree of an array whose elements are those of another, or sums of them."""
    numerator, families = degree.numerator, dict[Any, Family]()
    for key, family in degree.families.items():
        along = tuple(
            at if at == ALL else to(at, extent) for at, extent in zip(family.along, family.extents, strict=True)
        )
        there = family._replace(along=along)
        if family.times < 0 and there.total != family.total:
            numerator -= family.total
            continue
        numerator += there.total - family.total
        families[key] = there
    return Degree(numerator, families)


def spread(degree: Degree) -> Degree:
    """The degree of elements, or sums of elements, from any places of an array."""
    return moved(degree, lambda at, extent: ALL) if any(f.extents for f in degree.families.values()) else degree


def inverted(degree: Degree, key: Any, extents: Dims = (), along: tuple[Coordinate, ...] = ()) -> Degree:
    """The degree of inverses, each over its numerator: a family of polynomials with that key."""
    turned = {other: family._replace(times=-family.times) for other, family in degree.families.items()}
    if not degree.numerator:
        return Degree(0, turned)
    return Degree(0, turned | {key: Family(1, degree.numerator, extents, along)})


def repeated(degree: Degree, count: int) -> Degree:
    """The degree of products of `count` factors."""
    powers = {key: family._replace(times=family.times * count) for key, family in degree.families.items()}
    return Degree(degree.numerator * count, powers)


# ----------------------------------------------------------------------------
# Bounds on degrees
#
# Each value is a quotient of polynomials in the inputs and in the values of random functions.

Key: TypeAlias = tuple[int, ...]
"""A device, and the ids of the instructions of a call path."""

EVERY = object()
"""The key of the product of all families."""
MOST_NUMBERS = 1 << 14
"""The largest array whose numbers are looked at."""
MOST_EXPONENTS = 64
"""The largest array whose numbers are kept as exponents."""

RANDOM = frozenset({
    *NAMES, "tan", "power", "remainder", "atan2", "exponential_minus_one", "log_plus_one", "cholesky",
    "triangular_solve", "fft", "rng", "bitcast_convert", "stochastic_convert",
})  # fmt: skip
"""Ops whose values are those of a random function, a new variable for each."""

OF_EXPONENTIALS = frozenset({"logistic", "tanh", "cosh", "sinh"})
"""Functions that are quotients of exponentials."""
_PRODUCTS = frozenset({"multiply", "dot", "convolution", "ragged_dot", "scaled_dot"})
_STATISTICS = frozenset({"batch_norm_training", "batch_norm_inference", "batch_norm_grad"})
_MULTIPLYING = frozenset({"multiply", "divide", "power", *OF_EXPONENTIALS})
_FUNCTION = {"sqrt": "rsqrt", "log_plus_one": "log", "exponential_minus_one": "exponential", "tan": "sine"}
_REPEATING = ("broadcast", "reshape", "transpose", "convert", "negate", "copy", "exponential", "rsqrt", "sqrt")
_PASSING = frozenset({"copy", "opt_barrier", "domain"})
_FROM_ELSEWHERE = opcodes(lambda op: op.half == "done")
_FOLDS = opcodes(lambda op: op.calls in ("elements", "reducer"))


def watched(modules: Iterable[Module]) -> frozenset[Instruction]:
    """The divisors and exponents of programs, at whose numbers their degrees look."""
    found = {computation for module in modules for computation in reached(module.entry)}
    return frozenset(
        i.operands[1] for computation in found for i in computation.instructions if i.opcode in ("divide", "power")
    )


@define(eq=False)
class Degrees:
    """The degrees of all values of all devices, as they are observed.

    `most` is the largest, and `largest` those of numerators and denominators; `random` counts the variables of each
    random function, which are elements of its results; `operands` has the largest degree of what each is applied to.
    What comes from another device by a channel, or from a start, counts as the largest so far. `watched` are the
    instructions whose numbers are looked at. `by_laws`: whether functions that are quotients of exponentials are read
    so. `families` has the degree of each family, and `every` that of their product. `renewed` has, for the call paths
    of loops of which a few trips are evaluated, the places of the state that are new variables at each trip, and those
    that are after the loop.
    """

    watched: frozenset[Instruction]
    by_laws: bool = False
    renewed: Mapping[tuple[int, ...], tuple[Sequence[int], Sequence[int]]] = field(factory=dict)
    found: dict[Key, Tree] = field(factory=dict)
    calls: dict[Any, Tree] = field(factory=dict)
    met: dict[Any, Degree] = field(factory=dict)
    exponents: dict[Key, tuple[float, float]] = field(factory=dict)
    numbers: dict[Key, tuple[Any, Dims, tuple[Coordinate, ...]]] = field(factory=dict)
    devices: set[int] = field(factory=set)
    families: dict[Any, int] = field(factory=dict)
    every: int = 0
    largest: tuple[int, int] = 1, 0
    most: int = 1
    random: Counter[str] = field(factory=Counter)
    operands: Counter[str] = field(factory=Counter)

    def observe(self, device: int, path: Path, trips: tuple[int, ...], value: Any) -> None:
        """Take the value of an instruction, after those of its operands."""
        instruction = path[-1].instruction
        key = (device, *(id(place.instruction) for place in path))
        self.devices.add(device)
        if not is_float(instruction.shape):
            self.found[key] = Degree()
            return
        degree = self._with_few_families(self._degree(instruction, path, key, trips))
        if instruction in self.watched:
            self._note(key, np.asarray(value))
        self.found[key] = degree
        for leaf in flatten(degree):
            totals = [family.total for family in leaf.families.values()]
            above, below = leaf.numerator - sum(t for t in totals if t < 0), sum(t for t in totals if t > 0)
            self.largest = max(self.largest[0], above), max(self.largest[1], below)
            self.most = max(self.most, above + below)

    def exceeds(self, most: int, device: int, path: Path) -> bool:
        """Whether the degree of the last value of an instruction is larger."""
        tree = self.found[device, *(id(place.instruction) for place in path)]
        return isinstance(tree, Degree) and tree.total > most

    def restart(self, device: int, path: Path) -> None:
        """Take the last value of an instruction as new variables."""
        self.found[device, *(id(place.instruction) for place in path)] = Degree(1)

    def _with_few_families(self, tree: Tree) -> Tree:
        """The same degrees, over the product of all families so far where there are many."""
        if isinstance(tree, tuple):
            found = tuple(map(self._with_few_families, tree))
            return tree if all(map(operator.is_, found, tree)) else found
        for key, family in tree.families.items():
            size = family.weight * prod(family.extents)
            if key is not EVERY and size > self.families.get(key, 0):
                self.every += size - self.families.get(key, 0)
                self.families[key] = size
        if len(tree.families) <= _MANY:
            return tree
        times = [family.times for key, family in tree.families.items() if key is not EVERY]
        most = max(0, *times) + (max(tree.families[EVERY].times, 0) if EVERY in tree.families else 0)
        own = sum(family.total for family in tree.families.values())
        return Degree(tree.numerator + most * self.every - own, {EVERY: Family(most, self.every)} if most else {})

    def _note(self, key: Key, value: Any) -> None:
        """Keep which numbers an array has, and of few known ones the least and the largest, which may be exponents."""
        if value.dtype != np.uint64 or not 0 < value.size <= MOST_NUMBERS:
            return
        numbers, along = value, list[Coordinate]()
        for dim in range(value.ndim):
            first = numbers.take([0], dim)
            if (numbers == first).all():
                numbers = first
            else:
                along.append((dim, 1))
        extents = tuple(n for n in numbers.shape if n > 1)
        self.numbers[key] = (extents, hash(numbers.tobytes())), extents, tuple(along)
        if value.size <= MOST_EXPONENTS:
            reals = known(value)
            if np.isfinite(reals).all():
                self.exponents[key] = float(reals.min()), float(reals.max())

    def _trees(self, outer: Key, operands: Iterable[Instruction]) -> list[Tree]:
        return [self.found.get((*outer, id(operand))) or self._unknown((outer, operand)) for operand in operands]

    def _degree(self, instruction: Instruction, path: Path, key: Key, trips: tuple[int, ...]) -> Tree:
        outer, opcode = key[:-1], instruction.opcode
        if opcode == "parameter":
            return self._parameter(instruction, path, outer, trips)
        trees = self._trees(outer, instruction.operands)
        if opcode == "tuple":
            return tuple(trees)
        if opcode == "get_tuple_element":
            return trees[0][instruction.attributes.index] if isinstance(trees[0], tuple) else trees[0]
        if (opcode in _PASSING or is_same(instruction)) and len(trees) == 1:
            return trees[0]
        operands = [of_any([tree]) for tree in trees]
        if opcode in MEETS:
            return self._folded(instruction, [self._on_all_devices(instruction, outer, trips)])
        if opcode in _FROM_ELSEWHERE:
            return self._unknown((key, trips))
        if is_random(instruction):
            return self._random(instruction, operands, (key, trips))
        if instruction.called and opcode not in _FOLDS:
            return self._called(instruction, trees, key)
        return self._plain(instruction, operands, (key, trips))

    def _on_all_devices(self, instruction: Instruction, outer: Key, trips: tuple[int, ...]) -> Degree:
        """The degree of the operands of a collective on any device that is known; computed once for all of these."""
        place = *outer[1:], id(instruction), trips, len(self.devices)
        if place not in self.met:
            trees = [
                [self.found.get((d, *outer[1:], id(operand))) for operand in instruction.operands] for d in self.devices
            ]
            if any(None in several for several in trees):  # devices run several programs
                return self._unknown(place)
            self.met[place] = joined(of_any(tree for tree in several if tree is not None) for several in trees)
        return self.met[place]

    def _unknown(self, key: Any) -> Degree:
        """The degree of any value so far."""
        return Degree(self.largest[0], {key: Family(1, self.largest[1])} if self.largest[1] else {})

    def _plain(self, instruction: Instruction, operands: list[Degree], key: Any) -> Degree:
        opcode = instruction.opcode
        if opcode == "multiply":
            return multiplied(operands)
        if opcode == "dot":
            return _of_dot(instruction, operands)
        if opcode in _PRODUCTS:
            return multiplied(map(spread, operands))
        if opcode == "divide":
            return multiplied([operands[0], self._inverse(instruction, operands[1], key)])
        if opcode == "sqrt":
            self._drawn(instruction, operands)
            return inverted(Degree(1), key, *_varying(instruction.operands[0]))
        if opcode in _STATISTICS:
            found = repeated(multiplied([*map(spread, operands), Degree(1)]), 3)
            self._draw("rsqrt", _size(instruction.operands[1]), found)
            return found
        return self._folded(instruction, operands)

    def _inverse(self, instruction: Instruction, divisor: Degree, key: Any) -> Degree:
        """The degree of inverses; those of the same numbers have one denominator, wherever they are computed."""
        by = instruction.operands[1]
        noted = self.numbers.get((*key[0][:-1], id(by)))
        divisor = repeated(divisor, 2) if _is_complex(instruction) else divisor
        return inverted(divisor, *(noted or (key, *_varying(by))))

    def _folded(self, instruction: Instruction, operands: list[Degree]) -> Degree:
        """The degree of a fold: by sums and choices the largest, else as if all elements were multiplied."""
        inside = [each for called in instruction.called for each in called.instructions]
        count = max(map(_size, instruction.operands), default=1) * max(len(self.devices), 1)
        if instruction.opcode in _FOLDS | MEETS and any(map(_multiplies, instruction.called)):
            found = repeated(joined([*map(spread, operands), Degree(1)]), 1 + count * len(inside))
        else:
            found = joined(moved(degree, _moves(instruction, number)) for number, degree in enumerate(operands))
        for each in inside:
            if each.opcode in RANDOM or each.opcode == "sqrt":
                self._draw(each.opcode, count, found)
        return found

    def _random(self, instruction: Instruction, operands: list[Degree], key: Any) -> Degree:
        self._drawn(instruction, operands)
        if instruction.opcode == "tan":
            self._draw("cosine", distinct(instruction.operands[0]), joined(operands))
        if instruction.opcode == "tan" or (self.by_laws and instruction.opcode in OF_EXPONENTIALS):
            return joined([inverted(Degree(1), key, *_varying(instruction.operands[0])), Degree()])
        if instruction.opcode != "power":
            return Degree(1)
        low, high = self.exponents.get((*key[0][:-1], id(instruction.operands[1])), (0.0, 0.0))
        terms = [repeated(operands[0], max(int(high), 0)), Degree(2 + operands[0].total)]
        if low != int(low) or high != int(high):  # with a square root, which is an inverse
            terms.append(multiplied([*terms[:1], inverted(Degree(1), (key, "root"), *_varying(instruction))]))
        if low < 0:
            terms.append(inverted(repeated(operands[0], int(-low) + 1), key, *_varying(instruction)))
        return joined(terms)

    def _drawn(self, instruction: Instruction, operands: list[Degree]) -> None:
        """Count the variables of a random function: one for each element of the operand that may be distinct."""
        count = distinct(instruction.operands[0]) if len(instruction.operands) == 1 else _size(instruction)
        count = 1 if is_opaque(instruction) else count  # of all elements of the operands together
        self._draw(instruction.opcode, count, joined(operands))

    def _draw(self, opcode: str, count: int, operand: Degree) -> None:
        name = _FUNCTION.get(opcode, opcode)
        self.random[name] += count
        self.operands[name] = max(self.operands[name], operand.total)

    def _parameter(self, instruction: Instruction, path: Path, outer: Key, trips: tuple[int, ...]) -> Tree:
        if len(path) == 1:
            return Degree(1)
        caller, number = path[-2], int(instruction.attributes.number)
        operands = self._trees(outer[:-1], caller.instruction.operands)
        if caller.branch is not None:
            return operands[int(caller.branch) + 1]
        if caller.instruction.opcode in PLAIN_CALLS and number < len(operands):
            return operands[number]
        if caller.instruction.opcode == "while":
            before = None if trips[-1] == 1 else self._root(caller.instruction.attributes.body, outer)
            return _renewed(before or operands[0], self.renewed.get(outer[1:], ((), ()))[0])
        if caller.instruction.opcode in LOOPS:
            operands += [each for one in caller.instruction.called if (each := self._root(one, outer)) is not None]
        return of_any(operands)

    def _root(self, computation: Any, outer: Key) -> Tree | None:
        return self.found.get((*outer, id(computation.root)))

    def _called(self, instruction: Instruction, operands: list[Tree], key: Key) -> Tree:
        if instruction.opcode == "scan":  # its outputs are of every trip
            return self._unknown(key)
        same = key[:-1], instruction.called, instruction.operands
        roots = [found for callee in instruction.called if (found := self._root(callee, key)) is not None]
        if not roots:  # the walk took the result of an earlier call
            return self.calls.get(same) or self._unknown(key)
        if instruction.opcode == "while" and key[1:] in self.renewed:
            body = self._root(instruction.attributes.body, key)
            return _renewed(body or operands[0], self.renewed[key[1:]][1])
        if instruction.opcode == "while":
            tree = self.found.get((*key, id(instruction.attributes.condition.parameters[0])), operands[0])
        else:
            tree = reduce(joined_trees, roots)
        self.calls[same] = tree
        return tree


def _renewed(tree: Tree, places: Sequence[int]) -> Tree:
    """The degrees of a tuple of which some elements are new variables."""
    if not places:
        return tree
    assert isinstance(tree, tuple)
    return tuple(Degree(1) if n in places else each for n, each in enumerate(tree))


def _size(instruction: Instruction) -> int:
    return max((prod(leaf.dims) for leaf in arrays_of(instruction.shape) if isinstance(leaf, Shape)), default=1)


def _varying(instruction: Instruction) -> tuple[Dims, tuple[Coordinate, ...]]:
    """The dimensions along which the elements of an array may differ, by the broadcasts that it is made by."""
    dims = instruction.shape.dims  # type: ignore[union-attr]
    along = {dim: dim for dim, extent in enumerate(dims) if extent > 1}
    while instruction.opcode in _REPEATING and instruction.opcode != "reshape":
        (operand,) = instruction.operands
        to = _kept(instruction, 0)
        along = {dim: along[there] for dim, there in enumerate(to) if there in along}
        instruction = operand
    if _size(instruction) == 1:
        along = {}
    several = sorted(along.values())
    return tuple(dims[dim] for dim in several), tuple((dim, 1) for dim in several)


def _kept(instruction: Instruction, number: int) -> Sequence[int | None]:
    """For each dimension of an operand the dimension of the result along which elements have the same places."""
    a, opcode = instruction.attributes, instruction.opcode.removesuffix("_start")
    shapes = [each.shape for each in (instruction.operands[number], instruction)]
    given, made = (shape.dims if isinstance(shape, Shape) else () for shape in shapes)
    if opcode == "broadcast":
        return [to if n == made[to] else None for n, to in zip(given, a.dimensions, strict=True)]
    if opcode == "transpose":
        return [a.permutation.index(dim) for dim in range(len(given))]
    if opcode == "reduce":
        left = [dim for dim in range(len(given)) if dim not in a.dimensions]
        return [left.index(dim) if dim in left else None for dim in range(len(given))]
    changed: Iterable[int] = ()
    if opcode == "sort":
        return [None if dim == a.dimension else dim for dim in range(len(given))]
    if opcode in _ALONG:
        changed = [getattr(a, name) for name in _ALONG[opcode]]
    elif opcode == "reverse":
        changed = a.dimensions
    elif opcode == "pad":
        changed = [dim for dim, at in enumerate(a.padding) if (at.low, at.high, at.interior) != (0, 0, 0)]
    elif opcode not in _IN_PLACE and OPS[instruction.opcode].properties.elements != "same_place":
        return [None] * len(given)
    if len(given) != len(made):
        return [None] * len(given)
    return [None if dim in changed or n != made[dim] else dim for dim, n in enumerate(given)]


_ALONG: Mapping[str, tuple[str, ...]] = {
    "concatenate": ("dimension",), "all_gather": ("all_gather_dimension",), "reduce_scatter": ("scatter_dimension",),
    "all_to_all": ("split_dimension", "concat_dimension"),
}  # fmt: skip
"""The attributes with the dimensions along which elements change places."""
_IN_PLACE = frozenset({
    "slice", "dynamic_slice", "dynamic_update_slice", "pad", "all_reduce", "collective_permute", "collective_broadcast",
})  # fmt: skip
"""Ops by which elements keep their places along dimensions whose extent they keep."""


def _moves(instruction: Instruction, number: int) -> Moves:
    """Where the elements of an operand are in the result."""
    if instruction.opcode == "reshape":
        return partial(_reshaped, instruction.operands[0].shape.dims, instruction.shape.dims)  # type: ignore[union-attr]
    if number >= len(instruction.operands):
        return lambda at, extent: ALL
    kept = _kept(instruction, number)

    def to(at: Coordinate, extent: int) -> Coordinate:
        dim = kept[at[0]] if at[0] < len(kept) else None
        return ALL if dim is None else (dim, at[1])

    return to


def _reshaped(given: Dims, made: Dims, at: Coordinate, extent: int) -> Coordinate:
    """The dimension of a reshaped array along which so many places follow from those along a given dimension.

    The place in the whole array, in row-major order, divided by `inner`, modulo `extent`, is what counts.
    """
    dim, step = at
    inner = step * prod(given[dim + 1 :])
    for there, size in enumerate(made):
        stride = prod(made[there + 1 :])
        if size > 1 and inner % stride == 0 and (stride * size) % (inner * extent) == 0:
            return there, inner // stride
    return ALL


def _of_dot(instruction: Instruction, operands: Sequence[Degree]) -> Degree:
    """The degree of a dot: of sums, along the dimensions over which it goes, of products."""
    a, rank = instruction.attributes, len(instruction.shape.dims)  # type: ignore[union-attr]
    batches, summed = (a.lhs_batch_dims, a.rhs_batch_dims), (a.lhs_contracting_dims, a.rhs_contracting_dims)
    free, sides = len(batches[0]), []
    for side, degree in enumerate(operands):
        to = {dim: n for n, dim in enumerate(batches[side])}
        to |= {dim: rank + n for n, dim in enumerate(summed[side])}
        for dim in range(len(instruction.operands[side].shape.dims)):  # type: ignore[union-attr]
            if dim not in to:
                to[dim], free = free, free + 1
        sides.append(moved(degree, lambda at, extent, to=to: (to[at[0]], at[1])))  # type: ignore[misc]
    return moved(multiplied(sides), lambda at, extent: at if at[0] < rank else ALL)


def distinct(instruction: Instruction) -> int:
    """How many different elements an array has at most, by the broadcasts that it is made by."""
    size = _size(instruction)
    while instruction.opcode in _REPEATING:
        instruction = instruction.operands[0]
        size = min(size, _size(instruction))
    return size


def is_random(instruction: Instruction) -> bool:
    """Whether the values of an instruction are those of a random function."""
    if instruction.opcode == "custom_call":
        return instruction.attributes.custom_call_target in ROUTINES | SOLVES or is_opaque(instruction)
    is_size = instruction.opcode == "abs" and _is_complex(instruction.operands[0])
    return instruction.opcode in RANDOM or is_size


def _is_complex(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.kind == "complex"


@remembered
def _multiplies(computation: Any) -> bool:
    """Whether a computation of elements does more than add and choose."""
    return any(
        (i.opcode in _MULTIPLYING and touches_floats(i)) or any(map(_multiplies, i.called))
        for i in computation.instructions
    )


# ----------------------------------------------------------------------------
# The probability of a wrong verdict, and the number of draws that a verdict needs.

ERROR = -60
"""The logarithm of the largest probability with which different arithmetic may be called equal."""
LEAST, MOST = 3, 24
"""The least and the greatest number of random inputs of a verdict."""
BOUNDING = 1
"""The draw at which degrees are bounded: not the first, at which most programs that differ do so."""
CHOOSING = 8
"""The least number of draws if the order of numbers or integers matter, of which each draw shows one case."""


def log2_error(several: Sequence[Degrees], bits: float, primes: int = 2) -> float:
    """The logarithm of the probability of one draw: a root or two arguments of a random function coincide.

    `bits` are those of the `primes` by which the numbers are compared.
    """
    variables: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    for degrees in several:
        variables.update(degrees.random)
        operands |= degrees.operands
    chances = [(2 * max(degrees.most for degrees in several)) ** primes]
    chances += [count * count // 2 * (2 * max(operands[name], 1)) ** primes for name, count in variables.items()]
    return log2(sum(chances)) - bits


def draws_needed(several: Sequence[Degrees], bits: float) -> int:
    """The number of draws that reaches the bound; more than `MOST` if the fields are too small."""
    error = log2_error(several, bits)
    return ceil(ERROR / error) + 1 if error < -1 else MOST + 1
