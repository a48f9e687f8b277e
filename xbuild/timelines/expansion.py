"""Spans written out: loops in a steady state trip by trip, or one trip and the number of the others."""

from __future__ import annotations

from collections.abc import Iterator

from .recording import Recorder, Repeat


def expanded(spans: Recorder, *, whole: bool) -> Iterator[tuple[int, float, int]]:
    """Each span by number with the seconds that it is moved by, loops in a steady state trip by trip.

    Where they are not wanted `whole`, such a loop gives one trip; the third number says how many more there are.
    """
    inner: dict[int, list[Repeat]] = {}
    for each in spans.repeats:
        inner.setdefault(each.first, []).append(each)
    yield from _between(
        0, len(spans), 0.0, 0, {key: sorted(v, key=lambda r: -r.last) for key, v in inner.items()}, whole
    )


def _between(
    first: int, last: int, shift: float, more: int, repeats: dict[int, list[Repeat]], whole: bool
) -> Iterator[tuple[int, float, int]]:
    number = first
    while number < last:
        here = [each for each in repeats.get(number, ()) if each.last <= last]
        if not here:
            yield number, shift, more
            number += 1
            continue
        outer = here[0]
        rest = {**repeats, number: here[1:]}
        for trip in range(outer.times if whole else 1):
            left = more if whole else more + outer.times - 1
            yield from _between(outer.first, outer.last, shift + trip * outer.period, left, rest, whole)
        number = outer.last
