"""Single edits of a program's text that keep its grammar, as a person who knows HLO might make by mistake."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_LINE = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = .*", re.MULTILINE)
_PARTS = re.compile(r"(\s*(?:ROOT )?%?[\w.-]+ = )(\([^()]*\)|\S+) ([a-z][\w-]*)\(([^()]*)\)(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(r", ([a-z_]+)=((?:\{(?:[^{}]|\{[^{}]*\})*\}|\"[^\"]*\"|[^,{}\s]|,(?! ))+)")
_DTYPE = re.compile(r"\b(?:pred|[su]\d+|b?f\d+\w*|c\d+)(?=\[)")
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,18}(?![\w.])")
_DIMS = re.compile(r"(?<=\[)\d{1,18}(?:,\d{1,18})*(?=\])")
DTYPES = ("f32", "s32", "pred", "bf16", "u8", "s64", "c64", "f64", "u32", "f16")
ALIKE = (
    ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "and", "or", "xor",
     "shift-left", "shift-right-logical", "atan2", "compare", "complex"),
    ("negate", "abs", "sine", "not", "popcnt", "is-finite", "real", "imag", "exponential", "sign", "floor", "copy",
     "convert", "reverse", "transpose", "broadcast", "reshape", "bitcast-convert", "count-leading-zeros", "cbrt"),
    ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"),
    ("select", "clamp", "dynamic-slice", "dynamic-update-slice", "scatter", "gather"),
    ("reduce", "reduce-window", "pad", "map", "sort", "dot", "convolution", "concatenate"),
)  # fmt: skip


class Slip:
    """One edit of one instruction, by a seed; `what` tells it in words."""

    def __init__(self, seed: int, text: str) -> None:
        self.random, self.what, self.text = random.Random(seed), "", text
        lines = [match for match in _LINE.finditer(text) if _PARTS.fullmatch(match[0])]
        if not lines:
            return
        line = self.random.choice(lines)
        found = _PARTS.fullmatch(line[0])
        assert found is not None
        self.head, self.shape, self.opcode, self.operands, self.rest = found.groups()
        computation = text[text.rfind("{\n", 0, line.start()) + 1 : line.start()]
        self.before = re.findall(r"^\s*(?:ROOT )?(%?[\w.-]+) = ", computation, re.MULTILINE) or ["x"]
        kind = self.random.choice(SLIPS)
        opcode = self.opcode
        kind(self)
        edited = f"{self.head}{self.shape} {self.opcode}({self.operands}){self.rest}"
        if edited != line[0]:
            self.what = f"{opcode}: {kind.__name__}"
            self.text = text[: line.start()] + edited + text[line.end() :]
            self.lines = (line[0].strip(), edited.strip())

    def near(self, match: re.Match[str]) -> str:
        return str(int(match[0]) + self.random.choice((-1, 1)))

    def one(self, pattern: re.Pattern[str], text: str, put: Callable[[re.Match[str]], str]) -> str:
        """The text with one match replaced."""
        found = list(pattern.finditer(text))
        if not found:
            return text
        match = self.random.choice(found)
        return text[: match.start()] + put(match) + text[match.end() :]


def attribute_dropped(slip: Slip) -> None:
    slip.rest = slip.one(_ATTRIBUTE, slip.rest, lambda match: "")


def attribute_number(slip: Slip) -> None:
    slip.rest = slip.one(_NUMBER, slip.rest, slip.near)


def attribute_order(slip: Slip) -> None:
    """A list the other way round, or its first entry twice, or without its last."""

    def put(match: re.Match[str]) -> str:
        items = match[0].split(",")
        return ",".join(slip.random.choice((items[::-1], [*items, items[0]], items[:-1])))

    slip.rest = slip.one(re.compile(r"(?<=\{)-?\d+(?:,-?\d+)*(?=\})"), slip.rest, put)


def attribute_word(slip: Slip) -> None:
    others = {"true": "false", "false": "true", "EQ": "LT", "FLOAT": "SIGNED", "rng_default": "rng_philox"}
    slip.rest = slip.one(
        re.compile(r"\btrue\b|\bfalse\b|(?<==)[A-Z]{2,}\b|rng_default"), slip.rest, lambda m: others.get(m[0], "EQ")
    )


def dimension_changed(slip: Slip) -> None:
    slip.shape = slip.one(_DIMS, slip.shape, lambda dims: slip.one(_NUMBER, dims[0], slip.near))


def dimension_bounded(slip: Slip) -> None:
    """A bound in the place of a size, or a size in that of a bound."""
    if "<=" in slip.shape:
        slip.shape = slip.shape.replace("<=", "", 1)
    else:
        slip.shape = slip.one(_DIMS, slip.shape, lambda dims: slip.one(_NUMBER, dims[0], lambda n: f"<={n[0]}"))


def rank_changed(slip: Slip) -> None:
    """Without layouts, which would not fit."""
    shape = re.sub(r"\{[^{}]*\}", "", slip.shape)
    slip.shape = slip.one(
        re.compile(r"\[[\d,]*\]"),
        shape,
        lambda m: slip.random.choice(("[]", "[1]", f"{m[0][:-1]},1]".replace("[,", "["), m[0].replace(",", "", 1))),
    )


def dtype_changed(slip: Slip) -> None:
    slip.shape = slip.one(_DTYPE, slip.shape, lambda match: slip.random.choice(DTYPES))


def operands_swapped(slip: Slip) -> None:
    items = slip.operands.split(", ")
    if len(items) > 1:
        a, b = slip.random.sample(range(len(items)), 2)
        items[a], items[b] = items[b], items[a]
    slip.operands = ", ".join(items)


def operand_changed(slip: Slip) -> None:
    items = slip.operands.split(", ")
    if slip.opcode not in ("parameter", "constant"):
        items[slip.random.randrange(len(items))] = slip.random.choice(slip.before)
    slip.operands = ", ".join(items)


def operand_count(slip: Slip) -> None:
    items = slip.operands.split(", ")
    if slip.opcode not in ("parameter", "constant"):
        items = slip.random.choice((items[:-1], [*items, items[-1]]))
    slip.operands = ", ".join(items)


def opcode_changed(slip: Slip) -> None:
    for family in ALIKE:
        if slip.opcode in family:
            slip.opcode = slip.random.choice(family)


def computation_changed(slip: Slip) -> None:
    """Another computation of the text is called."""
    names = re.findall(r"^(%?[\w.-]+) (?:\(.*)?\{$", slip.text, re.MULTILINE)
    if names:
        slip.rest = slip.one(
            re.compile(r"(?<=to_apply=)[%\w.-]+|(?<=condition=)[%\w.-]+|(?<=body=)[%\w.-]+|(?<=_computation=)[%\w.-]+"),
            slip.rest,
            lambda match: slip.random.choice(names),
        )


def result_dimension_everywhere(slip: Slip) -> None:
    """All numbers of the result are one more, as after a change of the program that was made half."""
    slip.shape = _DIMS.sub(lambda dims: ",".join(str(int(n) + 1) for n in dims[0].split(",")), slip.shape)


SLIPS = (
    attribute_dropped, attribute_number, attribute_number, attribute_order, attribute_word, dimension_changed,
    dimension_bounded, rank_changed, dtype_changed, operands_swapped, operand_changed, operand_count, opcode_changed,
    computation_changed, result_dimension_everywhere,
)  # fmt: skip
