"""The page of a difference: two programs side by side, each instruction in one row with its partner.

Sections:

    Rows of a computation
    The sentence about the difference
    The page
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from attrs import evolve, frozen

from shape_inference import AnyShape, Shape, compatible, primitive_type
from shape_inference.elided import ElidedArray
from shape_inference.escaping import filled, in_html, in_json, policy
from shape_inference.trees import leaves

from ..core.graph import Computation, Instruction
from ..core.report_text import plain
from ..properties.effects import STRUCTURE, communicates_itself, spelling
from .difference import MOST_ELEMENTS, Change, ComputationDiff, Diff, count_kinds, styled_lines

# ----------------------------------------------------------------------------
# Rows of a computation
#
# The instructions of the new program in its order, each beside its partner, and the others of the old program after
# the instruction that preceded them.

KINDS = ("added", "removed", "changed", "fused", "moved", "renamed", "layout", "same")
"""The kinds of rows. Instructions whose layouts differ are equal for `xb.diff`, and the page marks them."""


@frozen
class Row:
    """An instruction of the old program, one of the new program, or a pair; `changes` are those of a pair.

    `is_elsewhere` marks an old instruction whose partner is in another computation, which has the row of the pair.
    """

    before: Instruction | None
    after: Instruction | None
    kind: str
    changes: tuple[Change, ...] = ()
    is_elsewhere: bool = False


@frozen
class Section:
    """The rows of two matched computations, or of an added or removed one."""

    diff: ComputationDiff
    rows: tuple[Row, ...]


@frozen
class _Sides:
    """Where the instructions of both programs are: the computation of each, and the computations that are fused."""

    old_home: Mapping[Instruction, Computation]
    new_home: Mapping[Instruction, Computation]
    fused: frozenset[Computation]

    @staticmethod
    def of(diff: Diff) -> _Sides:
        olds = [each.before for each in diff.computations if each.before is not None]
        news = [each.after for each in diff.computations if each.after is not None]
        old_home, new_home = ({one: each for each in side for one in each.instructions} for side in (olds, news))
        calls = (call for each in (*olds, *news) for call in each.calls if call.opcode == "fusion")
        return _Sides(old_home, new_home, frozenset(called for call in calls for called in call.called))

    def kind_of_move(self, before: Instruction, after: Instruction) -> str:
        return "fused" if {self.old_home[before], self.new_home[after]} & self.fused else "moved"


def sections_of(diff: Diff) -> tuple[Section, ...]:
    """The sections of a difference, in its order of computations."""
    sides = _Sides.of(diff)
    moved_away = {row.before: row.after for each in diff.computations for row in each.moved}
    return tuple(Section(each, tuple(_rows(each, sides, moved_away))) for each in diff.computations)


def _rows(each: ComputationDiff, sides: _Sides, moved_away: Mapping[Instruction, Instruction]) -> Iterator[Row]:
    partner = {after: before for before, after in each.matched} | {row.after: row.before for row in each.moved}
    changes = {row.after: row.changes for row in (*each.changed, *each.moved)}
    matched = {before for before, _ in each.matched}
    behind: dict[Instruction | None, list[Row]] = {}
    last: Instruction | None = None
    for old in each.before.instructions if each.before is not None else ():
        if old in matched:
            last = old
        elif old in moved_away:
            row = Row(old, None, sides.kind_of_move(old, moved_away[old]), is_elsewhere=True)
            behind.setdefault(last, []).append(row)
        else:
            behind.setdefault(last, []).append(Row(old, None, "removed"))
    yield from behind.get(None, ())
    for new in each.after.instructions if each.after is not None else ():
        before = partner.get(new)
        if before is None:
            yield Row(None, new, "added")
            continue
        found = (*map(_named, changes.get(new, ())), *_layout_changes(before.shape, new.shape))
        yield Row(before, new, _kind(before, new, found, sides, is_here=before in matched), found)
        yield from behind.get(before, ()) if before in matched else ()


def _kind(before: Instruction, after: Instruction, changes: Sequence[Change], sides: _Sides, is_here: bool) -> str:
    if not is_here:
        return sides.kind_of_move(before, after)
    what = {change.what for change in changes} - {"layout"}
    if not what:
        return "layout" if changes else "same"
    return "renamed" if what == {"name"} else "moved" if what <= {"name", "place"} else "changed"


def _named(change: Change) -> Change:
    """The change with the name of its operand, unless the op calls it `operand`."""
    return evolve(change, what="operand") if change.what == "operand operand" else change


def _layout_changes(old: AnyShape, new: AnyShape) -> Iterator[Change]:
    """The layouts that both shapes state and that differ."""
    if old is new or old == new or not compatible(old, new):
        return
    for a, b in zip(leaves(old), leaves(new), strict=True):
        if isinstance(a, Shape) and isinstance(b, Shape) and None not in (a.layout, b.layout) and a.layout != b.layout:
            yield Change("layout", str(a.layout), str(b.layout))


# ----------------------------------------------------------------------------
# The sentence about the difference
#
# The number of instructions that differ, then the most important ones: communication first.

_MOST_PHRASES = 3
_IS_EQUAL = ("same", "layout")


def sentence_of(diff: Diff, sections: Sequence[Section]) -> str:
    """The difference in one sentence: `1 of 8 instructions differs: one all-reduce (model.py:31) added after dot.5`."""
    rows = [row for section in sections for row in section.rows if not row.is_elsewhere]
    differing = [row for row in rows if row.kind not in _IS_EQUAL]
    layouts = sum(row.kind == "layout" for row in rows)
    more = f" The layouts of {layouts:,} further instruction{'s' * (layouts != 1)} differ." if layouts else ""
    if diff.same:
        return f"The programs are the same: {len(rows):,} instruction{'s' * (len(rows) != 1)}.{more}"
    if not differing:
        said = count_kinds(diff)
        return f"{said[0].upper()}{said[1:]}.{more}"
    groups: dict[tuple[int, int, str], list[Row]] = {}
    sides = _Sides.of(diff)
    for row in differing:
        groups.setdefault(_group(row, sides), []).append(row)
    ranked = [groups[key] for key in sorted(groups, key=lambda key: (*key[:2], -len(groups[key])))]
    phrases = [_phrase(group, sides) for group in ranked[:_MOST_PHRASES]]
    rest = sum(map(len, ranked[_MOST_PHRASES:]))
    phrases += [f"and {rest:,} more"] * bool(rest)
    count = f"{len(differing):,} of {len(rows):,} instructions differ{'s' * (len(differing) == 1)}"
    return f"{count}: {'; '.join(phrases)}.{more}"


def _one(row: Row) -> Instruction:
    found = row.after or row.before
    assert found is not None
    return found


def _group(row: Row, sides: _Sides) -> tuple[int, int, str]:
    """The group of a row in the sentence, after its rank: by opcode, or by the computation to which rows moved."""
    one, rank = _one(row), KINDS.index(row.kind)
    if row.kind == "renamed":
        return 2, rank, ""
    if row.kind in ("fused", "moved"):
        return 1, rank, _moves(row, sides)
    importance = 0 if communicates_itself(one) else 3 if one.opcode in STRUCTURE else 1
    return importance, rank, one.opcode if row.before is None else f"{row.before.opcode} {one.opcode}"


def _moves(row: Row, sides: _Sides) -> str:
    """Where a row moved: `fused into f`, `moved out of f`, `moved to main`, or `moved` in its computation."""
    assert row.before is not None
    assert row.after is not None
    old, new = sides.old_home[row.before], sides.new_home[row.after]
    if all(change.what != "computation" for change in row.changes):
        return "moved"
    if new in sides.fused:
        return f"fused into {new.name}"
    return f"moved out of {old.name}" if old in sides.fused else f"moved to {new.name}"


def _phrase(group: Sequence[Row], sides: _Sides) -> str:
    first, count = group[0], len(group)
    one, is_single = _one(first), count == 1
    opcode = spelling(one.opcode)
    source = f" ({str(one.source).partition(' in ')[0]})" if one.source else ""
    if first.kind in ("added", "removed"):
        where = _predecessor(first, sides)
        if is_single:
            return f"one {opcode}{source} {first.kind}{where}"
        return f"{count:,} {opcode} instructions {first.kind}, the first{source}{where}"
    assert first.before is not None
    if first.kind == "renamed":
        return f"{first.before.name} renamed to {one.name}" if is_single else f"{count:,} instructions renamed"
    if first.kind in ("fused", "moved"):
        return f"{one.name if is_single else f'{count:,} instructions'} {_moves(first, sides)}"
    old = spelling(first.before.opcode)
    if old != opcode:
        named = f"{one.name}{source}"
        return (
            f"{named} is now {opcode}, not {old}"
            if is_single
            else f"{count:,} {old} instructions are now {opcode}, the first is {named}"
        )
    what = ", ".join(dict.fromkeys(_aspect(change) for row in group for change in row.changes if _aspect(change)))
    if is_single:
        return f"{what} of {one.name}{source} changed"
    return f"{what} of {count:,} {opcode} instructions changed, first of {one.name}{source}"


def _aspect(change: Change) -> str:
    """What changed, for the sentence; empty for a new name, place or layout beside other changes."""
    return "" if change.what in ("name", "place", "layout") else change.what.partition(",")[0]


def _predecessor(row: Row, sides: _Sides) -> str:
    """After which instruction an added or removed one is: its first operand or, without operands, the previous one."""
    one = _one(row)
    if one.operands:
        return f" after {one.operands[0].name}"
    siblings = (sides.old_home if row.after is None else sides.new_home)[one].instructions
    place = siblings.index(one)
    return f" after {siblings[place - 1].name}" if place else ""


# ----------------------------------------------------------------------------
# The page

_MOST_TEXT, _MOST_CHANGE = 2_000, 500
"""The characters of an instruction, and of what it was before and after a change, that the page shows."""

_SMALL = 60
"""The rows up to which the page shows equal instructions, too, when it opens."""


def page_text(diff: Diff, before: str = "before", after: str = "after") -> str:
    """The page of a difference as HTML: one file without requests; `before` and `after` are the titles of the sides."""
    sections = sections_of(diff)
    sentence = sentence_of(diff, sections)
    script = _asset("diff.js")
    parts = {
        "policy": policy(script),
        "style": _asset("diff.css"),
        "state": "same" if diff.same else "different",
        "sentence": in_html(sentence),
        "changes": "".join(
            f"<li>{in_html(_shortened(f'module {change}', _MOST_TEXT))}</li>" for change in diff.changes
        ),
        "before": in_html(before),
        "after": in_html(after),
        "report": _shortened_lines(plain(styled_lines(diff))),
        "data": _NOT_ASCII.sub(lambda letter: json.dumps(letter[0])[1:-1], in_json(_data(sections, before, after))),
        "script": script,
    }
    return filled(_asset("diff.html"), parts).encode("ascii", "xmlcharrefreplace").decode()


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _data(sections: Sequence[Section], before: str, after: str) -> dict[str, Any]:
    """The programs for the page: instructions of each side by number, and the rows of each section by these numbers."""
    sides = [_Side() for _ in range(2)]
    for section in sections:
        for side, computation in zip(sides, (section.diff.before, section.diff.after), strict=True):
            side.add(computation.instructions if computation is not None else ())
    shown = [_shown_section(section, sides) for section in sections]
    for row in (row for section in sections for row in section.rows if row.before and row.after):
        sides[1].leave_out(row.after, sides[0], row.before)
    count = sum(len(section.rows) for section in sections)
    return {
        "names": [before, after],
        "kinds": KINDS,
        "isSmall": count <= _SMALL,
        "sides": [{**side.shown, "lines": [*side.sources]} for side in sides],
        "sections": shown,
    }


class _Side:
    """The instructions of one program, numbered in the order of the page."""

    def __init__(self) -> None:
        self.number: dict[Instruction, int] = {}
        self.sources: dict[str, int] = {"": 0}
        self.shown: dict[str, Any] = {"texts": [], "operands": [], "sources": []}

    def add(self, instructions: Sequence[Instruction]) -> None:
        self.number |= {each: number for number, each in enumerate(instructions, len(self.number))}
        for each in instructions:
            source = str(each.source or "")
            self.shown["texts"].append(_instruction_text(each))
            self.shown["operands"].append([self.number[one] for one in each.operands if one in self.number])
            self.shown["sources"].append(self.sources.setdefault(source, len(self.sources)))

    def leave_out(self, one: Instruction | None, other: _Side, partner: Instruction | None) -> None:
        """Leave out the text of an instruction if its partner on the other side has the same text."""
        assert one is not None
        assert partner is not None
        number = self.number[one]
        if self.shown["texts"][number] == other.shown["texts"][other.number[partner]]:
            self.shown["texts"][number] = 0


def _instruction_text(instruction: Instruction) -> str:
    """The HLO text of an instruction, without the elements of a large constant."""
    if instruction.opcode == "constant":
        array = instruction.attributes.literal
        if not isinstance(array, ElidedArray) and array.size > MOST_ELEMENTS:
            elided = ElidedArray(primitive_type(array.dtype), array.shape)
            instruction = evolve(instruction, attributes=evolve(instruction.attributes, literal=elided))
    return _shortened(repr(instruction), _MOST_TEXT)


def _shortened_lines(report: str) -> str:
    """The report as HTML, for a browser without scripts."""
    return "\n".join(in_html(_shortened(line, _MOST_TEXT)) for line in report.split("\n"))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _shown_section(section: Section, sides: Sequence[_Side]) -> dict[str, Any]:
    both = section.diff.before, section.diff.after
    return {
        "names": [each and each.name for each in both],
        "sizes": [0 if each is None else len(each.instructions) for each in both],
        "changes": [str(change) for change in section.diff.changes],
        "rows": [_shown_row(row, sides) for row in section.rows],
    }


def _shown_row(row: Row, sides: Sequence[_Side]) -> list[Any]:
    pair = [-1 if one is None else side.number[one] for side, one in zip(sides, (row.before, row.after), strict=True)]
    if row.kind == "same":
        return pair
    changes = [[c.what, *(_shortened(each, _MOST_CHANGE) for each in (c.before, c.after))] for c in row.changes]
    return [*pair, KINDS.index(row.kind), *([changes] if changes else [])]
