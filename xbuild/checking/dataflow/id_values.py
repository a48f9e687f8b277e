"""Evaluation of values that follow from device ids and constants alone, and comparison of them across devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from shape_inference import Shape

from ...core.graph import Instruction
from ...properties.structure import Structure
from ...running import Evaluator, as_in_a_run, shared_evaluator
from .agreement import MOST_DEEP, Agreement, Formula, Labels, Partitions

MOST_EVALUATED = 50_000  # values of single instructions in one walk
LARGEST = 4096  # elements of a value that is compared between devices


@define(eq=False)
class IdValues:
    """The evaluation of formulas on some devices, given by their ids (replica, partition)."""

    partitions: Partitions
    ids: Sequence[tuple[int, int]]
    left: int = MOST_EVALUATED
    evaluator: Evaluator = field(factory=shared_evaluator)
    structure: Structure = field(factory=lambda: Structure({}))
    _numbers: dict[tuple[Any, ...], int] = field(factory=dict, init=False)
    _compared: dict[int, tuple[Labels, dict[int, Any]] | None] = field(factory=dict, init=False)

    def id_of(self, instruction: Instruction, ids: Sequence[int]) -> Agreement:
        """The agreement of an instruction that gives the replica or partition id, given the id of each device."""
        return Agreement(self.partitions.by(ids), Formula(instruction, ()))

    def made(self, instruction: Instruction, operands: Sequence[Agreement]) -> Agreement | None:
        """The agreement of an op whose operands all have formulas; None where one has none, or the value is unknown.

        A value that is equal on all devices is evaluated only where it is needed.
        """
        shape = instruction.shape
        if not isinstance(shape, Shape) or shape.size > LARGEST or any(each.formula is None for each in operands):
            return None
        formula = Formula(instruction, tuple(operands))
        if formula.depth > MOST_DEEP:
            return None
        together = self.partitions.of_all([each.labels for each in operands])
        if together is self.partitions.everywhere:
            return Agreement(together, formula)
        number = self._number(formula)
        if number not in self._compared:
            self._compared[number] = self._compare(formula, together)
        found = self._compared[number]
        if found is None:
            return None
        labels, formula.values = found
        return Agreement(labels, formula)

    def _number(self, formula: Formula) -> int:
        """The value number of a formula: equal for equal ops on operands of equal numbers."""
        if formula.number is None:
            operands = [self._number(each.formula) for each in formula.operands if each.formula is not None]
            key = (self.structure.label(formula.instruction), *operands)
            formula.number = self._numbers.setdefault(key, len(self._numbers))
        return formula.number

    def _compare(self, formula: Formula, together: Labels) -> tuple[Labels, dict[int, Any]] | None:
        """The labels of the devices by their results, and the result of each label."""
        values: dict[int, Any] = {}
        with as_in_a_run():
            for place, label in enumerate(together):
                if label not in values:
                    values[label] = self._evaluated(formula, place)
                    if values[label] is None:
                        return None
        labels = self.partitions.by([values[label].tobytes() for label in together])
        return labels, {label: values[together[place]] for place, label in enumerate(labels)}

    def _evaluated(self, formula: Formula, place: int) -> Any:
        operands = [self.value(each, place) for each in formula.operands]
        self.left -= 1
        if self.left < 0 or any(each is None for each in operands):
            return None
        return self.evaluator.value(formula.instruction, operands, self.ids[place])

    def value(self, agreement: Agreement, place: int) -> Any:
        """The value on the device at this position; None where it cannot be computed."""
        formula, label = agreement.formula, agreement.labels[place]
        if formula is None:
            return None
        if label not in formula.values:
            formula.values[label] = self._evaluated(formula, place)
        return formula.values[label]

    def numbers(self, agreement: Agreement) -> list[Any] | None:
        """The value on every device; None where it cannot be computed on one of them."""
        if agreement.formula is None:
            return None
        with as_in_a_run():
            found = [self.value(agreement, place) for place in range(len(self.ids))]
        return None if any(each is None for each in found) else found
