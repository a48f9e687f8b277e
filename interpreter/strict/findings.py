"""Findings of a strict run: a record for each place and kind, and the report of all records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from shape_inference.escaping import Harmless
from shape_inference.kinds import STRICT_KINDS
from xbuild.core.graph import Instruction

from .chain import chain_of

if TYPE_CHECKING:
    from ..runtime.replica import Standing

SHOWN = 20


@frozen
class Finding:
    """A finding of a strict run (a clamped index, a dropped update, a NaN that was born, ...) at one place of a device.

    `standing` is the instruction with its call path and loop trips; `index` is the element of its result, None if the
    finding has no element; `values` are the operands' values there; `further` counts repetitions at other elements, in
    other trips. `chain` is the backward slice of the instruction, parameters first.
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
        """The lines of a report: the finding, the other devices with the same finding, and the chain."""
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
        """The finding as a dict of plain data."""
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
class StrictReport:
    """All findings of a run, in the order of their detection."""

    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = sum(1 + finding.further for finding in self.findings)
        groups = self._groups()
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in self.findings))
        yield f"strict: {_count(total, 'finding')} at {_count(len(groups), 'place')} [{kinds}]"
        before: Any = None
        for first, also in groups[:SHOWN]:
            chained = first.standing.path != before
            yield from ("",) * chained
            yield from first.lines(also, chained)
            before = first.standing.path
        if len(groups) > SHOWN:
            yield f"\n  and {len(groups) - SHOWN} more places"

    def _groups(self) -> list[tuple[Finding, list[int]]]:
        """Findings that differ only in the device, grouped under the first of them."""
        groups: dict[Any, tuple[Finding, list[int]]] = {}
        for finding in self.findings:
            key = finding.kind, str(finding.standing), finding.instruction, finding.index, finding.what
            known = groups.setdefault(key, (finding, []))
            if known[0] is not finding:
                known[1].append(finding.device)
        return list(groups.values())

    def to_dict(self) -> dict[str, Any]:
        return {"findings": [finding.to_dict() for finding in self.findings]}


class StrictFailure(Harmless):
    """Raised after a strict run with findings: `findings`, their `report`, and the `results` by device.

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
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings


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
    flat = [str(each) for each in (*array.flat[:2], *array.flat[-1:])]
    return f"[{flat[0]}, {flat[1]}, ..., {flat[2]}] ({array.size:,} elements)"
