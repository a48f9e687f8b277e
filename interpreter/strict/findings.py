"""Findings of a strict run: a record for each place and kind, what led to it, and the report of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import field, frozen

from shape_inference import TupleShape
from shape_inference.escaping import Harmless
from shape_inference.kinds import STRICT_KINDS
from xbuild.core.graph import Instruction
from xbuild.core.hooks import Reported
from xbuild.core.issues import Issue, related_places
from xbuild.core.report_text import MORE, Line, folded, headed, more_text
from xbuild.properties.sources import operands_behind

if TYPE_CHECKING:
    from ..runtime.device import Standing


# ----------------------------------------------------------------------------
# Backward slice of an instruction: the instructions that lead to its value, through calls, to the parameters.

LONGEST = 12

ChainLink: TypeAlias = tuple[Instruction, int, tuple[int, ...]]
"""An instruction, its call depth, and the tuple index of the element in question."""

_PASSING = frozenset({"tuple", "get_tuple_element"})


def chain_of(standing: Standing) -> tuple[tuple[Instruction, ...], int]:
    """The nearest instructions of the backward slice, parameters first, and the number of instructions left out."""
    start: ChainLink = standing.instruction, len(standing.path) - 1, ()
    seen, waiting, chain = {start}, deque([start]), dict[Instruction, None]()
    while waiting:
        step = waiting.popleft()
        if _is_shown(*step[:2]):
            chain.setdefault(step[0])
        for source in _sources(step, standing):
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    nearest = set(list(chain)[:LONGEST])
    return tuple(i for i in _in_order(start, standing) if i in nearest), max(0, len(chain) - LONGEST)


def _in_order(start: ChainLink, standing: Standing) -> dict[Instruction, None]:
    """All instructions of the backward slice of a step, in topological order."""
    entered, order, stack = {start}, dict[Instruction, None](), [(start, _sources(start, standing))]
    while stack:
        sources = stack[-1][1]
        following = next((source for source in sources if source not in entered), None)
        if following is None:
            order.setdefault(stack.pop()[0][0])
        else:
            entered.add(following)
            stack.append((following, _sources(following, standing)))
    return order


def _is_shown(instruction: Instruction, depth: int) -> bool:
    if instruction.opcode == "parameter":
        return depth == 0
    return instruction.opcode != "constant" and instruction.opcode not in _PASSING


def _sources(step: ChainLink, standing: Standing) -> Iterator[ChainLink]:
    instruction, depth, picks = step
    if instruction.opcode == "parameter" and depth:
        yield from _caller_operands(instruction.attributes.number, standing, depth - 1, picks)
    elif instruction.opcode == "while":
        yield instruction.operands[0], depth, picks
    else:
        yield from ((operand, depth, path) for operand, path in operands_behind(instruction, picks))


def _caller_operands(number: int, standing: Standing, depth: int, picks: tuple[int, ...]) -> Iterator[ChainLink]:
    """The operands that a caller passes to a parameter; from a loop's second trip on, also the body's result."""
    caller = standing.path[depth]
    operands = caller.instruction.operands
    if caller.branch is not None:
        operands = (operands[1 + caller.branch],)
    elif caller.instruction.opcode in ("call", "fusion", "map", "scan"):
        operands = (operands[number],)
    yield from ((operand, depth, picks) for operand in operands)
    if (standing.trips[depth] or 0) > 1:
        yield from _previous_trip(caller.instruction, number, depth + 1, picks)


def _previous_trip(loop: Instruction, number: int, depth: int, picks: tuple[int, ...]) -> Iterator[ChainLink]:
    """The result of the previous trip that becomes a parameter; in a scan only carries have one."""
    root = loop.called[-1].root
    if loop.opcode == "while":
        yield root, depth, picks
    elif loop.opcode == "scan" and number >= len(loop.operands) - loop.attributes.num_carries:
        from_end = number - len(loop.operands)
        where = (len(root.shape.elements) + from_end,) if isinstance(root.shape, TupleShape) else ()
        yield root, depth, (*where, *picks)


# ----------------------------------------------------------------------------
# Findings of a strict run: a record for each place and kind, and the report of all records.


@frozen
class StrictFinding:
    """A finding of a strict run (a clamped index, a dropped update, a new NaN, ...) at one place on one device.

    `standing` is the instruction with its call path and loop trips. `index` is the element of its result, or None if
    the finding is not about a single element. `values` are the values of the operands at this element. `further` counts
    additional occurrences, at other elements or in other trips. `chain` is the backward slice of the instruction,
    parameters first.
    """

    kind: str = field(validator=lambda _, __, kind: _known(kind))
    what: str
    device: int
    standing: Standing
    index: tuple[int, ...] | None
    values: tuple[tuple[str, Any], ...]
    further: int = 0

    @property
    def instruction(self) -> Instruction:
        return self.standing.instruction

    @property
    def chain(self) -> tuple[Instruction, ...]:
        return chain_of(self.standing)[0]

    def lines(self, also: Sequence[int] = (), chained: bool = True) -> Iterator[str]:
        """Return the lines of a report: the finding, the other devices with the same finding, and the chain."""
        yield f"  {self.kind}  {self.standing} on {_devices(self.device, also)}{_source(self.instruction)}"
        index = (f"at {list(self.index)}",) if self.index else ()
        yield f"    {'  '.join((*index, *(f'{name} {_short(value)}' for name, value in self.values), self.what))}"
        if self.further:
            yield f"    and {self.further:,} more at this instruction"
        if chained:
            yield from self._chain_lines()

    def _chain_lines(self) -> Iterator[str]:
        chain, more = chain_of(self.standing)
        rows = [f"{_count(more, 'instruction')} before"] if more else []
        rows += [f"{instruction!r}{_source(instruction)}" for instruction in chain[:-1]]
        for number, row in enumerate(rows):
            yield f"    {'' if number else 'from':<4}  {row}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dict of plain data."""
        source = self.instruction.source
        return {
            "kind": self.kind,
            "what": self.what,
            "device": self.device,
            "instruction": self.instruction.name,
            "stands_at": str(self.standing),
            "trips": [trip for trip in self.standing.trips if trip is not None],
            "source": str(source) if source else None,
            "index": None if self.index is None else list(self.index),
            "values": {name: _short(value) for name, value in self.values},
            "further": self.further,
            "chain": [instruction.name for instruction in self.chain],
        }


@frozen
class StrictReport(Reported):
    """All findings of a run, in the order in which they were detected."""

    findings: tuple[StrictFinding, ...]

    def report(self, *, all: bool = False) -> str:
        """Return the report as text; `all` also shows the places after the tenth, which str() omits."""
        return "\n".join(self.lines(all))

    def __str__(self) -> str:
        return self.report()

    def _styled_lines(self) -> Iterable[Line]:
        return headed(self.lines())

    def lines(self, all: bool = False, more: str = MORE) -> Iterator[str]:
        """Return the lines of the report; `more` is the hint that says how to show omitted places."""
        total = sum(1 + finding.further for finding in self.findings)
        groups = self._groups()
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in self.findings))
        yield f"strict: {_count(total, 'finding')} at {_count(len(groups), 'place')} [{kinds}]"
        before: Any = None
        shown, hidden = folded(groups, all)
        for first, also in shown:
            chained = first.standing.path != before
            yield from ("",) * chained
            yield from first.lines(also, chained)
            before = first.standing.path
        if hidden:
            yield f"\n  {more_text(hidden, more, 'place')}"

    def _groups(self) -> list[tuple[StrictFinding, list[int]]]:
        """Findings that differ only in the device, grouped under the first of them."""
        groups: dict[Any, tuple[StrictFinding, list[int]]] = {}
        for finding in self.findings:
            key = finding.kind, str(finding.standing), finding.instruction, finding.index, finding.what
            known = groups.setdefault(key, (finding, []))
            if known[0] is not finding:
                known[1].append(finding.device)
        return list(groups.values())

    @property
    def issues(self) -> tuple[Issue, ...]:
        """An issue for each place and kind, with all devices that have the finding."""
        return tuple(_issue(first, also) for first, also in self._groups())

    def to_dict(self) -> dict[str, Any]:
        return {"findings": [finding.to_dict() for finding in self.findings]}


class StrictFailure(Harmless):
    """Raised after a strict run with findings. It has the `findings`, their `report`, and the `results` by device.

    >>> import xbuild as xb
    >>> try:
    ...     xb.evaluate(xb.computation(xb.f32[2], xb.f32[2])(xb.divide), [1.0, 3.0], [2.0, 0.0], strict=True)
    ... except xb.StrictFailure as failure:
    ...     [finding], results = failure.findings, failure.results
    >>> finding.kind, finding.index, finding.what
    ('inf_born', (1,), 'gives inf')
    >>> results
    [array([0.5, inf], dtype=float32)]
    """

    def __init__(self, report: StrictReport, results: list[Any]) -> None:
        super().__init__(str(report))
        self.report, self.results = report, results

    @property
    def findings(self) -> tuple[StrictFinding, ...]:
        return self.report.findings


def _issue(finding: StrictFinding, also: Sequence[int]) -> Issue:
    source = finding.instruction.source
    index = None if finding.index is None else list(finding.index)
    values = {name: _short(value) for name, value in finding.values}
    return Issue(
        rule=finding.kind,
        level="error",
        message=f"{finding.standing}{f' at {index}' if index else ''}: {finding.what}",
        source=source,
        instructions=(finding.instruction.name,),
        devices=(finding.device, *also),
        facts={"index": index, "values": values, "further": finding.further},
        related=related_places([(f"from {each.name}", each.source) for each in reversed(finding.chain)], source),
    )


def _known(kind: str) -> None:
    assert kind in STRICT_KINDS, kind


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _devices(first: int, also: Sequence[int]) -> str:
    if not also:
        return f"device {first}"
    numbers = [first, *also]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"devices {numbers[0]}-{numbers[-1]}"
    return f"devices {', '.join(map(str, numbers))}"


def _source(instruction: Instruction) -> str:
    return f"    {instruction.source}" if instruction.source else ""


def _short(value: Any) -> str:
    """The text of a scalar or of up to 6 elements; of more elements, the first two, the last and their number."""
    array = np.asarray(value)
    if not array.ndim:
        return str(array[()])
    if array.size <= 6:
        return " ".join(np.array2string(array, separator=", ", max_line_width=10**6).split())
    flat = [str(element) for element in (*array.flat[:2], *array.flat[-1:])]
    return f"[{flat[0]}, {flat[1]}, ..., {flat[2]}] ({array.size:,} elements)"
