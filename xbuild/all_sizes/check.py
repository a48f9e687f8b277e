"""`check_all`: whether a scheme can deadlock with any number of devices, by a proof for all numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf, lcm
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from ..checking.model.verdict import Verdict, report_lines
from ..checking.stages import check
from ..core.hooks import Reported
from ..core.report_text import MORE, WIDTH, Line, StyledText, labelled, plain
from ..process.limits import DeadlineError, within
from .linear import LinearSum, Quotient, names_in, quotients_in
from .ranking import Prover, instances_of, members_of
from .schemes import Scheme, all_events_happen, events_of
from .sizes import OutsideTheorem
from .waits import SIZE, Description, describe, families_of

Kind: TypeAlias = Literal["all", "hangs", "undecided"]

THEOREM = (
    "linear rankings of the events show that waits form no cycle (marked graphs: Commoner, Holt, Even and Pnueli 1971; "
    "nested rankings: Karp, Miller and Winograd 1967)"
)


# ----------------------------------------------------------------------------
# The verdict.


@frozen(eq=False)
class SizesProof:
    """The parameters of a proof for all sizes from `cutoff` on.

    `period`: the programs of the devices may depend on the remainder of the size by this number. `roles`: the kinds of
    devices, as constraints on the size and the index. `families`: the number of families of waits. `rankings`: the
    number of linear rankings. It is 0 if the events of the program text wait for each other without a cycle, whatever
    the devices.
    """

    cutoff: int
    period: int
    roles: tuple[str, ...]
    families: int
    rankings: int

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {
            "theorem": THEOREM, "cutoff": self.cutoff, "period": self.period, "roles": list(self.roles),
            "families": self.families, "rankings": self.rankings,
        }  # fmt: skip


@frozen(eq=False, repr=False)
class SizesVerdict(Reported):
    """Whether a program can deadlock with any number of devices. Only `all` is true.

    `kind` is `all` (no size from `at_least` on can deadlock), `hangs` (`size` is the smallest that is refused, and
    `refused` is the verdict of `xb.check` on it), or `undecided` (`reason` says which assumption of the theorem fails).
    `checked` lists the sizes that were checked one by one; `proof` is about all from its cutoff on.
    """

    kind: Kind
    at_least: int
    checked: tuple[int, ...] = ()
    proof: SizesProof | None = None
    size: int | None = None
    refused: Verdict | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether no number of devices can deadlock."""
        return self.kind == "all"

    def report(self, *, all: bool = False, width: int = WIDTH) -> str:
        """Return the report as text; `all` also shows the constraints of all kinds of devices."""
        return plain(self._styled_lines(all, width))

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the report as plain data."""
        return {
            "kind": self.kind,
            "at_least": self.at_least,
            "checked": list(self.checked),
            "proof": None if self.proof is None else self.proof.to_dict(),
            "size": self.size,
            "refused": None if self.refused is None else self.refused.to_dict(),
            "reason": self.reason or None,
        }

    def _styled_lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        if self.kind == "all":
            yield (StyledText(f"all: no number of devices from {self.at_least} on can deadlock", "good"),)
        elif self.kind == "hangs":
            fewer = "" if self.size == self.at_least else f", and with no smaller number from {self.at_least} on"
            yield (StyledText(f"hangs: with {self.size} devices{fewer}", "bad"),)
        else:
            yield (StyledText("undecided: the theorem does not apply to all numbers of devices", "waits"),)
        yield ()
        if self.reason:
            yield from labelled("why", self.reason, width)
        if self.proof is not None:
            yield from labelled("basis", THEOREM, width)
            yield from labelled("proof", _proof_text(self.proof), width)
            if all:
                for role in self.proof.roles:
                    yield from labelled("role", role, width, title="dim")
        if self.checked and self.kind != "hangs":
            yield from labelled(
                "sizes", f"{_sizes_text(self.checked)} were checked one by one: none can deadlock", width
            )
        if self.refused is not None:
            yield from report_lines(self.refused, all, width, more)

    def __str__(self) -> str:
        return self.report()

    __repr__ = __str__


def _proof_text(proof: SizesProof) -> str:
    period = f", period {proof.period}" if proof.period > 1 else ""
    parts = [
        _counted(len(proof.roles), "kind") + " of devices",
        _counted(proof.families, "family", "families") + " of waits",
    ]
    parts.append(_counted(proof.rankings, "ranking"))
    return f"for all sizes from {proof.cutoff} on (the cutoff){period}: {', '.join(parts)}"


def _counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _sizes_text(sizes: tuple[int, ...]) -> str:
    if len(sizes) > 2 and sizes == tuple(range(sizes[0], sizes[-1] + 1)):
        return f"{sizes[0]}-{sizes[-1]}"
    return ", ".join(map(str, sizes[:8])) + (", ..." if len(sizes) > 8 else "")


# ----------------------------------------------------------------------------
# The check.

FIRST = 8
"""The sizes that are checked one by one before a proof."""

CUTOFFS = (0, 1, 2, 4, 8, 16)
"""The cutoffs that are tried, counted from the first size."""

VALIDATED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 31)
"""The sizes, counted from the cutoff, for which the events for all sizes are compared with those of the size itself."""

SCANNED, MOST_EVENTS = 64, 30_000
"""The sizes that are run event by event if the first proof fails, and about how many events they may have together."""

FARTHEST = 1500
"""The largest size that is run event by event because of a threshold in the comparisons."""


def check_all(build: Callable[[Any], Any], at_least: int = 2, *, max_seconds: float | None = 60) -> SizesVerdict:
    """Decide whether a program can deadlock with any number of devices from `at_least` on.

    `build(n)` returns an `xb.Scheme` of size n, or None for a size without a program. It is called with ints and with
    an `xb.Size`, which stands for all sizes at once. The verdict is `all` only by a proof for all sizes, `hangs` for
    the smallest size that `xb.check` refuses, and `undecided` otherwise, with the reason.

    The proof assumes that `build`, the program and the keys of groups are functions of the size, the device and the
    trip alone, and use these only by arithmetic and comparisons: no `isinstance`, no variable that survives from one
    call or trip to the next, no catching of the errors that a Size raises. To detect a violation, the check compares
    the events that the proof is about with those of `build(n)` for 16 sizes. For a `build` that returns other programs,
    such as a Module, it decides size by size, and the verdict is `hangs` or `undecided`.

    After `max_seconds`, the verdict is `undecided`. Raises ValueError if `at_least` is not positive, and the errors of
    `build(n)` for ints.

    >>> import xbuild as xb
    >>> def ring(n):
    ...     def program(device):
    ...         device.exchange((device.index + 1) % n, (device.index - 1) % n)
    ...     return xb.Scheme(n, program)
    >>> verdict = xb.check_all(ring)
    >>> verdict.kind, verdict.proof.cutoff
    ('all', 2)

    Source: Operation Semantics, Send and Recv; docs/checker.md, All numbers of devices.
    """
    if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 1:
        raise ValueError(f"check_all: at_least must be a positive int, got {at_least!r}")
    run = _Run(build, at_least)
    try:
        with within(max_seconds):
            return run.verdict()
    except DeadlineError:
        if max_seconds is None:  # the deadline is that of a caller
            raise
        return run.undecided(f"the check took more than {max_seconds:g} seconds")


@define(eq=False)
class _Run:
    """One check for all sizes, and the sizes that were found to run to completion."""

    build: Callable[[Any], Any]
    at_least: int
    checked: list[int] = field(factory=list)
    _next: int = field(init=False)
    _is_scheme: bool = field(default=True, init=False)
    _unknown: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._next = self.at_least

    def verdict(self) -> SizesVerdict:
        if (found := self._check(self.at_least + FIRST)) is not None:
            return found
        if not self._is_scheme:
            found = self._check(self.at_least + 4 * FIRST)
            return found if found is not None else self.undecided(self._unknown or _NO_SCHEME)
        reason = ""
        for more in CUTOFFS:
            try:
                description = describe(self.build, self.at_least + more)
                found = self._scan(_threshold(description))
                return self._prove(description) if found is None else found
            except OutsideTheorem as error:
                reason = str(error)
            except Exception as error:
                reason = f"for a size that stands for all sizes, build raises {type(error).__name__}: {error}"
            if not more and (found := self._scan(self.at_least + SCANNED, MOST_EVENTS)) is not None:
                return found
        return self.undecided(reason)

    def undecided(self, reason: str) -> SizesVerdict:
        return SizesVerdict("undecided", self.at_least, tuple(self.checked), reason=reason)

    def _check(self, end: int) -> SizesVerdict | None:
        """Check each size below `end`; the verdict if one is refused."""
        for size in range(self._next, end):
            with _naming(size):
                program = self.build(size)
                verdict = None if program is None else check(program)
            if verdict is not None:
                self._is_scheme &= isinstance(program, Scheme)
                if verdict.refused:
                    return self._hangs(size, verdict)
                if verdict.kind == "ok":
                    self.checked.append(size)
                else:
                    self._is_scheme = False
                    self._unknown = f"the verdict on build({size}) is {verdict.kind}, so it is not known to run"
            self._next = size + 1
        return None

    def _scan(self, end: int, most_events: float = inf) -> SizesVerdict | None:
        """Run each size below `end` event by event; the verdict of the check if one hangs."""
        for size in range(self._next, end):
            with _naming(size):
                scheme = self.build(size)
                events = {} if scheme is None else events_of(scheme)
                if scheme is not None and not all_events_happen(events, scheme.members()):
                    return self._hangs(size, check(scheme))
            if scheme is not None:
                self.checked.append(size)
            self._next = size + 1
            most_events -= sum(map(len, events.values()))
            if most_events < 0:
                break
        return None

    def _hangs(self, size: int, verdict: Verdict) -> SizesVerdict:
        return SizesVerdict("hangs", self.at_least, tuple(self.checked), size=size, refused=verdict)

    def _prove(self, description: Description) -> SizesVerdict:
        if (found := self._check(description.at_least)) is not None:
            return found
        self._validate(description)
        families = families_of(description)
        rankings = Prover(description, families).prove()
        roles = tuple(", ".join(f"{each} >= 0" for each in role.constraints) for role in description.roles)
        cutoff = description.at_least
        period = lcm(*(each.divisor for each in _size_quotients(description)))
        proof = SizesProof(cutoff, period, roles, len(families), len(rankings))
        return SizesVerdict("all", self.at_least, tuple(self.checked), proof)

    def _validate(self, description: Description) -> None:
        """Compare the events for all sizes with those of single sizes."""
        for more in VALIDATED:
            size = description.at_least + more
            scheme, found = self.build(size), instances_of(description, size)
            if scheme is None or found is None:
                same = scheme is None and found is None
            else:
                same = events_of(scheme) == found.events and scheme.members() == members_of(description, size, found)
            if not same:
                raise OutsideTheorem(f"{_OTHERWISE} for size {size}: it is not a function of the size")


@contextmanager
def _naming(size: int) -> Iterator[None]:
    """Add the size to the errors of the block."""
    try:
        yield
    except Exception as error:
        error.add_note(f"check_all: build({size}) raised this error")
        raise


_OTHERWISE = "build does otherwise than for all sizes"
_NO_SCHEME = "build returns programs of single sizes; only an xb.Scheme says what happens with all sizes"


def _size_quotients(description: Description) -> set[Quotient]:
    constraints = _all_constraints(description)
    return {each for each in quotients_in(constraints) if names_in(each.expression) == {SIZE}}


def _all_constraints(description: Description) -> list[LinearSum]:
    found = [each for role in description.roles for each in role.constraints]
    return found + [each for paths in description.groups.values() for path in paths for each in path.constraints]


def _threshold(description: Description) -> int:
    """A size beyond which no comparison of a scheme has a new outcome, for common comparisons; at most FARTHEST."""
    constraints: Iterable[LinearSum] = _all_constraints(description)
    divisor = max((each.divisor for each in quotients_in(constraints)), default=1)
    return min(max((abs(each.constant) for each in constraints), default=0) * divisor + 2 * divisor + 4, FARTHEST)
