"""Data over the boxes of a picture: badges of numbers or texts, sums for folded boxes, and a scale of colours."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference.escaping import in_line

from ..core.builder import Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from .picture import ViewError

Datum: TypeAlias = "int | float | str"
STEPS = 9
_LETTERS = 28
_RATIO = 1000  # highest over lowest number, above which a scale is logarithmic
_PALE, _DEEP = "#ffffff", "#111111"

# The colours from low to high differ in lightness; a dark theme goes from dark to light, a light theme the other way.
_LIGHT = (
    "#ffffe5", "#fff7bc", "#fee391", "#fec44f", "#fe9929", "#ec7014", "#c24802", "#993404", "#662506",
)  # fmt: skip
_DARK = (
    "#2b1a10", "#4a2a12", "#6e3a10", "#8f4c0f", "#c87214", "#e38b24", "#f5b04c", "#fcd27f", "#fff0bf",
)  # fmt: skip
_INKS = {"light": (_DEEP,) * 6 + (_PALE,) * 3, "dark": (_PALE,) * 4 + (_DEEP,) * 5}


@frozen
class BoxData:
    """The data over a box: one value, or those of all boxes that are folded into it."""

    values: tuple[Datum, ...]

    @property
    def numbers(self) -> list[int | float]:
        return [each for each in self.values if not isinstance(each, str)]

    @property
    def highest(self) -> float | None:
        """The number that gives the box its colour: the highest finite one; None where no number is finite."""
        return max(filter(math.isfinite, map(_real, self.numbers)), default=None)

    @property
    def words(self) -> str:
        """The text of the badge: the value; of several values, the sum of the numbers, and the texts."""
        if len(self.values) == 1:
            return _cut(_word(self.values[0]))
        texts = list(dict.fromkeys(each for each in self.values if isinstance(each, str)))
        told = [f"sum {_word(_sum(self.numbers))}"] if self.numbers else []
        return ", ".join([*told, *(map(_cut, texts) if len(texts) < 3 else (f"{len(texts):,} texts",))])

    @property
    def description(self) -> str:
        """The text of the values on hover: one value in full; of several, the sum, the count and the highest."""
        if len(self.values) > 1:
            return (
                f"{self.words} of {len(self.values):,}, the highest {_word(self.highest)}"
                if self.numbers
                else self.words
            )
        return str(self.values[0])


@frozen
class Scale:
    """The name of the data of a picture, and the range that maps numbers to colours; `low` is None without numbers."""

    name: str
    low: float | None
    high: float | None
    is_log: bool = False

    def step(self, mark: BoxData | None) -> int | None:
        """The number of the colour of a mark, from 0; None where the mark has no finite number."""
        number = None if mark is None else mark.highest
        if number is None or self.low is None or self.high is None:
            return None
        if self.high == self.low:
            return STEPS // 2
        # The numbers are halved so that no difference overflows.
        low, high, at = (math.log(each) if self.is_log else each / 2 for each in (self.low, self.high, number))
        return min(max(int((at - low) / (high - low) * STEPS), 0), STEPS - 1)

    @property
    def words(self) -> tuple[str, str]:
        """The lowest and the highest number as text."""
        return _word(self.low), _word(self.high)

    @property
    def description(self) -> str:
        """The scale as a line of text."""
        return self.name if self.low is None else f"{self.name}: {self.words[0]} to {self.words[1]}{self.way}"

    @property
    def way(self) -> str:
        return ", logarithmic" if self.is_log else ""


def scale_of(name: str, values: Iterable[Datum]) -> Scale:
    """The scale of these values: logarithmic where the numbers are positive and of very different magnitude."""
    numbers = [*filter(math.isfinite, (_real(each) for each in values if not isinstance(each, str)))]
    if not numbers:
        return Scale(name, None, None)
    low, high = min(numbers), max(numbers)
    return Scale(name, low, high, low > 0 and high / low > _RATIO)


def colours(step: int, theme: str) -> tuple[str, str]:
    """The fill and the ink of a step of the scale."""
    return (_DARK if theme == "dark" else _LIGHT)[step], _INKS["dark" if theme == "dark" else "light"][step]


def combined(marks: Iterable[BoxData | None]) -> BoxData | None:
    """The mark of a folded box: the data of all boxes that are folded into it."""
    values = tuple(value for mark in marks if mark is not None for value in mark.values)
    return BoxData(values) if values else None


def by_instruction(program: Computation | Module | ModuleGroup, data: Mapping[Any, Any]) -> dict[Instruction, BoxData]:
    """The data by instruction; raises ViewError where a name is unknown or belongs to several instructions."""
    known: dict[str, dict[Instruction, str]] = {}
    for path, instruction in _paths(program):
        computation = path.rpartition("/")[0].rpartition("/")[2]
        for name in dict.fromkeys((instruction.name, f"{computation}/{instruction.name}", path)):
            known.setdefault(name, {}).setdefault(instruction, path)
    everything = {each for found in known.values() for each in found}
    marks: dict[Instruction, BoxData] = {}
    for key, value in data.items():
        instruction = key.instruction if isinstance(key, Value) else key
        if not isinstance(instruction, Instruction):
            instruction = _named(instruction, known)
        if instruction not in everything:
            raise ViewError(f"data for {instruction.name!r}: the program has no such instruction")
        if instruction in marks:
            raise ViewError(f"data contains {instruction.name!r} twice; give each instruction one number or one string")
        marks[instruction] = BoxData((_checked(instruction.name, value),))
    return marks


def _paths(program: Computation | Module | ModuleGroup) -> Iterator[tuple[str, Instruction]]:
    if isinstance(program, ModuleGroup):
        for device, module in program.modules.items():
            yield from ((f"d{device}/{path}", instruction) for path, instruction in _paths(module))
        return
    entry = program.entry if isinstance(program, Module) else program
    for computation in program.computations if isinstance(program, Module) else entry.reachable():
        yield from ((f"{computation.name}/{each.name}", each) for each in computation.instructions)


def _named(name: Any, known: Mapping[str, Mapping[Instruction, str]]) -> Instruction:
    found = known.get(name, {}) if isinstance(name, str) else {}
    if len(found) == 1:
        return next(iter(found))
    if found:
        ways = ", ".join(repr(path) for path in [*found.values()][:3])
        raise ViewError(
            f"{name!r} is the name of {len(found)} instructions; identify one of them by its computation, as in {ways}"
        )
    close = difflib.get_close_matches(str(name), [each for each in known if "/" in str(name) or "/" not in each], 3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ViewError(f"data for {name!r}: the program has no such instruction{hint}")


def _checked(name: str, value: Any) -> Datum:
    value = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
    if isinstance(value, Real | str) and not isinstance(value, bool):
        return in_line(" ".join(value.splitlines())) if isinstance(value, str) else value  # type: ignore[return-value]
    raise ViewError(f"data for {name!r}: expected a number or text, got {value!r}")


def _real(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _sum(numbers: list[int | float]) -> int | float:
    return sum(numbers) if all(isinstance(each, int) for each in numbers) else math.fsum(map(_real, numbers))


def _word(value: Datum | None) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}" if abs(value) < 10**15 else f"{_real(value):.6g}"
    return f"{float(value):,.6g}"


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
