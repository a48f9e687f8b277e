"""Lines against NumPy: slices, pads, reversals and joins of index arrays, in any order, and rounds of exchanges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from xbuild.sharding.partition.exchange import (
    MOST_MOVES,
    Line,
    full_line,
    join_lines,
    plan_exchange,
    plan_own_elements,
    plan_result_parts,
)

NOTHING = -1


def elements(line: Line) -> Any:
    """The numbers of the source's elements, -1 for padding."""
    found = np.full(line.extent, NOTHING)
    for each in line.segments:
        found[each.at : each.end : each.every] = each.first + each.step * np.arange(each.count)
    return found


def _step(chance: random.Random, line: Line, wanted: Any) -> tuple[Line, Any]:
    kind = chance.choice(("slice", "pad", "reverse", "join"))
    if kind == "slice":
        low = chance.randrange(line.extent + 1)
        high, stride = chance.randrange(low, line.extent + 1), chance.choice((1, 1, 2, 3))
        return line.slice(low, high, stride), wanted[low:high:stride]
    if kind == "pad":
        low, high, interior = chance.randrange(-1, 4), chance.randrange(-1, 4), chance.choice((0, 0, 1, 2))
        wide = np.full(max(0, (len(wanted) - 1) * (interior + 1) + 1), NOTHING)
        wide[:: interior + 1] = wanted
        wide = np.concatenate([np.full(max(low, 0), NOTHING), wide, np.full(max(high, 0), NOTHING)])
        wide = wide[max(-low, 0) : len(wide) - max(-high, 0)] if len(wide) + min(low, 0) + min(high, 0) >= 0 else None
        return (line, wanted) if wide is None else (line.pad(low, high, interior), wide)
    if kind == "reverse":
        return line.reverse(), wanted[::-1]
    part = line.slice(0, line.extent // 2)
    return join_lines([line, part]), np.concatenate([wanted, wanted[: line.extent // 2]])


@pytest.mark.parametrize("seed", range(200))
def test_lines_are_what_numpy_makes_of_indices(seed: int) -> None:
    chance = random.Random(seed)
    extent = chance.choice((1, 2, 5, 9, 16))
    line, wanted = full_line(extent), np.arange(extent)
    for _ in range(chance.randrange(1, 7)):
        line, wanted = _step(chance, line, wanted)
        assert line.extent == len(wanted)
        assert elements(line).tolist() == wanted.tolist()
        assert line.has_padding == (NOTHING in wanted)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_rounds_of_an_exchange_give_each_place_what_it_wants(seed: int, count: int) -> None:
    chance = random.Random(seed)
    extent = chance.choice((5, 9, 16))
    line, wanted = full_line(extent), np.arange(extent)
    for _ in range(chance.randrange(1, 5)):
        line, wanted = _step(chance, line, wanted)
    found = plan_result_parts(line, (extent,), count)
    assert found is not None
    (part,) = found.parts
    given = np.full((count, max(1, found.size)), NOTHING)
    for each in found.rounds:
        assert len({move.part for move in each.moves}) == len({move.place for move in each.moves}) == len(each.moves)
        for move in each.moves:
            s = move.segment
            given[move.place, s.at : s.end : s.every] = move.part * part + s.first + s.step * np.arange(s.count)
    flat = given[:, : found.size].reshape(-1)[: line.extent]
    assert flat.tolist() == wanted.tolist()


def test_a_round_of_a_ring_is_one() -> None:
    line = join_lines([full_line(16).slice(15, 16), full_line(16).slice(0, 15)])
    found = plan_result_parts(line, (16,), 4)
    assert found is not None
    assert found.bytes(8) == 8


def test_own_elements_are_not_sent() -> None:
    found = plan_own_elements(full_line(16).slice(3, 9), (16,), 4)
    assert found is not None
    assert found.bytes(8) == 0


def test_very_many_moves_are_not_planned() -> None:
    count = 65
    assert count * count > MOST_MOVES
    assert plan_exchange((1,), (full_line(count),) * count, (count,) * count) is None


def test_windows_of_very_many_devices_are_planned() -> None:
    line = join_lines([full_line(6000).slice(5999, 6000), full_line(6000), full_line(6000).slice(0, 1)])
    found = plan_result_parts(line, (6000,), 3000)
    assert found is not None
    assert found.bytes(1) <= 4
