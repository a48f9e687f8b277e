"""Linear expressions over integers, and proofs that no integers satisfy a list of linear inequalities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd
from typing import TypeAlias

from attrs import frozen

from ..process.limits import ask


@frozen
class Quotient:
    """The variable that is `expression` divided by `divisor`, rounded down."""

    expression: LinearSum
    divisor: int

    def __str__(self) -> str:
        return f"({self.expression}) // {self.divisor}"


Variable: TypeAlias = str | Quotient
Terms: TypeAlias = tuple[tuple[Variable, int], ...]


@frozen
class LinearSum:
    """A sum of variables with integer coefficients, and a constant. As a constraint: the sum is at least 0."""

    terms: Terms = ()
    constant: int = 0

    def __add__(self, other: LinearSum | int) -> LinearSum:
        if isinstance(other, int):
            return LinearSum(self.terms, self.constant + other)
        return combined(self, 1, other, 1)

    def __neg__(self) -> LinearSum:
        return self * -1

    def __sub__(self, other: LinearSum | int) -> LinearSum:
        return self + -other

    def __mul__(self, factor: int) -> LinearSum:
        return LinearSum(
            tuple((variable, factor * c) for variable, c in self.terms) if factor else (), factor * self.constant
        )

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(variable for variable, _ in self.terms)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value if the named variables have these values."""
        return self.constant + sum(c * value_of(variable, values) for variable, c in self.terms)

    def replaced(self, replacement: Callable[[str], LinearSum]) -> LinearSum:
        """The same expression with each name replaced, also inside quotients."""
        total = LinearSum((), self.constant)
        for variable, coefficient in self.terms:
            if isinstance(variable, str):
                total += replacement(variable) * coefficient
            else:
                total += quotient(variable.expression.replaced(replacement), variable.divisor) * coefficient
        return total

    def __str__(self) -> str:
        parts: list[str] = []
        for variable, coefficient in self.terms:
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            sign = "-" if coefficient < 0 else "+"
            parts.append(f"{sign} {size}{variable}" if parts else f"{'-' if coefficient < 0 else ''}{size}{variable}")
        if self.constant or not parts:
            sign = "-" if self.constant < 0 else "+"
            parts.append(f"{sign} {abs(self.constant)}" if parts else str(self.constant))
        return " ".join(parts)


def named(name: str) -> LinearSum:
    """The variable with this name."""
    return LinearSum(((name, 1),))


def value_of(variable: Variable, values: Mapping[str, int]) -> int:
    """The value of a variable if the named variables have these values."""
    if isinstance(variable, str):
        return values[variable]
    return variable.expression.evaluate(values) // variable.divisor


def combined(left: LinearSum, by: int, right: LinearSum, other: int) -> LinearSum:
    """`by * left + other * right`"""
    total = {variable: by * c for variable, c in left.terms}
    for variable, coefficient in right.terms:
        total[variable] = total.get(variable, 0) + other * coefficient
    terms = sorted(((variable, c) for variable, c in total.items() if c), key=_order)
    return LinearSum(tuple(terms), by * left.constant + other * right.constant)


def _order(term: tuple[Variable, int]) -> tuple[bool, str]:
    return not isinstance(term[0], str), str(term[0])


def quotient(expression: LinearSum, divisor: int) -> LinearSum:
    """`expression // divisor` for a positive divisor. Parts that the divisor divides leave the quotient."""
    whole = LinearSum(
        tuple((v, c // divisor) for v, c in expression.terms if c // divisor), expression.constant // divisor
    )
    rest = LinearSum(tuple((v, c % divisor) for v, c in expression.terms if c % divisor), expression.constant % divisor)
    return whole + LinearSum(((Quotient(rest, divisor), 1),)) if rest.terms else whole


def names_in(expression: LinearSum) -> set[str]:
    """The named variables of an expression, also those inside quotients."""
    names: set[str] = set()
    for variable in expression.variables:
        names |= {variable} if isinstance(variable, str) else names_in(variable.expression)
    return names


def quotients_in(expressions: Iterable[LinearSum]) -> dict[Quotient, None]:
    """The quotients of expressions, also those inside quotients."""
    found: dict[Quotient, None] = {}
    for expression in expressions:
        for variable in expression.variables:
            if isinstance(variable, Quotient):
                found |= quotients_in([variable.expression])
                found[variable] = None
    return found


# ----------------------------------------------------------------------------
# Proofs that constraints have no solution
#
# Equalities are eliminated by changes of variables that map integers to integers, both ways. Inequalities are divided
# by the common divisor of their coefficients, the constant rounded down, and combined as by Fourier and Motzkin. Each
# step keeps all integer solutions, so a contradiction proves that there was none. The converse does not hold: a list
# without integer solutions may end without a contradiction.

MOST_COMBINED = 4000
"""The inequalities that one elimination may have; beyond it, nothing is proved."""

_Row: TypeAlias = tuple[dict[int, int], int]


class _NoSolution(Exception):
    """Raised on a contradiction."""


def has_no_solution(inequalities: Iterable[LinearSum], equalities: Iterable[LinearSum] = ()) -> bool:
    """Whether it is proved that no integers make all inequalities at least 0 and all equalities 0."""
    at_least, equal = list(inequalities), list(equalities)
    for each in quotients_in([*at_least, *equal]):
        rest = each.expression + LinearSum(((each, -each.divisor),))
        at_least += [rest, LinearSum((), each.divisor - 1) - rest]
    numbers: dict[Variable, int] = {}
    try:
        _eliminate([_row(each, numbers) for each in at_least], [_row(each, numbers) for each in equal], len(numbers))
    except _NoSolution:
        return True
    return False


def _row(expression: LinearSum, numbers: dict[Variable, int]) -> _Row:
    return {numbers.setdefault(v, len(numbers)): c for v, c in expression.terms}, expression.constant


def _eliminate(rows: list[_Row], equal: list[_Row], fresh: int) -> None:
    """Eliminate all variables; raises _NoSolution on a contradiction."""
    while True:
        ask()
        while equal:
            fresh = _solve(equal.pop(), rows, equal, fresh)
        rows[:], implied = _tightened(rows)
        if implied:
            equal += implied
            continue
        if not rows:
            return
        variable = _cheapest(rows)
        above = [row for row in rows if row[0].get(variable, 0) > 0]
        below = [row for row in rows if row[0].get(variable, 0) < 0]
        others = [row for row in rows if not row[0].get(variable, 0)]
        if len(above) * len(below) + len(others) > MOST_COMBINED:
            return
        others += [_sum(upper, -lower[0][variable], lower, upper[0][variable]) for upper in above for lower in below]
        rows = others


def _sum(left: _Row, by: int, right: _Row, other: int) -> _Row:
    total = {variable: by * c for variable, c in left[0].items()}
    for variable, coefficient in right[0].items():
        total[variable] = total.get(variable, 0) + other * coefficient
    return {variable: c for variable, c in total.items() if c}, by * left[1] + other * right[1]


def _tightened(rows: list[_Row]) -> tuple[list[_Row], list[_Row]]:
    """The strongest of the rows with the same coefficients, rounded to integers, and the equalities that they imply."""
    strongest: dict[tuple[tuple[int, int], ...], int] = {}
    for terms, constant in rows:
        if not terms:
            if constant < 0:
                raise _NoSolution
            continue
        common = gcd(*terms.values())
        key = tuple(sorted((variable, c // common) for variable, c in terms.items()))
        bound = constant // common
        if key not in strongest or bound < strongest[key]:
            strongest[key] = bound
    implied = []
    for key, bound in strongest.items():
        opposite = strongest.get(tuple((variable, -c) for variable, c in key))
        if opposite is not None and bound + opposite < 0:
            raise _NoSolution
        if opposite is not None and bound + opposite == 0 and key[0][1] > 0:
            implied.append((dict(key), bound))
    if implied:
        known = {tuple(sorted(terms.items())) for terms, _ in implied}
        known |= {tuple((variable, -c) for variable, c in key) for key in known}
        strongest = {key: bound for key, bound in strongest.items() if key not in known}
    return [(dict(key), bound) for key, bound in strongest.items()], implied


def _solve(equality: _Row, rows: list[_Row], equal: list[_Row], fresh: int) -> int:
    """Eliminate a variable by an equality from all rows. Returns the number of the next new variable."""
    terms, constant = equality
    terms = {variable: c for variable, c in terms.items() if c}
    if not terms:
        if constant:
            raise _NoSolution
        return fresh
    common = gcd(*terms.values())
    if constant % common:
        raise _NoSolution
    terms, constant = {variable: c // common for variable, c in terms.items()}, constant // common
    variable = min(terms, key=lambda each: abs(terms[each]))
    size = abs(terms[variable])
    sign = 1 if terms[variable] > 0 else -1
    # sign * x = new - the sum of c // size; with size 1, the equality says that new is 0
    others = {each: c // size for each, c in terms.items() if each != variable and c // size}
    solution = {each: -sign * c for each, c in others.items()}
    shift = -sign * (constant // size)
    if size > 1:
        solution[fresh] = sign
        rest = {each: c % size for each, c in terms.items() if each != variable and c % size}
        rest[fresh] = size
        equal.append((rest, constant % size))
        fresh += 1
    for listed in (rows, equal):
        for number, (row, offset) in enumerate(listed):
            factor = row.get(variable, 0)
            if factor:
                left = {each: c for each, c in row.items() if each != variable}
                listed[number] = _sum((left, offset), 1, (solution, shift), factor)
    return fresh


def _cheapest(rows: list[_Row]) -> int:
    """The variable whose elimination makes the fewest rows."""
    above: dict[int, int] = {}
    below: dict[int, int] = {}
    for terms, _ in rows:
        for variable, coefficient in terms.items():
            counts = above if coefficient > 0 else below
            counts[variable] = counts.get(variable, 0) + 1
    return min(
        {*above, *below},
        key=lambda each: above.get(each, 0) * below.get(each, 0) - above.get(each, 0) - below.get(each, 0),
    )


def bounded(variable: LinearSum, count: LinearSum) -> Iterator[LinearSum]:
    """The constraints that a variable is at least 0 and below a count."""
    yield variable
    yield count - variable - 1
