"""Numbers that stand for all sizes at once, and the exploration of a function of such numbers, path by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import Any, Generic, NoReturn, TypeVar

from attrs import define, field, frozen

from .linear import LinearSum, bounded, has_no_solution, named, names_in, quotient, quotients_in

T = TypeVar("T")

MOST_PATHS = 300
"""The paths of one exploration."""

MOST_UNROLLED = 64
"""The trips of a repetition that is recorded trip by trip."""


class OutsideTheorem(Exception):
    """Raised where a scheme does something about which the theorem says nothing; the text names it."""


class DependsOnTrip(Exception):
    """Raised where the outcome of a comparison may differ between the trips of a repetition."""

    def __init__(self, trips: set[str]) -> None:
        self.trips = trips
        super().__init__(
            "a comparison depends on the trip of a repetition, whose number of trips is not a small constant"
        )


class Size:
    """A number for all sizes at once: the number of devices, an index of a device, a trip of a repetition, or a sum of
    these with whole factors.

    It supports +, -, * by an int, // and % by a positive int, % by another Size, min, max and comparisons. A comparison
    whose outcome depends on the size or the device splits the proof into two cases. A Size has no hash, no text and no
    value as an int, so `range(n)`, `[0] * n` and dictionaries raise TypeError.
    """

    __slots__ = ("_linear", "_paths")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, linear: LinearSum, paths: Exploration) -> None:
        self._linear, self._paths = linear, paths

    def _with(self, linear: LinearSum) -> Size:
        return Size(linear, self._paths)

    def __add__(self, other: Any) -> Size:
        return self._with(self._linear + linear_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Size:
        return self._with(self._linear - linear_of(other))

    def __rsub__(self, other: Any) -> Size:
        return self._with(linear_of(other) - self._linear)

    def __neg__(self) -> Size:
        return self._with(-self._linear)

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Size:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Size:
        factor = linear_of(other)
        if factor.terms and self._linear.terms:
            raise OutsideTheorem(f"the product of {self._linear} and {factor} is not linear")
        return self._with(self._linear * factor.constant if not factor.terms else factor * self._linear.constant)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Size:
        divisor = linear_of(other)
        if divisor.terms:
            raise OutsideTheorem(f"{self._linear} is divided by {divisor}, which is not a constant")
        if divisor.constant == 0:
            raise ZeroDivisionError("division of a size by zero")
        dividend, by = (self._linear, divisor.constant) if divisor.constant > 0 else (-self._linear, -divisor.constant)
        found = quotient(dividend, by)
        trips = {name for each in quotients_in([found]) for name in self._paths.trips_in(each.expression)}
        if trips:
            raise DependsOnTrip(trips)
        return self._with(found)

    def __rfloordiv__(self, other: Any) -> Size:
        return self._with(linear_of(other)) // self

    def __mod__(self, other: Any) -> Size:
        divisor = linear_of(other)
        if not divisor.terms:
            return self - (self // divisor.constant) * divisor.constant
        by = self._with(divisor)
        if not by >= 1:
            raise OutsideTheorem(f"the remainder of {self._linear} by {divisor}, which may not be positive")
        if self < 0:
            shifted = self + by
            if shifted < 0:
                raise OutsideTheorem(f"the remainder of {self._linear} by {divisor}: more than one {divisor} below 0")
            return shifted
        if self < by:
            return self
        shifted = self - by
        if shifted >= by:
            raise OutsideTheorem(f"the remainder of {self._linear} by {divisor}: {divisor} may fit more than once")
        return shifted

    def __rmod__(self, other: Any) -> Size:
        return self._with(linear_of(other)) % self

    def __divmod__(self, other: Any) -> tuple[Size, Size]:
        return self // other, self % other

    def __ge__(self, other: Any) -> bool:
        return self._paths.decide(self._linear - linear_of(other))

    def __gt__(self, other: Any) -> bool:
        return self._paths.decide(self._linear - linear_of(other) - 1)

    def __le__(self, other: Any) -> bool:
        return self._paths.decide(linear_of(other) - self._linear)

    def __lt__(self, other: Any) -> bool:
        return self._paths.decide(linear_of(other) - self._linear - 1)

    def __eq__(self, other: object) -> bool:
        return self <= other and self >= other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    def __repr__(self) -> str:
        return f"Size({self._linear})"

    def __str__(self) -> NoReturn:
        raise OutsideTheorem(f"the size {self._linear} is written as text, whose parts would depend on the size")

    def __format__(self, spec: str) -> NoReturn:
        self.__str__()


def linear_of(number: Any) -> LinearSum:
    """A Size or an int as a linear expression."""
    return number._linear if isinstance(number, Size) else LinearSum((), index(number))


@frozen(eq=False)
class Path(Generic[T]):
    """What a function returned on one path, and the constraints under which it takes this path."""

    constraints: tuple[LinearSum, ...]
    result: T


@define(eq=False)
class Exploration:
    """Runs a function of symbolic numbers once for each combination of outcomes of its comparisons.

    The paths cover all values that satisfy `given`: at each comparison with two possible outcomes, both are explored.
    """

    given: tuple[LinearSum, ...]
    _known: list[LinearSum] = field(factory=list, init=False)
    _trips: dict[str, int | None] = field(factory=dict, init=False)  # the trips of each repetition if constant
    _constraints: list[LinearSum] = field(factory=list, init=False)
    _decisions: list[bool] = field(factory=list, init=False)
    _taken: int = field(default=0, init=False)
    _repetitions: int = field(default=0, init=False)
    _unrolled: set[int] = field(factory=set, init=False)

    def paths(self, function: Callable[[], T]) -> list[Path[T]]:
        """Return a path for each combination of outcomes."""
        found: list[Path[T]] = []
        self._decisions = []
        while True:
            self._known, self._constraints = list(self.given), []
            self._taken = self._repetitions = 0
            self._trips = {}
            try:
                result = function()
            except DependsOnTrip as error:
                self._unroll(error)
                found, self._decisions = [], []
                continue
            found.append(Path((*self.given, *self._constraints), result))
            if len(found) > MOST_PATHS:
                raise OutsideTheorem(f"the comparisons make more than {MOST_PATHS} cases")
            del self._decisions[self._taken :]
            while self._decisions and not self._decisions[-1]:
                self._decisions.pop()
            if not self._decisions:
                return found
            self._decisions[-1] = False

    def _unroll(self, error: DependsOnTrip) -> None:
        """Record one repetition with a constant number of trips trip by trip from now on."""
        constant = [name for name in self._trips if name in error.trips and self._trips[name] is not None]
        if not constant or (self._trips[constant[0]] or 0) > MOST_UNROLLED:
            raise OutsideTheorem(str(error)) from None
        self._unrolled.add(int(constant[0][1:]))

    def assume(self, constraints: Iterable[LinearSum]) -> None:
        """Add facts that hold on the path for reasons other than comparisons, such as the range of an index."""
        added = tuple(constraints)
        self._known += added
        self._constraints += added

    def decide(self, constraint: LinearSum) -> bool:
        """Whether a constraint holds on this path."""
        if not constraint.terms:
            return constraint.constant >= 0
        opposite = -constraint - 1
        if has_no_solution([*self._known, opposite]):
            return True
        if has_no_solution([*self._known, constraint]):
            return False
        if trips := self.trips_in(constraint):
            raise DependsOnTrip(trips)
        if self._taken == len(self._decisions):
            self._decisions.append(True)
        outcome = self._decisions[self._taken]
        self._taken += 1
        fact = constraint if outcome else opposite
        self._known.append(fact)
        self._constraints.append(fact)
        return outcome

    def trips_in(self, expression: LinearSum) -> set[str]:
        """The trips of repetitions that an expression names."""
        return {name for name in names_in(expression) if name in self._trips}

    @contextmanager
    def repetition(self, count: LinearSum) -> Iterator[str | None]:
        """Within it, a new variable is a trip of a repetition; None if the repetition is recorded trip by trip."""
        number = self._repetitions
        self._repetitions += 1
        if number in self._unrolled:
            yield None
            return
        name = f"k{number}"
        self._trips[name] = None if count.terms else count.constant
        known = len(self._known)
        self._known += bounded(named(name), count)
        yield name
        # comparisons in the body are facts about the device, not about one trip: they stay known
        self._known[known : known + 2] = []
