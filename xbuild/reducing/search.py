"""The search of a reduction: candidates are tried in order, by several processes at a time, and parts go by halves."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, field

from shape_inference import XbuildError

from ..process.progress import during

State = TypeVar("State")
Key = TypeVar("Key", bound=Hashable)


class Tester(Protocol):
    """What answers whether the condition holds for the texts of a state; it tests `slots` states at a time."""

    slots: int

    def submit(self, texts: tuple[str, ...], seconds: float) -> Future[bool]: ...


class OutOfTimeError(Exception):
    """The error for a reduction that has reached its time limit."""


def valid(make: Callable[[], Iterable[State]]) -> Iterator[State]:
    """The states that a function returns, up to the first that the rules of the ops refuse."""
    try:
        yield from make()
    except (XbuildError, ValueError):  # such as an op that refuses an operand, or a module without devices
        return


@define(eq=False)
class Minimizer(Generic[State]):
    """The smallest state found so far, and the tries that found it.

    Only a state that `is_smaller` replaces the best. `texts` are those of a state, by which tries are
    remembered. With several slots, later candidates are tested before the answer of the first is known; the
    first, in order, for which the condition holds is taken, so the result is that of one slot.
    """

    best: State
    tester: Tester
    texts: Callable[[State], tuple[str, ...]]
    is_smaller: Callable[[State, State], bool]
    seconds: float
    try_seconds: float
    improved: Callable[[State], None] = lambda state: None
    tries: int = 0
    begun: float = field(factory=time.monotonic)
    _answers: dict[tuple[str, ...], Future[bool]] = field(factory=dict)

    @property
    def spent(self) -> float:
        """The seconds since the search began."""
        return time.monotonic() - self.begun

    def first(self, candidates: Iterable[tuple[Any, State]]) -> Any:
        """Take the first candidate that is smaller than the best and holds; returns its label, None without one."""
        best = self.best
        smaller = ((label, state, self.texts(state)) for label, state in candidates if self.is_smaller(state, best))
        waiting: list[tuple[Any, State, Future[bool]]] = []
        while True:
            for label, state, texts in islice(smaller, max(0, self.tester.slots - len(waiting))):
                waiting.append((label, state, self._answer(texts)))
            if not waiting:
                return None
            label, state, answer = waiting.pop(0)
            self.tries += 1
            if answer.result():
                self.best = state
                self.improved(state)
                return label

    def _answer(self, texts: tuple[str, ...]) -> Future[bool]:
        """The answer for the texts of a state, which are tested once; raises OutOfTimeError if no time is left."""
        if texts not in self._answers:
            left = self.seconds - self.spent
            if left <= 0:
                raise OutOfTimeError
            self._answers[texts] = self.tester.submit(texts, min(left, self.try_seconds))
        return self._answers[texts]

    def choose(
        self,
        what: str,
        parts: Callable[[State], Sequence[Key]],
        remove: Callable[[State, Sequence[Key]], Iterable[State]],
    ) -> None:
        """Take the first of these changes that holds, each on its own, until none does."""
        with during(f"trying smaller {what}", done=lambda: self.tries, unit="tries"):
            while self.first(_changed(self.best, parts(self.best), remove)) is not None:
                pass

    def remove_parts(
        self,
        what: str,
        parts: Callable[[State], Sequence[Key]],
        remove: Callable[[State, Sequence[Key]], Iterable[State]],
    ) -> None:
        """Remove the parts that the condition does not need: first all, then by halves, quarters and so on.

        The last parts go first, since others rarely need them. `parts` are the parts of a state, by names that survive
        the removal of others. `remove` returns the states without some of them, in order of preference.

        Source: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002.
        """
        left = list(parts(self.best))
        chunk = len(left)
        with during(f"removing {what}", done=lambda: len(left), unit="left"):
            while chunk:
                end, size = len(left), chunk
                while end:
                    found = self.first(_without_chunks(self.best, left, end, size, chunk, remove))
                    if found is None:
                        break
                    end, size = found[0], 2 * found[1]  # what is next to a part that goes often goes too
                    remaining = set(parts(self.best))
                    end = sum(key in remaining for key in left[:end])
                    left = [key for key in left if key in remaining]
                chunk = min(chunk // 2, (len(left) + 1) // 2)


def _without_chunks(
    best: State,
    parts: Sequence[Key],
    end: int,
    size: int,
    chunk: int,
    remove: Callable[[State, Sequence[Key]], Iterable[State]],
) -> Iterator[tuple[tuple[int, int], State]]:
    """The states without some parts before `end`, each with the end and the number of the removed parts.

    The last `size` parts come first, then chunks, the last one first.
    """
    places = [(end, size)] if size > chunk else []
    for place, count in (*places, *((each, chunk) for each in range(end, 0, -chunk))):
        gone = parts[max(0, place - count) : place]
        for state in valid(lambda gone=gone: remove(best, gone)):  # type: ignore[misc]
            yield (place, count), state


def _changed(
    best: State, changes: Sequence[Key], make: Callable[[State, Sequence[Key]], Iterable[State]]
) -> Iterator[tuple[int, State]]:
    """The states with one of these changes each, with the number of the change."""
    for number, change in enumerate(changes):
        for state in valid(lambda change=change: make(best, [change])):  # type: ignore[misc]
            yield number, state
