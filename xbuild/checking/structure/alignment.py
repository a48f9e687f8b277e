"""Which collectives of different programs are one, where neither a channel id nor a name says it.

Names differ between programs that were compiled apart, and JAX gives many collectives one channel. The sequences of
the programs are aligned, as `diff` aligns lines: equal kind, type, groups and reducer count most, then the source line,
the op_name and the name. What stays apart is a collective that other programs lack, or have elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import TypeAlias

from attrs import frozen

from ...core.graph import Instruction, Module
from ...process.limits import ask
from ...properties.effects import base_of, collective_in
from ...properties.sites import Site, collectives_of
from ..model.program import DeviceClass, GridProgram
from .collective_matching import channel_of, compare_places, place_key

Place: TypeAlias = tuple[DeviceClass, Site]

MOST_SCORED = 250_000  # pairs of two sequences; of longer ones, each collective is sought near the one before it
MOST_SKIPPED = 50
_EQUAL, _LINE, _OP_NAME = 10_000, 4, 2  # and 1 for the name
_NUMBERED = re.compile(r"(?:\.\d+)+$")


def align_collectives(
    program: GridProgram, classes: Sequence[DeviceClass], channels: Collection[int | None]
) -> dict[tuple[Module, Hashable], Hashable]:
    """The identity of each site whose collective has one of these channels; `None` is that of those without one."""
    aligned: dict[tuple[Module, Hashable], Hashable] = {}
    for channel in channels:
        columns: list[list[Place]] = []
        for each in classes:
            sites = collectives_of(each.module.entry)
            places = [(each, site) for site in sites if channel_of(site.instruction) == channel]
            columns = _Aligner(program, columns, places).merged()
        for number, column in enumerate(columns):
            if channel is None and len(column) == 1 and not _is_numbered(column[0][1].instruction):
                continue
            for device_class, site in column:
                aligned[device_class.module, place_key(site)] = ("aligned", channel, number)
    return aligned


@frozen(eq=False)
class _Aligner:
    """The alignment of the places of one program with columns: those of other programs that are one collective."""

    program: GridProgram
    columns: list[list[Place]]
    places: list[Place]

    def merged(self) -> list[list[Place]]:
        """The columns and the places, each in the column that it fits, or in one of its own between its neighbours."""
        pairs = self._pairs()
        crossing = dict(self._crossing({*pairs.values()}, {*pairs}))
        merged: list[list[Place]] = []
        done = 0
        for number, place in enumerate(self.places):
            if number in pairs:
                column = pairs[number]
                merged += [*self.columns[done:column], [*self.columns[column], place]]
                done = column + 1
            elif number not in crossing:
                merged.append([place])
        late = {id(self.columns[column]): self.places[number] for number, column in crossing.items()}
        merged += self.columns[done:]
        return [[*each, late[id(each)]] if id(each) in late else each for each in merged]

    def _pairs(self) -> dict[int, int]:
        """The column of each place that has one, in the order of both: the pairs of the highest sum of scores."""
        rows, width = range(len(self.places)), len(self.columns)
        if len(self.places) * width > MOST_SCORED:
            return self._pairs_in_order()
        best = [[0] * (width + 1)]
        scores = []
        for row in rows:
            ask()
            scores.append([self._score(column, self.places[row]) for column in self.columns])
            above, here = best[-1], [0]
            for column, score in enumerate(scores[row]):
                here.append(max(above[column + 1], here[column], above[column] + score if score else 0))
            best.append(here)
        pairs: dict[int, int] = {}
        row, column = len(self.places), width
        while row and column:
            score = scores[row - 1][column - 1]
            if score and best[row][column] == best[row - 1][column - 1] + score:
                row, column = row - 1, column - 1
                pairs[row] = column
            elif best[row][column] == best[row - 1][column]:
                row -= 1
            else:
                column -= 1
        return dict(sorted(pairs.items()))

    def _pairs_in_order(self) -> dict[int, int]:
        """Of long sequences each place with the next column that fits, if it is near."""
        pairs: dict[int, int] = {}
        start = 0
        for number, place in enumerate(self.places):
            near = range(start, min(start + MOST_SKIPPED, len(self.columns)))
            scores = {column: self._score(self.columns[column], place) for column in near}
            found = max(scores, key=lambda each: (scores[each], -each), default=None)
            if found is not None and scores[found] >= _EQUAL:
                pairs[number], start = found, found + 1
        return pairs

    def _crossing(self, used: set[int], paired: set[int]) -> Iterator[tuple[int, int]]:
        """Pairs of equal collectives that are left, from one line: the programs have them in different orders."""
        free = [column for column in range(len(self.columns)) if column not in used]
        for number, (_, site) in enumerate(self.places):
            if number in paired or not free:
                continue
            for column in free:
                other = self.columns[column][0][1].instruction.source
                is_one_line = site.instruction.source in (None, other) or other is None
                if is_one_line and self._score(self.columns[column], self.places[number]) >= _EQUAL:
                    free.remove(column)
                    yield number, column
                    break

    def _score(self, column: list[Place], place: Place) -> int:
        """How well a place fits a column; 0 if they cannot be one collective."""
        first, second = collective_in(column[0][1].instruction), collective_in(place[1].instruction)
        assert first is not None
        assert second is not None
        if base_of(first) != base_of(second) or not any(self._meet(each, place) for each in column):
            return 0
        if _stem(first) != _stem(second) and not (_is_numbered(first) and _is_numbered(second)):
            return 0
        is_one_line = first.source is not None and first.source == second.source
        scope = _op_name(first)
        likeness = _LINE * is_one_line + _OP_NAME * (bool(scope) and scope == _op_name(second))
        likeness += first.name == second.name
        if compare_places(self.program, column[0], place) is None:
            return _EQUAL + likeness
        is_known = is_one_line or None in (first.source, second.source) or not _is_numbered(first)
        return likeness * is_known

    def _meet(self, a: Place, b: Place) -> bool:
        """Whether a device of one program is in a group of the other."""
        for (one, site), (other, _) in ((a, b), (b, a)):
            collective = collective_in(site.instruction)
            assert collective is not None
            if any(not {*other.devices}.isdisjoint(self.program.group(collective, device)) for device in one.devices):
                return True
        return False


def _is_numbered(instruction: Instruction) -> bool:
    """Whether a compiler may have given the name; any other name is that of a user, who pairs collectives by it."""
    return _stem(instruction) != instruction.name


def _stem(instruction: Instruction) -> str:
    """`psum` of `psum.14`: compilers number the instructions of a program."""
    return _NUMBERED.sub("", instruction.name)


def _op_name(instruction: Instruction) -> str:
    return str(instruction.annotations.get("metadata", {}).get("op_name", ""))
