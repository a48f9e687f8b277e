"""The waits of a scheme for all sizes: roles of devices, the pairing of their events, and families of waits.

Sections:

    Roles: what all devices on one path do
    Counting: which event of a role is the n-th of its kind with a partner
    Families: each describes waits of one event on another, for all sizes, devices and trips
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from attrs import define, evolve, field, frozen

from ..properties.waiting import ARRIVED, CHANNEL, COMPLETED, POSTED, RECEIVED, SENT, EventKind
from .linear import LinearSum, bounded, has_no_solution, named, names_in
from .schemes import Item, Key, Repetition, Scheme, Step, SymbolicDevice, writes_outside
from .sizes import Exploration, OutsideTheorem, Path, Size, linear_of

T = TypeVar("T")

SIZE = "n"
Build: TypeAlias = Callable[[Any], Any]


# ----------------------------------------------------------------------------
# Roles: what all devices on one path do.


@frozen(eq=False)
class StepSite:
    """One step of a role: its number, the repetitions around it, and the steps before it on each level."""

    role: int
    number: int
    step: Step
    loops: tuple[Repetition, ...]
    before: tuple[tuple[Item, ...], ...]

    def constraints(self) -> Iterator[LinearSum]:
        """The range of each trip."""
        for loop in self.loops:
            yield from bounded(named(loop.trip), loop.count)


@frozen(eq=False)
class DeviceRole:
    """What all devices do that satisfy the constraints, in a grid with these extents."""

    number: int
    constraints: tuple[LinearSum, ...]
    items: tuple[Item, ...]
    extents: tuple[LinearSum, ...]
    sites: tuple[StepSite, ...] = ()

    @property
    def places(self) -> tuple[LinearSum, ...]:
        return tuple(named(name) for name in place_names(len(self.extents)))


@frozen(eq=False)
class Description:
    """A scheme for all sizes from `at_least` on: its roles, and for each group the paths of its key.

    The roles cover all devices of all sizes for which `build` returns a scheme.
    """

    at_least: int
    roles: tuple[DeviceRole, ...]
    groups: Mapping[str, tuple[Path[tuple[LinearSum, ...] | None], ...]]


def place_names(rank: int) -> tuple[str, ...]:
    """The names of the coordinates of a device."""
    return tuple(f"d{axis}" for axis in range(rank)) if rank > 1 else ("d",)


def describe(build: Build, at_least: int) -> Description:
    """Call `build` for all sizes from `at_least` on."""
    given = (named(SIZE) - at_least,)
    exploration = Exploration(given)
    roles: list[DeviceRole] = []
    names: dict[str, None] = {}
    for path in exploration.paths(lambda: _record_device(build, exploration)):
        if path.result is None:
            continue
        scheme, items, extents = path.result
        names |= dict.fromkeys(scheme.groups)
        number = len(roles)
        role = DeviceRole(number, path.constraints, items, extents)
        roles.append(evolve(role, sites=tuple(_sites(number, items))))
    if not roles:
        raise OutsideTheorem("build returns None for all sizes")
    if len({len(role.extents) for role in roles}) > 1:
        raise OutsideTheorem("the devices are a grid of different ranks for different sizes")
    groups = {}
    for name in names:
        exploration = Exploration(given)
        paths = exploration.paths(lambda name=name, exploration=exploration: _record_key(build, exploration, name))  # type: ignore[misc]
        groups[name] = tuple(Path(path.constraints, path.result[0]) for path in paths if path.result is not None)
    return Description(at_least, tuple(roles), groups)


def _scheme(build: Build, exploration: Exploration) -> tuple[Scheme, tuple[Size, ...]] | None:
    """The scheme and a device of it, for all sizes."""
    scheme = build(Size(named(SIZE), exploration))
    if scheme is None:
        return None
    if not isinstance(scheme, Scheme):
        kind = type(scheme).__name__
        raise OutsideTheorem(f"build returns a {kind}, not a Scheme, so it says nothing about other sizes")
    place = []
    for name, extent in zip(place_names(len(scheme.extents)), scheme.extents, strict=True):
        exploration.assume(bounded(named(name), linear_of(extent)))
        place.append(Size(named(name), exploration))
    return scheme, tuple(place)


def _record_device(
    build: Build, exploration: Exploration
) -> tuple[Scheme, tuple[Item, ...], tuple[LinearSum, ...]] | None:
    found = _scheme(build, exploration)
    if found is None:
        return None
    scheme, place = found
    if writes_outside(scheme.program):
        raise OutsideTheorem("the program assigns to a variable outside it, or is not a function")
    device = SymbolicDevice(scheme, place, exploration)
    scheme.program(device)
    return scheme, tuple(device.items), tuple(map(linear_of, scheme.extents))


def _record_key(build: Build, exploration: Exploration, name: str) -> tuple[tuple[LinearSum, ...] | None] | None:
    found = _scheme(build, exploration)
    if found is None:
        return None
    scheme, place = found
    if name not in scheme.groups:
        raise OutsideTheorem(f"the group {name!r} exists only for some sizes")
    if writes_outside(scheme.groups[name]):
        raise OutsideTheorem(f"the key of the group {name!r} assigns to a variable outside it, or is not a function")
    key: Key = scheme.groups[name](scheme.index(place))
    if key is None:
        return (None,)
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(each, int | Size) for each in parts):
        raise OutsideTheorem(f"the key of the group {name!r} is not made of numbers")
    return (tuple(map(linear_of, parts)),)


def _sites(role: int, items: tuple[Item, ...]) -> Iterator[StepSite]:
    found: list[StepSite] = []

    def walk(items: tuple[Item, ...], loops: tuple[Repetition, ...], before: tuple[tuple[Item, ...], ...]) -> None:
        for position, item in enumerate(items):
            earlier = (*before, items[:position])
            if isinstance(item, Repetition):
                walk(item.items, (*loops, item), earlier)
            else:
                found.append(StepSite(role, len(found), item, loops, earlier))

    walk(items, (), ())
    return iter(found)


# ----------------------------------------------------------------------------
# Counting: which event of a role is the n-th of its kind with a partner.


class Renaming:
    """Gives the device and the trips of a role other names; with `trips_only`, the device keeps its name."""

    def __init__(self, mark: str = "", trips_only: bool = False) -> None:
        self.mark, self.trips_only = mark, trips_only

    def __call__(self, expression: LinearSum) -> LinearSum:
        return expression.replaced(lambda name: named(self.name(name))) if self.mark else expression

    def name(self, name: str) -> str:
        return name if name == SIZE or (self.trips_only and name.startswith("d")) else name + self.mark

    def all(self, expressions: Iterable[LinearSum]) -> list[LinearSum]:
        return [self(each) for each in expressions]


SAME, OTHER, TRIPS, PARTNER = Renaming(), Renaming("'"), Renaming("'", trips_only=True), Renaming('"')


class NeedsCases(OutsideTheorem):
    """Raised where facts do not decide which event pairs with which; each of `cases` adds facts that may."""

    def __init__(self, message: str, cases: list[list[LinearSum]]) -> None:
        self.cases = cases
        super().__init__(message)


MOST_SPLITS = 8
"""How often the facts about a pair of roles are split into cases."""


def by_cases(
    facts: list[LinearSum], function: Callable[[list[LinearSum]], Iterable[T]], splits: int = MOST_SPLITS
) -> Iterator[T]:
    """What a function of facts returns, after splitting the facts into cases until each decides what it asks."""
    if has_no_solution(facts):
        return
    try:
        found = list(function(facts))
    except NeedsCases as error:
        if not splits:
            raise
        for case in error.cases:
            yield from by_cases([*facts, *case], function, splits - 1)
    else:
        yield from found


# How a step relates to a partner: its peer is always the partner, never, or in exactly one trip of its repetition.
Relation: TypeAlias = Literal["always", "never"] | LinearSum


@define(eq=False)
class Counter:
    """Counts the events of one kind, channel and partner on the devices of a role, where `facts` hold."""

    role: DeviceRole
    naming: Renaming
    kind: EventKind
    key: int | str
    partner: tuple[LinearSum, ...]
    facts: list[LinearSum]
    _relations: dict[tuple[Any, ...], Relation] = field(factory=dict, init=False)

    def sites(self) -> Iterator[StepSite]:
        """The sites that have such events."""
        for site in self.role.sites:
            if (
                site.step.kind is self.kind
                and site.step.key == self.key
                and self.relation(site.step, site.loops) != "never"
            ):
                yield site

    def total(self) -> LinearSum:
        """The number of such events of one device."""
        return self._count(self.role.items, ())

    def index(self, site: StepSite) -> LinearSum:
        """How many such events precede the one of a site, in the trip that the renamed names of its trips say."""
        total = LinearSum()
        relation = self.relation(site.step, site.loops)
        for level, earlier in enumerate(site.before):
            total += self._count(earlier, site.loops[:level])
            if level < len(site.loops) and not isinstance(relation, LinearSum):
                loop = site.loops[level]
                total += _product(self._count(loop.items, site.loops[: level + 1]), self.naming(named(loop.trip)))
        return total

    def trips(self, site: StepSite) -> list[LinearSum]:
        """The constraints on the trips of the events of a site: equalities, as expressions that are 0."""
        relation = self.relation(site.step, site.loops)
        return [self.naming(named(site.loops[-1].trip)) - relation] if isinstance(relation, LinearSum) else []

    def relation(self, step: Step, loops: tuple[Repetition, ...]) -> Relation:
        key = (step.peer, tuple(loop.trip for loop in loops))
        if key not in self._relations:
            self._relations[key] = self._relate(step, loops)
        return self._relations[key]

    def _relate(self, step: Step, loops: tuple[Repetition, ...]) -> Relation:
        if step.kind.within != CHANNEL:
            return "always"
        peer = self.naming.all(step.peer)
        trips = [loop for loop in loops if any(loop.trip in names_in(each) for each in step.peer)]
        equal = [left - right for left, right in zip(peer, self.partner, strict=True)]
        if not trips:
            if has_no_solution(self.facts, equal):
                return "never"
            if all(_is_zero(self.facts, each) for each in equal):
                return "always"
            differs = next(each for each in equal if not _is_zero(self.facts, each))
            message = f"whether two peers of a device are one device (one is {self._text(step)}) differs within a case"
            raise NeedsCases(message, [_equal([differs], [LinearSum()]), [differs - 1], [-differs - 1]])
        return self._relate_by_trip(step, loops, trips, equal)

    def _relate_by_trip(
        self, step: Step, loops: tuple[Repetition, ...], trips: list[Repetition], equal: list[LinearSum]
    ) -> Relation:
        """The one trip in which a step has the partner as its peer."""
        loop = loops[0]
        trip = self.naming(named(loop.trip))
        where = [each for each in equal if dict(each.terms).get(trip.terms[0][0])]
        if len(loops) > 1 or trips != [loop] or len(where) != 1 or abs(dict(where[0].terms)[trip.terms[0][0]]) != 1:
            raise OutsideTheorem(
                f"a peer ({self._text(step)}) depends on the trips of repetitions in a way that is not simple"
            )
        factor = dict(where[0].terms)[trip.terms[0][0]]
        solution = trip - where[0] * factor
        others = [each for each in equal if each is not where[0]]
        inside = list(bounded(solution, self.naming(loop.count)))
        if has_no_solution([*self.facts, *inside], others):
            return "never"
        message = f"whether a peer ({self._text(step)}) occurs in a repetition differs within a case"
        for each in others:
            if not _is_zero(self.facts, each):
                raise NeedsCases(message, [_equal([each], [LinearSum()]), [each - 1], [-each - 1]])
        for each in inside:
            if not has_no_solution([*self.facts, -each - 1]):
                raise NeedsCases(message, [[each], [-each - 1]])
        return solution

    def _text(self, step: Step) -> str:
        return ", ".join(map(str, step.peer))

    def _count(self, items: Iterable[Item], loops: tuple[Repetition, ...]) -> LinearSum:
        total = LinearSum()
        for item in items:
            if isinstance(item, Repetition):
                total += self._repeated(item, (*loops, item))
            elif item.kind is self.kind and item.key == self.key and self.relation(item, loops) == "always":
                total += 1
            elif item.kind is self.kind and item.key == self.key and isinstance(self.relation(item, loops), LinearSum):
                total += 1  # in the one trip: `_repeated` does not multiply it
        return total

    def _repeated(self, loop: Repetition, loops: tuple[Repetition, ...]) -> LinearSum:
        relations = [
            self.relation(item, loops)
            for item in loop.items
            if isinstance(item, Step) and item.kind is self.kind and item.key == self.key
        ]
        once = [each for each in relations if isinstance(each, LinearSum)]
        each_trip = self._count(loop.items, loops)
        if not once:
            return _product(each_trip, self.naming(loop.count))
        if len({*once}) > 1 or "always" in relations or any(isinstance(item, Repetition) for item in loop.items):
            raise OutsideTheorem("several steps of one repetition have peers that depend on the trip in different ways")
        return each_trip


def _is_zero(facts: list[LinearSum], expression: LinearSum) -> bool:
    """Whether facts prove that an expression is 0."""
    return all(has_no_solution([*facts, expression * sign - 1]) for sign in (1, -1))


def _product(left: LinearSum, right: LinearSum) -> LinearSum:
    if left.terms and right.terms:
        raise OutsideTheorem(f"the number of events is a product of {left} and {right}, which is not linear")
    return left * right.constant if not right.terms else right * left.constant


# ----------------------------------------------------------------------------
# Families: each describes waits of one event on another, for all sizes, devices and trips.


@frozen(eq=False)
class WaitFamily:
    """Waits of the events of `site` on those of `awaited`, whose names OTHER renames, where the constraints hold.

    `is_order`: both are on one device, which runs `awaited` immediately before `site`. Otherwise, one event waits for
    the other by the rules of waiting.
    """

    site: StepSite
    awaited: StepSite
    is_order: bool
    inequalities: tuple[LinearSum, ...]
    equalities: tuple[LinearSum, ...]


def families_of(description: Description) -> list[WaitFamily]:
    """All waits of a scheme. Raises OutsideTheorem if an event may wait for one that does not exist."""
    return [family for role in description.roles for family in _Waits(description, role).families()]


@define(eq=False)
class _Waits:
    """The waits of the devices of one role."""

    description: Description
    role: DeviceRole

    def families(self) -> Iterator[WaitFamily]:
        yield from self._order()
        ports: dict[tuple[Any, ...], StepSite] = {}
        for site in self.role.sites:
            if site.step.kind.within == CHANNEL:
                ports.setdefault((site.step.kind, site.step.key, site.step.peer, _trips_of_peer(site)), site)
        for site in ports.values():
            yield from self._port(site)
        for group in dict.fromkeys(s.step.key for s in self.role.sites if s.step.kind is ARRIVED):
            yield from self._meetings(str(group))

    # The order of one device.

    def _order(self) -> Iterator[WaitFamily]:
        """From each step to the next: the device runs its steps in order."""
        sites = iter(self.role.sites)
        place = [OTHER(each) - each for each in self.role.places]

        def family(later: _End, earlier: _End, advanced: str = "") -> WaitFamily:
            inequalities = [*self.role.constraints, *later.site.constraints(), *OTHER.all(earlier.site.constraints())]
            common = [loop.trip for loop in later.site.loops if loop in earlier.site.loops]
            ends = [named(trip) - at for trip, at in later.trips]
            ends += [OTHER(named(trip)) - OTHER(at) for trip, at in earlier.trips]
            pinned = {trip for trip, _ in (*later.trips, *earlier.trips)}
            same = [named(t) - OTHER(named(t)) - (t == advanced) for t in common if t not in pinned]
            return WaitFamily(later.site, earlier.site, True, tuple(inequalities), (*place, *ends, *same))

        def walk(items: tuple[Item, ...]) -> Iterator[WaitFamily | tuple[_End, _End]]:
            """The families within the items, then their first and last step."""
            first: _End | None = None
            last: _End | None = None
            for item in items:
                if isinstance(item, Repetition):
                    *inner, ends = walk(item.items)
                    yield from inner
                    assert isinstance(ends, tuple)
                    start, end = ends
                    yield family(start, end, item.trip)
                    start = evolve(start, trips=((item.trip, LinearSum()), *start.trips))
                    end = evolve(end, trips=((item.trip, item.count - 1), *end.trips))
                else:
                    start = end = _End(next(sites))
                if last is not None:
                    yield family(start, last)
                first, last = first or start, end
            if first is not None and last is not None:
                yield first, last

        yield from (each for each in walk(self.role.items) if isinstance(each, WaitFamily))

    # Transfers.

    def _port(self, site: StepSite) -> Iterator[WaitFamily]:
        """The transfers with one peer on one channel, in one direction."""
        role, step = self.role, site.step
        facts = [*role.constraints, *(site.constraints() if _trips_of_peer(site) else ())]
        for at, extent in zip(step.peer, role.extents, strict=True):
            for bound in bounded(at, extent):
                if not has_no_solution([*facts, -bound - 1]):
                    raise OutsideTheorem(f"a device communicates with {at}, which may not be from 0 to {extent - 1}")
        if not has_no_solution(facts, [at - own for at, own in zip(step.peer, role.places, strict=True)]):
            raise OutsideTheorem(f"a device communicates with {', '.join(map(str, step.peer))}, which may be itself")
        if step.kind is POSTED:
            return  # the recv-dones wait, and are a port of their own
        for other in self.description.roles:
            equal = _equal(OTHER.all(other.places), step.peer)
            known = [*facts, *OTHER.all(other.constraints), *equal]
            yield from by_cases(known, lambda known, other=other: self._transfer(site, other, known))  # type: ignore[misc]
        if step.kind is RECEIVED:
            known = [*facts, *_equal(PARTNER.all(role.places), step.peer)]
            yield from by_cases(known, lambda known: self._own_recv(site, known))

    def _transfer(self, site: StepSite, other: DeviceRole, known: list[LinearSum]) -> Iterator[WaitFamily]:
        """The transfers with devices of another role, where `known` holds."""
        role, step = self.role, site.step
        partner = tuple(OTHER.all(other.places))
        own, awaits = ((SENT,), (POSTED, RECEIVED)) if step.kind is SENT else ((POSTED, RECEIVED), (SENT,))
        counts = [Counter(role, SAME, kind, step.key, partner, known).total() for kind in own]
        counts += [Counter(other, OTHER, kind, step.key, role.places, known).total() for kind in awaits]
        for count in counts[1:]:
            self._require_equal(counts[0], count, known, step, other)
        mine = Counter(role, SAME, step.kind, step.key, partner, known)
        theirs = Counter(other, OTHER, awaits[0], step.key, role.places, known)
        return self._pair(mine, theirs, known, OTHER, site)

    def _own_recv(self, site: StepSite, known: list[LinearSum]) -> Iterator[WaitFamily]:
        """Each recv-done comes after its own recv. The recv is of the same device, and its trips are renamed."""
        role, step = self.role, site.step
        partner = tuple(PARTNER.all(role.places))
        mine = Counter(role, SAME, RECEIVED, step.key, partner, known)
        posted = Counter(role, TRIPS, POSTED, step.key, partner, known)
        self._require_equal(mine.total(), posted.total(), known, step, role)
        same = [OTHER(at) - at for at in role.places]
        for family in self._pair(mine, posted, known, TRIPS, site):
            yield evolve(family, equalities=(*family.equalities, *same))

    def _require_equal(
        self, left: LinearSum, right: LinearSum, known: list[LinearSum], step: Step, other: DeviceRole
    ) -> None:
        difference = left - right
        if not _is_zero(known, difference):
            is_transfer = step.kind.within == CHANNEL
            where = f"channel {step.key}" if is_transfer else f"group {step.key!r}"
            raise OutsideTheorem(f"two devices may communicate {left} and {right} times ({where}; {role_text(other)})")

    def _pair(
        self, mine: Counter, awaited: Counter, known: list[LinearSum], naming: Renaming, port: StepSite
    ) -> Iterator[WaitFamily]:
        """The waits of the sites of a port on the events with the same number that they await."""
        for site in mine.sites():
            if (site.step.peer, _trips_of_peer(site)) != (port.step.peer, _trips_of_peer(port)):
                continue  # a port of its own
            for other in awaited.sites():
                inequalities = (*known, *site.constraints(), *naming.all(other.constraints()))
                equalities = (*mine.trips(site), *awaited.trips(other), mine.index(site) - awaited.index(other))
                if not has_no_solution(inequalities, equalities):
                    yield WaitFamily(site, other, False, inequalities, equalities)

    # Collectives.

    def _meetings(self, group: str) -> Iterator[WaitFamily]:
        """The meetings of a group: each waits for the arrivals of all members with the same number."""
        role = self.role
        step = Step(ARRIVED, group)
        for own in self.description.groups[group]:
            facts = [*role.constraints, *own.constraints]
            if has_no_solution(facts):
                continue
            if own.result is None:
                raise OutsideTheorem(f"a device may meet the group {group!r}, in which it is not")
            for other in self.description.roles:
                for key in self.description.groups[group]:
                    if key.result is None or len(key.result) != len(own.result):
                        continue
                    equal = _equal(own.result, tuple(OTHER.all(key.result)))
                    known = [*facts, *OTHER.all(other.constraints), *OTHER.all(key.constraints), *equal]
                    if has_no_solution(known):
                        continue
                    mine = Counter(role, SAME, ARRIVED, group, (), known)
                    theirs = Counter(other, OTHER, ARRIVED, group, (), known)
                    self._require_equal(mine.total(), theirs.total(), known, step, other)
                    completed = Counter(role, SAME, COMPLETED, group, (), known)
                    for site in completed.sites():
                        for awaited in theirs.sites():
                            inequalities = (*known, *site.constraints(), *OTHER.all(awaited.constraints()))
                            equalities = (completed.index(site) - theirs.index(awaited),)
                            if not has_no_solution(inequalities, equalities):
                                yield WaitFamily(site, awaited, False, inequalities, equalities)


@frozen(eq=False)
class _End:
    """The first or last step of a list of items, and the trips of the repetitions within the list."""

    site: StepSite
    trips: tuple[tuple[str, LinearSum], ...] = ()


def _equal(left: Iterable[LinearSum], right: Iterable[LinearSum]) -> list[LinearSum]:
    """The constraints that expressions are equal."""
    differences = [one - other for one, other in zip(left, right, strict=True)]
    return [*differences, *(-each for each in differences)]


def _trips_of_peer(site: StepSite) -> tuple[str, ...]:
    """The trips on which the peer of a site depends."""
    names = {name for each in site.step.peer for name in names_in(each)}
    return tuple(loop.trip for loop in site.loops if loop.trip in names)


def role_text(role: DeviceRole) -> str:
    """The devices of a role, such as `devices with d - 1 >= 0`."""
    return f"devices with {', '.join(f'{each} >= 0' for each in role.constraints)}"
