"""Rankings: a proof that no waits of a scheme form a cycle, for any size.

A ranking gives each event a number that is linear in the size, the device and the trips. If no wait of some families
increases the ranking, and each wait of one family decreases it, then no cycle contains a wait of this family: it can
be removed. What remains splits into strongly connected components, and each is treated alike, until only the orders of
single devices remain, which have no cycle. The rankings are guessed from small sizes, by linear programming in floating
point. Then each is proved for all sizes, in integers (`linear.py`). Only the proof counts.

Sources: R. M. Karp, R. E. Miller, S. Winograd, The Organization of Computations for Uniform Recurrence Equations,
Journal of the ACM 14 (1967), for the decomposition; P. Feautrier, Some Efficient Solutions to the Affine Scheduling
Problem, International Journal of Parallel Programming 21 (1992), for linear rankings of several dimensions.

Sections:

    Instances: the waits of one size, from a description
    The proof
    Linear programs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from attrs import define, field, frozen

from ..process.limits import ask
from .linear import LinearSum, Variable, has_no_solution, named, names_in, quotients_in, value_of
from .schemes import Events, Item, Repetition, waits_of
from .sizes import OutsideTheorem
from .waits import OTHER, PARTNER, SIZE, Description, DeviceRole, StepSite, WaitFamily, place_names

Node: TypeAlias = tuple[int, int]  # the numbers of a role and of one of its sites
Edge: TypeAlias = tuple[Node, Node, bool]  # a site, the site that it waits for, and whether it is the order of a device
Values: TypeAlias = dict[str, int]


# ----------------------------------------------------------------------------
# Instances: the waits of one size, from a description.


@define(eq=False)
class Instances:
    """The events of all devices of one size, as a description says."""

    events: Events = field(factory=dict)
    origins: dict[tuple[int, ...], list[tuple[StepSite, Values]]] = field(factory=dict)


def instances_of(description: Description, size: int) -> Instances | None:
    """The events of one size; None if the description has no role for this size."""
    found = Instances()
    for role in description.roles:
        names = place_names(len(role.extents))
        for place in product(*(range(extent.evaluate({SIZE: size})) for extent in _extents(description, size, role))):
            values = {SIZE: size, **dict(zip(names, place, strict=True))}
            if any(each.evaluate(values) < 0 for each in role.constraints):
                continue
            if place in found.events:
                raise OutsideTheorem(f"the cases of the comparisons overlap for device {place} of size {size}")
            origins = list(_unrolled(role, role.items, values, iter(role.sites)))
            found.origins[place] = origins
            found.events[place] = [
                (site.step.kind, site.step.key, tuple(at.evaluate(values) for at in site.step.peer))
                for site, values in origins
            ]
    return found if found.events else None


def _extents(description: Description, size: int, role: DeviceRole) -> tuple[LinearSum, ...]:
    """The extents of a role if its size may have this value, else none."""
    sized = [each for each in role.constraints if all(name == SIZE for name in names_in(each))]
    return (
        role.extents if all(each.evaluate({SIZE: size}) >= 0 for each in sized) else (LinearSum(),) * len(role.extents)
    )


def _unrolled(
    role: DeviceRole, items: tuple[Item, ...], values: Values, sites: Iterator[StepSite]
) -> Iterator[tuple[StepSite, Values]]:
    """Each step in each trip, in order."""
    for item in items:
        if isinstance(item, Repetition):
            inner = [next(sites) for _ in range(_steps(item.items))]
            for trip in range(item.count.evaluate(values)):
                yield from _unrolled(role, item.items, {**values, item.trip: trip}, iter(inner))
        else:
            yield next(sites), values


def _steps(items: Iterable[Item]) -> int:
    return sum(_steps(item.items) if isinstance(item, Repetition) else 1 for item in items)


# ----------------------------------------------------------------------------
# The proof.

SAMPLED = (0, 1, 2, 3, 4, 5, 7, 12, 20, 31)
"""The sizes, counted from the cutoff, whose waits rankings are guessed from."""

LARGE = (30000, 30011)
"""The sizes of which some waits are sampled, at the ends and in the middle: rankings must hold there, too."""

MOST_INSTANCES = 1500
"""The events of a size that is sampled."""

DEEPEST = 6
"""The rankings that may be nested."""


@frozen(eq=False)
class Ranking:
    """A linear function for each site, and the waits that it removes."""

    of: Mapping[Node, LinearSum]
    removed: int


@define(eq=False)
class Prover:
    """Finds and proves rankings for the families of waits of a description."""

    description: Description
    families: list[WaitFamily]
    features: dict[Node, tuple[Variable | None, ...]] = field(init=False)
    loops: dict[Node, tuple[str, ...]] = field(init=False)
    rows: dict[Edge, dict[tuple[Any, ...], None]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.features = {(r.number, s.number): self._features(r, s) for r in self.description.roles for s in r.sites}
        self.loops = {
            (r.number, s.number): tuple(loop.trip for loop in s.loops) for r in self.description.roles for s in r.sites
        }
        self.rows = {}
        for more in SAMPLED:
            self._sample(self.description.at_least + more)
        for size in LARGE:
            for family in self.families:
                for values in _points(self.description, family, size):
                    self._add((family.site, values), (family.awaited, _unmarked(values)), family.is_order)

    def _features(self, role: DeviceRole, site: StepSite) -> tuple[Variable | None, ...]:
        """What the ranking of a site is a sum of; None is the constant."""
        quotients = quotients_in([*role.constraints, *(each for s in role.sites for each in s.step.peer)])
        trips = tuple(loop.trip for loop in site.loops)
        return (None, SIZE, *place_names(len(role.extents)), *quotients, *trips)

    def _sample(self, size: int) -> None:
        """Add the waits of one size."""
        ask()
        found = instances_of(self.description, size)
        if found is None or sum(map(len, found.events.values())) > MOST_INSTANCES:
            return
        members = members_of(self.description, size, found)
        for (place, position), sources in waits_of(found.events, members).items():
            for source in sources:
                if source is None:
                    raise OutsideTheorem(f"an event of device {place} of size {size} waits for one that does not exist")
                self._add(found.origins[place][position], found.origins[source[0]][source[1]], False)
        for origins in found.origins.values():
            for before, after in pairwise(origins):
                self._add(after, before, True)

    def _add(self, of: tuple[StepSite, Values], awaited: tuple[StepSite, Values], is_order: bool) -> None:
        nodes = [(site.role, site.number) for site, _ in (of, awaited)]
        row = tuple(
            tuple(1 if each is None else value_of(each, values) for each in self.features[node])
            for node, (_, values) in zip(nodes, (of, awaited), strict=True)
        )
        self.rows.setdefault((nodes[0], nodes[1], is_order), {})[row] = None

    def prove(self) -> tuple[Ranking, ...]:
        """Return the rankings. Raises OutsideTheorem if none is found."""
        found: list[Ranking] = []
        self._remove(self.families, found, 0)
        return tuple(found)

    def _remove(self, families: list[WaitFamily], found: list[Ranking], depth: int) -> None:
        """Prove that the waits of these families form no cycle."""
        graph = nx.DiGraph([_nodes(family) for family in families])
        component = {node: n for n, nodes in enumerate(nx.strongly_connected_components(graph)) for node in nodes}
        inside: dict[int, list[WaitFamily]] = {}
        for family in families:
            left, right = _nodes(family)
            if component[left] == component[right]:
                inside.setdefault(component[left], []).append(family)
        for members in inside.values():
            if all(family.is_order for family in members):
                continue  # the order of a device has no cycle
            if depth == DEEPEST:
                raise OutsideTheorem(f"no {DEEPEST} nested linear rankings order the waits")
            ranking, rest = self._rank(members)
            found.append(ranking)
            self._remove(rest, found, depth + 1)

    def _rank(self, families: list[WaitFamily]) -> tuple[Ranking, list[WaitFamily]]:
        """A ranking that removes some of the families, and those that remain."""
        for is_common, is_tied in product((True, False), (True, False)):
            for values in self._guesses(families, is_common, is_tied):
                rest = self._remaining(families, values)
                if rest is not None and len(rest) < len(families):
                    return Ranking(values, len(families) - len(rest)), rest
        raise OutsideTheorem("no ranking that is linear in the size, the device and the trips orders the waits")

    def _guesses(self, families: list[WaitFamily], is_common: bool, is_tied: bool) -> Iterator[dict[Node, LinearSum]]:
        """Rankings that order the sampled waits.

        With `is_common`, all waits between devices decrease the ranking; otherwise as many families as possible. With
        `is_tied`, the rankings of a device in one repetition differ by constants.
        """
        edges = sorted({(*_nodes(family), family.is_order) for family in families})
        nodes = sorted({node for left, right, _ in edges for node in (left, right)})
        columns: dict[Any, int] = {}
        of: dict[Node, list[int]] = {}
        for node in nodes:
            loops = self.loops[node]
            owner: Any = (node[0], loops) if is_tied else node
            keys = [(node, None) if each is None else (owner, each) for each in self.features[node]]
            of[node] = [columns.setdefault(key, len(columns)) for key in keys]
        ends: list[tuple[Node, Node]] = []
        kinds: list[int] = []  # for each row the number of the family of which all rows are strict, or -1
        rows: list[np.ndarray[Any, Any]] = []
        for number, edge in enumerate(edges):
            left, right, is_order = edge
            for one, other in self.rows.get(edge, ()):
                row = np.zeros(len(columns))
                np.add.at(row, of[left], one)
                np.subtract.at(row, of[right], other)
                rows.append(row)
                ends.append((left, right))
                kinds.append((-1 if is_order else 0) if is_common else number)
        if not rows:
            return
        table = np.array(rows)
        slopes = np.array([key[1] is not None for key in columns])
        weights = {kind: len(edges) if is_common else 1 for kind in kinds}
        solution, margins = ranking_of(table, np.array(kinds), np.where(slopes, SLOPE_COST, CONSTANT_COST), weights)
        if not any(margin > 0.5 for margin in margins.values()):
            return
        strict = np.array([int(kind >= 0 and margins[kind] > 0.5) for kind in kinds])
        tried: set[tuple[int, ...]] = set()
        for scale in (1, 2, 3, 4, 6):
            rounded = np.where(slopes, np.rint(solution * scale), 0)
            if tuple(rounded) in tried:
                continue
            tried.add(tuple(rounded))
            constants = _constants(nodes, ends, np.rint(strict - table @ rounded))
            if constants is not None:
                yield {
                    node: _ranking(
                        self.features[node],
                        [
                            constants[node] if each is None else int(rounded[at])
                            for each, at in zip(self.features[node], of[node], strict=True)
                        ],
                    )
                    for node in nodes
                }

    def _remaining(self, families: list[WaitFamily], values: Mapping[Node, LinearSum]) -> list[WaitFamily] | None:
        """The families that a ranking does not remove; None if a wait may increase the ranking."""
        rest = []
        for family in families:
            left, right = _nodes(family)
            decrease = values[left] - OTHER(values[right])
            facts = list(family.inequalities)
            equalities = family.equalities
            if has_no_solution([*facts, -decrease], equalities):
                continue
            if not has_no_solution([*facts, -decrease - 1], equalities):
                return None
            rest.append(family)
        return rest


def _constants(
    nodes: list[Node], ends: list[tuple[Node, Node]], differences: np.ndarray[Any, Any]
) -> dict[Node, int] | None:
    """Constants of which the first of each two ends exceeds the second by the difference; None if no constants do."""
    needed: dict[tuple[Node, Node], int] = {}
    for pair, difference in zip(ends, differences, strict=True):
        needed[pair] = max(needed.get(pair, int(difference)), int(difference))
    found = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        changed = False
        for (left, right), difference in needed.items():
            if found[left] < found[right] + difference:
                found[left] = found[right] + difference
                changed = True
        if not changed:
            return found
    return None


def _points(description: Description, family: WaitFamily, size: int) -> Iterator[Values]:
    """Some waits of a family with one size: values of all names that satisfy its constraints."""
    role = description.roles[family.site.role]
    names = place_names(len(role.extents))
    extents = [extent.evaluate({SIZE: size}) for extent in role.extents]
    for place in product(*map(_some, extents)):
        values = {SIZE: size, **dict(zip(names, place, strict=True))}
        if any(each.evaluate(values) < 0 for each in role.constraints):
            continue
        for own in _trips(family.site.loops, values):
            ends = [each.evaluate(own) for each in family.site.step.peer]
            others = [place] if family.is_order or not ends else [tuple(ends), place]
            if not ends and not family.is_order:
                others = list(product(*map(_some, extents)))
            for other in others:
                known = dict(own)
                known |= {OTHER.name(name): at for name, at in zip(names, other, strict=True)}
                known |= {PARTNER.name(name): at for name, at in zip(names, ends, strict=False)}
                if _solves(family, known):
                    yield known


def _some(extent: int) -> list[int]:
    """Some numbers below an extent: at both ends, and around the middle."""
    middle = extent // 2
    chosen = {0, 1, 2, 3, extent // 9, extent // 5, *range(middle - 2, middle + 2), extent - 3, extent - 2, extent - 1}
    return sorted(each for each in chosen if 0 <= each < extent)


def _trips(loops: tuple[Repetition, ...], values: Values) -> Iterator[Values]:
    """Some trips of repetitions, as values."""
    if not loops:
        yield values
        return
    count = loops[0].count.evaluate(values)
    for trip in sorted({0, 1, count // 2, count - 2, count - 1}):
        if 0 <= trip < count:
            yield from _trips(loops[1:], {**values, loops[0].trip: trip})


def _solves(family: WaitFamily, known: Values) -> bool:
    """Whether values satisfy the constraints of a family. Adds the trips of the awaited site, by the equalities."""
    unknown = {OTHER.name(loop.trip) for loop in family.awaited.loops}
    while unknown:
        for equality in family.equalities:
            names = names_in(equality) & unknown
            if len(names) == 1 and isinstance(coefficient := dict(equality.terms).get(name := names.pop()), int):
                rest = (equality - named(name) * coefficient).evaluate(known)
                if rest % coefficient:
                    return False
                known[name] = -rest // coefficient
                unknown.remove(name)
                break
        else:
            return False
    if any(not names_in(each) <= known.keys() for each in (*family.equalities, *family.inequalities)):
        return False
    is_equal = all(each.evaluate(known) == 0 for each in family.equalities)
    return is_equal and all(each.evaluate(known) >= 0 for each in family.inequalities)


def _unmarked(values: Values) -> Values:
    """The values of the awaited event by the names of its own role."""
    marked = {name.removesuffix(OTHER.mark): value for name, value in values.items() if name.endswith(OTHER.mark)}
    return {SIZE: values[SIZE], **marked}


def _nodes(family: WaitFamily) -> tuple[Node, Node]:
    return (family.site.role, family.site.number), (family.awaited.role, family.awaited.number)


def _ranking(features: tuple[Variable | None, ...], values: list[int]) -> LinearSum:
    total = LinearSum()
    for feature, value in zip(features, values, strict=True):
        part = (
            LinearSum((), 1)
            if feature is None
            else named(feature)
            if isinstance(feature, str)
            else LinearSum(((feature, 1),))
        )
        total += part * value
    return total


def members_of(description: Description, size: int, found: Instances) -> dict[Any, tuple[tuple[int, ...], ...]]:
    """The members of the group with a name in which a device is."""
    members: dict[Any, tuple[tuple[int, ...], ...]] = {}
    for name, paths in description.groups.items():
        together: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for place in found.events:
            values = {SIZE: size, **dict(zip(place_names(len(place)), place, strict=True))}
            for path in paths:
                if path.result is not None and all(each.evaluate(values) >= 0 for each in path.constraints):
                    together.setdefault(tuple(each.evaluate(values) for each in path.result), []).append(place)
        for places in together.values():
            places.sort()
            members |= dict.fromkeys(((name, place) for place in places), tuple(places))
    return members


# ----------------------------------------------------------------------------
# Linear programs.

MOST_PIVOTS = 20000

ADDED = 40
"""The violated rows that a linear program gets at once."""

SLOPE_COST, CONSTANT_COST = 1e-2, 1e-6
"""What a coefficient of 1 costs, where a wait that decreases a ranking gains 1: so no slope is as large as a size."""


def ranking_of(
    rows: np.ndarray[Any, Any], strict: np.ndarray[Any, Any], costs: np.ndarray[Any, Any], weights: Mapping[int, int]
) -> tuple[np.ndarray[Any, Any], dict[int, float]]:
    """Coefficients x for which `rows @ x` is at least the margin of each row's family, with margins close to 1.

    `strict` says for each row the number of its family, or -1 if its margin is 0. The solution weighs the margins of
    families against the costs of the sizes of coefficients. The rows are few in number of columns and many in number,
    so the dual simplex method starts with none, and adds the rows that the solution violates.
    """
    kinds = sorted({int(each) for each in strict if each >= 0})
    column = {kind: number for number, kind in enumerate(kinds)}
    width = rows.shape[1]
    # the variables, all at least 0: x as a difference of two, then what is missing from each margin
    table = np.hstack([rows, -rows, np.zeros((len(rows), len(kinds)))])
    for number, kind in enumerate(strict):
        if kind >= 0:
            table[number, 2 * width + column[int(kind)]] = 1
    at_most_one = np.hstack([np.zeros((len(kinds), 2 * width)), -np.eye(len(kinds))])
    table = np.vstack([table, at_most_one])
    bounds = np.concatenate([strict >= 0, -np.ones(len(kinds))])
    scale = np.maximum(np.abs(table).max(axis=1), 1)
    table, bounds = table / scale[:, None], bounds / scale
    program = _DualSimplex(np.concatenate([costs, costs, [float(weights[kind]) for kind in kinds]]))
    while True:
        ask()
        values = program.values()
        slack = table @ values - bounds
        worst = [int(each) for each in np.argsort(slack)[:ADDED] if slack[each] < -1e-9]
        if not worst or not program.add(table[worst], bounds[worst]):
            missing = values[2 * width :]
            return values[:width] - values[width : 2 * width], {
                kind: 1 - float(missing[n]) for kind, n in column.items()
            }


class _DualSimplex:
    """Minimizes `costs @ values` for values of at least 0, under constraints that are added step by step.

    The table is a dictionary: each basic variable is its constant plus its row times the other variables, which are 0.
    """

    def __init__(self, costs: np.ndarray[Any, Any]) -> None:
        count = len(costs)
        self.count = count
        # costs that differ a little keep the pivots from cycling
        self.reduced = costs * (1 + 1e-3 * np.random.default_rng(0).random(count))
        self.others = np.arange(count)
        self.basis = np.zeros(0, int)
        self.table = np.zeros((0, count))
        self.constants = np.zeros(0)
        self.pivots = 0

    def values(self) -> np.ndarray[Any, Any]:
        """The values of the variables."""
        found = np.zeros(max([self.count, *self.basis + 1, *self.others + 1]))
        found[self.basis] = self.constants
        return found[: self.count]

    def add(self, rows: np.ndarray[Any, Any], bounds: np.ndarray[Any, Any]) -> bool:
        """Add the constraints `rows @ values >= bounds`, and find the minimum; False if there are too many pivots."""
        first = max([self.count, *self.basis + 1, *self.others + 1])
        every = np.zeros((len(rows), first))
        every[:, : self.count] = rows
        self.table = np.vstack([self.table, every[:, self.others] + every[:, self.basis] @ self.table])
        self.constants = np.concatenate([self.constants, every[:, self.basis] @ self.constants - bounds])
        self.basis = np.concatenate([self.basis, np.arange(first, first + len(rows))])
        while True:
            leaving = int(np.argmin(self.constants))
            if self.constants[leaving] > -1e-11:
                return True
            row = self.table[leaving]
            positive = np.flatnonzero(row > 1e-9)
            self.pivots += 1
            if not len(positive) or self.pivots > MOST_PIVOTS:
                return False
            if self.pivots % 50 == 0:
                ask()
            self._pivot(leaving, int(positive[np.argmin(self.reduced[positive] / row[positive])]))

    def _pivot(self, leaving: int, entering: int) -> None:
        row = self.table[leaving].copy()
        pivot = row[entering]
        row /= -pivot
        row[entering] = 1 / pivot
        constant = -self.constants[leaving] / pivot
        column = self.table[:, entering].copy()
        column[leaving] = 0
        self.table[:, entering] = 0
        self.table += np.outer(column, row)
        self.constants += column * constant
        self.table[leaving], self.constants[leaving] = row, constant
        cost = self.reduced[entering]
        self.reduced[entering] = 0
        self.reduced += cost * row
        self.basis[leaving], self.others[entering] = self.others[entering], self.basis[leaving]
