"""Index pictures: one element of a result, and the elements of the operands from which it was computed, in brackets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape

from ..core.attributes import Array
from ..core.diagnostics import operand_labels
from ..core.op import OPS
from ..running import shared_evaluator
from ..traces import Trace
from .op_examples import OpExample

Block: TypeAlias = tuple[str, Array, list[int]]
"""A title, an array, and the numbers of the elements in brackets."""

_MOST = 64
"""The largest number of elements of an array that is drawn whole."""


def index_picture(example: OpExample) -> str | None:
    """The picture of an example; None where no elements are traced, or arrays are large.

    >>> from xbuild.reference.op_examples import op_example
    >>> print(index_picture(op_example("gather")))
    one element of the result, and what it was computed from, in brackets
    <BLANKLINE>
    result     operand    start_indices
     3   4      1   2      1  [9]
     5  [6]     3   4
                5  [6]
    """
    trace, event, instruction = example.trace, example.event, example.instruction
    shape = instruction.shape
    result = trace.values.get(event)
    if not isinstance(shape, Shape) or not shape.size or shape.size > _MOST or result is None:
        return None
    blocks = _received(example) if event in trace.across else _own(example)
    if blocks is None:
        return None
    device = f" on device {trace[event].device}" if event in trace.across else ""
    head = f"one element of the result{device}, and what it was computed from, in brackets"
    rows: list[Block] = [("result", np.asarray(result), [_shown(shape)]), *blocks]
    return "\n".join([head, "", *_beside([_drawn(*row) for row in rows])])


def _shown(shape: Shape) -> int:
    """The element of the result that is shown: one near the middle."""
    return int(np.ravel_multi_index([extent // 2 for extent in shape.dims], shape.dims)) if shape.dims else 0


def _own(example: OpExample) -> list[Block] | None:
    instruction, trace = example.instruction, example.trace
    tables = trace.origins.get(example.event) or _influence(example)
    if tables is None:
        return None
    labels = operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)
    element = _shown(instruction.shape)  # type: ignore[arg-type]
    found = []
    for label, number, table in zip(labels, trace.operands(example.event), tables, strict=True):
        value = None if number is None else _array(trace, number)
        if value is not None and 0 < value.size <= _MOST:
            found.append((label, value, [] if table is None else _used(table[element])))
    return found or None


def _influence(example: OpExample) -> list[Array | None] | None:
    """For an op without traced elements: the elements of each operand whose change, by one, changes the element."""
    trace, instruction = example.trace, example.instruction
    values = [array for n in trace.operands(example.event) if n is not None and (array := _array(trace, n)) is not None]
    evaluator, shown = shared_evaluator(), _shown(instruction.shape)  # type: ignore[arg-type]
    if len(values) < len(instruction.operands) or any(each.size > _MOST for each in values):
        return None
    if not evaluator.is_pure(instruction):
        return None

    def result(operands: list[Array]) -> Any:
        found = evaluator.value(instruction, operands, (0, 0))
        return None if found is None else np.asarray(found).reshape(-1)[shown]

    def changes(place: int, number: int) -> bool:
        operands = [*values[:place], _bumped(values[place], number), *values[place + 1 :]]
        return bool(result(operands) != before)

    before = result(values)
    if before is None:
        return None
    return [_rows(shown, [n for n in range(each.size) if changes(place, n)]) for place, each in enumerate(values)]


def _bumped(value: Any, number: int) -> Array:
    """The array with one more in one element."""
    found: Array = value.copy()
    found.reshape(-1)[number] += 1
    return found


def _rows(shown: int, elements: list[int]) -> Array | None:
    """A table of which only the row of the element that is shown is filled."""
    return np.tile(np.asarray(elements), (shown + 1, 1)) if elements else None


def _received(example: OpExample) -> list[Block] | None:
    """The operands of the devices from which the element came."""
    trace, instruction = example.trace, example.instruction
    across = next((each for each in trace.across[example.event] if each.part in (None, 0)), None)
    if across is None:
        return None
    element = _shown(instruction.shape)  # type: ignore[arg-type]
    devices, elements = across.device[element], across.element[element]
    found = []
    for device in range(trace.num_devices):
        operand = _operand_on(example, device)
        if operand is not None and 0 < operand.size <= _MOST:
            found.append((f"device {device}", operand, _used(elements[devices == device])))
    return found or None


def _operand_on(example: OpExample, device: int) -> Array | None:
    """The first operand that a device brought to the same collective."""
    trace = example.trace
    for number in range(len(trace)):
        if trace[number].device == device and trace[number].instruction is example.instruction:
            operand = next(iter(trace.operands(number)), None)
            return None if operand is None else _array(trace, operand)
    return None


def _array(trace: Trace, number: int) -> Array | None:
    """The value of an event, where it is one array that was kept."""
    value = trace.values.get(number)
    return None if value is None or isinstance(value, tuple) else np.asarray(value)


def _used(row: Array) -> list[int]:
    return sorted({int(each) for each in np.atleast_1d(row) if each >= 0})


def _drawn(label: str, value: Array, marked: list[int]) -> list[str]:
    """A title, and the array in rows; of more dimensions than two, one matrix below the other."""
    words = [f"{each:g}" if value.dtype.kind == "f" else str(each) for each in value.ravel().tolist()]
    words = [f"[{word}]" if n in marked else f" {word} " for n, word in enumerate(words)]
    width = max(map(len, words))
    columns = value.shape[-1] if value.ndim else 1
    lines = [" ".join(word.rjust(width) for word in words[n : n + columns]) for n in range(0, len(words), columns)]
    rows = value.shape[-2] if value.ndim > 2 else len(lines)
    return [label, *_parted(lines, rows)]


def _parted(lines: list[str], rows: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number and number % rows == 0:
            yield ""
        yield line


def _beside(blocks: list[list[str]]) -> Iterator[str]:
    """Blocks of lines side by side."""
    widths = [max(map(len, block)) for block in blocks]
    for number in range(max(map(len, blocks))):
        cells = (block[number] if number < len(block) else "" for block in blocks)
        yield "    ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
