"""`Equivalence`: whether two programs compute the same function, how certain that is, and where they differ.

Sections:

    Differences and counterexamples
    The verdict, and what it assumes
    Classes of instructions: those about which a verdict makes an assumption
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import field, frozen

from shape_inference import Dims, Shape
from shape_inference.trees import flatten
from xbuild.checking.model.verdict import Verdict
from xbuild.core.graph import Instruction, Module, Source
from xbuild.core.issues import Issue, related_places
from xbuild.core.op import opcodes
from xbuild.core.report_text import MORE, WIDTH, Line, LineReport, StyledText, folded, indented, more_line
from xbuild.properties.effects import name_in_report
from xbuild.properties.sites import reached

from .degrees import is_random
from .rules.evaluation import is_float, touches_floats

Kind: TypeAlias = Literal["equal", "different", "undecided"]


NAMES = ("the first program", "the second program")
"""What reports call two programs without names of their own."""

# ----------------------------------------------------------------------------
# Differences and counterexamples.


@frozen(eq=False)
class ProgramDifference:
    """Where two programs differ.

    `value` is the first value that the results of the first program need, that the other program lacks, and whose
    operands the other program has; `other` is the instruction of the other program with correct operands whose own
    value is incorrect, or the instruction at which the check refuses that program. Both are None if there is none;
    `near` has their lines, or the nearest ones. `output` counts the arrays of the result, and is None if the values
    themselves were compared; `element` is the place in the array of `device` of the other program.
    """

    output: int | None
    device: int
    element: Dims
    value: Instruction | None = None
    other: Instruction | None = None
    near: tuple[Source | None, Source | None] = (None, None)

    def __str__(self) -> str:
        return "\n  ".join(self.sentences())

    def sentences(self, names: tuple[str, str] = NAMES) -> Iterator[str]:
        """The sentences of a report; `names` are those of the two programs."""
        places = f"[{', '.join(map(str, self.element))}]"
        if self.output is None and self.value is not None and self.other is not None:
            yield _instruction_text(self.value)
            yield f"differs on device {self.device} at {places} from {_instruction_text(self.other)}"
            return
        if self.output is None and self.other is not None:
            yield f"{names[1]} is refused at {_instruction_text(self.other, self.near[1])}"
            return
        yield f"output {self.output} differs on device {self.device} at {places}"
        if self.value is not None:
            first = _instruction_text(self.value, self.near[0])
            yield f"the first value of {names[0]} that {names[1]} lacks is {first}"
        if self.other is not None:
            yield f"{names[1]} diverges at {_instruction_text(self.other, self.near[1])}"

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {
            "output": self.output, "device": self.device, "element": list(self.element),
            "value": self.value and self.value.name, "source": str(self.value.source) if self.value else None,
            "other": self.other and self.other.name,
        }  # fmt: skip


MOST_SHOWN = 1000
"""The numbers of an input that plain data show at most."""
_MOST_IN_TEXT = 8
"""The numbers of an array that a sentence shows at most."""


@frozen(eq=False)
class Counterexample:
    """An input on which two programs, run in floating point, have different results.

    `kind`: the kind of inputs, such as negative or tied. `arguments`: for each device of the first program its
    arguments, as `xb.execute` takes them. `output` counts the arrays of the result, `element` is the place in the
    array of `device` of the other program; `left` and `right` are the values of both programs there.
    """

    kind: str
    arguments: tuple[tuple[Any, ...], ...]
    output: int
    device: int
    element: Dims
    left: Any
    right: Any

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, names: tuple[str, str] = NAMES) -> str:
        """The sentence of a report; `names` are those of the two programs."""
        where = f"output {self.output} at [{', '.join(map(str, self.element))}]"
        where += f" of device {self.device}" if self.device or len(self.arguments) > 1 else ""
        values = f"{where} is {self.left} in {names[0]} and {self.right} in {names[1]}"
        arguments = "; ".join(_arguments_text(row) for row in self.arguments[:1])
        return f"{values}, for {self.kind} inputs such as {arguments}" if arguments else values

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data; inputs of more than 1000 numbers are left out."""
        rows = [_as_plain_data(row) for row in self.arguments]
        return {
            "kind": self.kind, "output": self.output, "device": self.device, "element": list(self.element),
            "left": _as_plain_data(self.left), "right": _as_plain_data(self.right),
            "arguments": rows if _count(self.arguments) <= MOST_SHOWN else None,
        }  # fmt: skip


def _arguments_text(arguments: tuple[Any, ...]) -> str:
    return "(" + ", ".join(_value_text(argument) for argument in arguments) + ")"


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return _arguments_text(value)
    if value is None:
        return "token"
    array = np.asarray(value)
    if array.size <= _MOST_IN_TEXT:
        return " ".join(str(array).split())
    first = " ".join(str(number) for number in array.ravel()[: _MOST_IN_TEXT // 2])
    return f"{Shape(array.dtype, array.shape)} {first} ..."


def _count(value: Any) -> int:
    return sum(map(np.size, flatten(value)))


def _as_plain_data(value: Any) -> Any:
    """A value as lists and numbers; text for NaN, infinities and complex numbers, which JSON lacks."""
    if isinstance(value, tuple | list):
        return [_as_plain_data(part) for part in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.ndim:
        return [_as_plain_data(row) for row in array]
    if array.dtype == np.bool_:
        return bool(array)
    if array.dtype.kind in "iu":
        return int(array)
    if array.dtype.kind == "c":
        return str(complex(array))
    found = float(array)
    return found if np.isfinite(found) else str(found)


def _instruction_text(instruction: Instruction, near: Source | None = None) -> str:
    where = f" ({instruction.source})" if instruction.source else f" (near {near})" if near else ""
    name = name_in_report(instruction)
    mark = "%" * (name == instruction.name)
    return f"{instruction.opcode.replace('_', '-')} {mark}{name}: {instruction.shape}{where}"


# ----------------------------------------------------------------------------
# The verdict, and what it assumes.


@frozen(kw_only=True, eq=False)
class Equivalence(LineReport):
    """The verdict of `xb.equivalent`.

    `kind` is equal, different or undecided. `draws` is the number of random inputs on which both programs were
    evaluated. `log2_error` is the base-2 logarithm of the probability that programs with different arithmetic are
    reported as equal. `assumed` lists classes of assumptions, each with a count: the number of instructions in both
    programs, of arguments with a domain, or of kinds of inputs for which the results diverge. `undecided` lists the
    classes that were not decided, or the reason why the verdict is undecided. `difference` shows where the programs
    differ. `kinds` lists the kinds of inputs on which both programs were run in floating point. `example` is an input
    on which the floating-point runs differ; if the programs are equal, it is a large or tiny input. `names` is what the
    report calls the two programs.
    """

    kind: Kind
    draws: int = 0
    log2_error: float = 0.0
    degree: int = 0
    assumed: tuple[tuple[str, int], ...] = ()
    undecided: tuple[str, ...] = ()
    difference: ProgramDifference | None = None
    reason: str = ""
    kinds: tuple[str, ...] = ()
    example: Counterexample | None = None
    details: Mapping[str, tuple[str, ...]] = field(factory=dict)
    names: tuple[str, str] = NAMES

    def __bool__(self) -> bool:
        """Whether the programs are equal."""
        return self.kind == "equal"

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the report: the verdict, its reasons, and the undecided or assumed classes.

        `more` is the hint that says how to show omitted lines.
        """
        style = {"equal": "good", "different": "bad", "undecided": "waits"}[self.kind]
        yield (StyledText(self._first_line(), style),)
        for reason in self._reasons():
            yield from indented(reason, width)
        undecided, hidden = folded(self.undecided, all)
        yield from ((f"  not decided: {name}",) for name in undecided)
        if hidden:
            yield more_line(hidden, more)
        assumed, hidden = folded(self.assumed, all)
        for name, count in assumed:
            yield from indented(_assumption_text(name, count), width, "dim")
            for text in self.details.get(name, ()):
                yield from indented(f"- {text}", width, "dim")
        if hidden:
            yield more_line(hidden, more)

    def _first_line(self) -> str:
        if self.kind == "equal":
            return "equal: both programs compute the same function, up to rounding"
        if self.kind == "different":
            return f"different: the programs compute different results{f' ({self.reason})' if self.reason else ''}"
        return f"{self.kind}: {self.reason}" if self.reason else self.kind

    def _reasons(self) -> Iterator[str]:
        if self.difference is not None:
            yield from self.difference.sentences(self.names)
        if self.kind == "equal":
            probability = f"a probability below 2^{self.log2_error:.0f} (degree {self.degree})"
            inputs = f"{self.draws} random input{'s' * (self.draws != 1)} over prime fields, where arithmetic is exact"
            yield f"evaluated on {inputs}: different programs agree there with {probability}"
            yield self._runs_text()
        if self.example is not None:
            yield self.example.sentence(self.names)

    def _runs_text(self) -> str:
        kinds = ", ".join(self.kinds)
        same = f"both also agree in floating point, up to rounding, on inputs of these kinds: {kinds}" if kinds else ""
        rest = self.reason if kinds or not self.reason else f"not run in floating point: {self.reason}"
        return "; ".join(filter(None, (same, rest)))

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The verdict as an issue: an error if the programs are different, a warning if it is undecided.

        >>> import xbuild as xb
        >>> one, other = (xb.computation(xb.f32[2])(f) for f in (xb.exp, xb.log))
        >>> [(issue.rule, issue.level) for issue in xb.equivalent(one, other).issues]
        [('different', 'error')]
        """
        if self.kind == "equal":
            return ()
        difference = self.difference
        found = [] if difference is None else [i for i in (difference.value, difference.other) if i is not None]
        near = () if difference is None else difference.near
        source = next((i.source for i in found if i.source is not None), next(filter(None, near), None))
        where = {} if difference is None else {"output": difference.output, "element": list(difference.element)}
        return (
            Issue(
                rule=self.kind,
                level="error" if self.kind == "different" else "warning",
                message="\n".join([self._first_line(), *self._reasons()]),
                source=source,
                instructions=tuple(i.name for i in found),
                devices=() if difference is None else (difference.device,),
                facts={**where, "undecided": list(self.undecided)},
                related=related_places([(_instruction_text(i), i.source) for i in found], source),
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {
            "kind": self.kind, "draws": self.draws, "log2_error": self.log2_error, "degree": self.degree,
            "assumed": dict(self.assumed), "undecided": list(self.undecided), "reason": self.reason,
            "difference": self.difference and self.difference.to_dict(), "kinds": list(self.kinds),
            "example": self.example and self.example.to_dict(),
            "details": {name: list(texts) for name, texts in self.details.items()},
        }  # fmt: skip


def _assumption_text(name: str, count: int) -> str:
    unit = _UNITS.get(name, "instruction")
    return f"{_MEANING[name]}: {count} {unit}{'s' * (count != 1)} ({name})"


_UNITS = {
    "hangs": "drawn input",
    "literals": "constant", "masks": "constant", "types": "output", "domain": "argument", "range": "kind",
    "constants": "pair", "layouts": "input", "rows": "function", "extents": "extent", "trips": "loop",
}  # fmt: skip
"""What is counted, if not instructions."""
_MEANING = {
    "functions": "treated as random functions of their operands",
    "exponents": "treated by their laws, as powers with exponents in a second field and as discrete logarithms",
    "roots": "treated as roots in the prime fields, if their operands have roots there",
    "order": "decided by a random order of numbers; tested only on the drawn inputs",
    "integers": "computed exactly; tested only on the drawn inputs",
    "bits": "treated as random functions between floats and their bits, or integers",
    "random numbers": "treated as functions of their operands and of the device's number of draws",
    "quotients": "assumed neither to divide by 0 nor to cancel a factor that is 0 or infinite",
    "literals": "read as exact numbers that round to them, such as 0.1",
    "hangs": "left out, since both programs hang there (deadlock): `xbuild check` says on which inputs",
    "masks": "large negative numbers, such as -1e9, taken as minus infinity; values that reach them are not compared",
    "types": "floats with a different width in the other program",
    "domain": "compared only on the numbers of a domain",
    "constants": "constants whose elements the text omits, taken as equal unknown numbers",
    "layouts": "split over the devices as the slices in both programs suggest",
    "extents": "made smaller, since their elements are interchangeable and so many are enough to show any difference",
    "trips": "compared at some trips, from arbitrary states; the other trips are taken to do the same",
    "rows": "said to map each row along some dimensions independently",
    "range": "inputs so large or so small that the results diverge",
}
"""What is assumed about a class, as text."""


def refusal(verdict: Verdict) -> Equivalence:
    """The verdict on programs of which the check refuses the other one, with the instruction that it names."""
    finding = next((each for each in verdict.findings if each.instructions), None)
    difference = None
    if finding is not None:
        difference = ProgramDifference(None, min(finding.devices, default=0), (), other=finding.instructions[0])
    reason = f"the check refuses the other program: {verdict.kind}"
    return Equivalence(kind="different", reason=reason, difference=difference)


# ----------------------------------------------------------------------------
# Classes of instructions: those about which a verdict makes an assumption.

ORDER = frozenset({"maximum", "minimum", "clamp", "compare", "sort", "topk", "sign", "abs", "floor", "ceil",
                    "round_nearest_even", "round_nearest_afz", "select_and_scatter"})  # fmt: skip
ROOTS = frozenset({"sqrt", "rsqrt", "cbrt"})
_BITS = frozenset({"bitcast_convert", "bitcast"})
_PLACED = opcodes(lambda op: op.elements in ("same_place", "mixed") and op.needs == "nobody")


def classes_of(modules: Iterable[Module], lawful: frozenset[str] = frozenset()) -> Counter[str]:
    """The number of instructions of each class in the programs."""
    found: Counter[str] = Counter()
    for module in modules:
        for computation in reached(module.entry):
            for instruction in computation.instructions:
                name = class_of(instruction)
                if name == "functions" and instruction.opcode in lawful:
                    name = "roots" if instruction.opcode in ROOTS else "exponents"
                found[name] += 1
    del found[""]
    return found


def class_of(instruction: Instruction) -> str:
    """The class of an instruction; empty if its value is decided."""
    opcode = instruction.opcode
    if opcode in ("rng", "rng_bit_generator"):
        return "random numbers"
    if not touches_floats(instruction):
        return "integers" if opcode in _PLACED else ""
    if opcode in ORDER:
        return "order"
    if is_random(instruction) or opcode in ("sqrt", "batch_norm_training", "batch_norm_inference", "batch_norm_grad"):
        return "functions"
    if opcode in _BITS and not _keeps_type(instruction):
        return "bits"
    if opcode == "convert" and not is_float(instruction.shape):
        return "bits"
    return "quotients" if opcode == "divide" else ""


def _keeps_type(instruction: Instruction) -> bool:
    return instruction.shape.dtype is instruction.operands[0].shape.dtype  # type: ignore[union-attr]
