"""Planted faults: operators that change one line of a program's HLO text, as people get partitions wrong."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from random import Random
from typing import TypeAlias

from attrs import asdict, frozen

import xbuild as xb

_LINE = re.compile(r"^(\s*)(ROOT )?([\w.-]+) = (\([^=]*?\)|\S+) ([\w-]+)\((.*?)\)(.*)$")
_GROUPS = re.compile(
    r"replica_groups=(?:\{(?:\{[\d,]*\},?)+\}|mesh\[.*?\] \{.*?\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?)"
)
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
_DIMS = re.compile(r"\[([\d,]*)\]")


@frozen
class Line:
    """An instruction as it is printed."""

    indent: str
    root: str
    name: str
    shape: str
    opcode: str
    operands: str
    rest: str

    @property
    def dims(self) -> list[int]:
        found = _DIMS.search(self.shape)
        return [int(n) for n in found[1].split(",") if n] if found else []

    def spelled(self, **changed: str) -> str:
        """The line with these parts changed."""
        parts = asdict(self) | changed
        return "{indent}{root}{name} = {shape} {opcode}({operands}){rest}".format(**parts)


Operator: TypeAlias = Callable[[Line, "Text"], Iterator[str]]
OPERATORS: dict[str, Operator] = {}


def operator(function: Operator) -> Operator:
    """Enter an operator: the texts that may stand for a line."""
    OPERATORS[function.__name__] = function
    return function


@frozen
class Text:
    """The lines of a program, those that are instructions, and the groups of devices of those that have some."""

    lines: list[str]
    groups: dict[str, list[list[int]]]

    @classmethod
    def of(cls, module: xb.Module) -> Text:
        groups = {
            each.name: [*map(list, each.attributes.replica_groups)]
            for computation in module.computations
            for each in computation.instructions
            if getattr(each.attributes, "replica_groups", ())
        }
        return cls(module.to_hlo().splitlines(), groups)

    @property
    def instructions(self) -> dict[int, Line]:
        found = {n: _LINE.match(line) for n, line in enumerate(self.lines)}
        return {n: Line(*((part or "") for part in match.groups())) for n, match in found.items() if match}

    @property
    def folds(self) -> dict[str, str]:
        """The op of each computation of scalars that is one of two parameters."""
        found = re.findall(
            r"^([\w.-]+) \{\n(?:.* parameter\(.*\n){2}  ROOT .* (\w+)\(.*\n\}", "\n".join(self.lines), re.M
        )
        return dict(found)

    def named(self, name: str) -> Line | None:
        return next((line for line in self.instructions.values() if line.name == name), None)


@frozen
class Mutant:
    """A program with one fault, and what it is."""

    operator: str
    line: str
    module: xb.Module
    name: str


@frozen
class Change:
    """One operator applied to one line of a program."""

    operator: str
    number: int
    line: Line
    changed: str

    def mutant(self, text: Text) -> Mutant | None:
        """The program that is so changed; None where it no longer is one."""
        whole = [*text.lines[: self.number], self.changed, *text.lines[self.number + 1 :]]
        try:
            return Mutant(self.operator, self.line.spelled().strip(), xb.parse_hlo("\n".join(whole)), self.line.name)
        except xb.XbuildError:
            return None


def changes(text: Text) -> Iterator[Change]:
    """All that operators make of the lines of a program."""
    for number, line in text.instructions.items():
        for name, change in OPERATORS.items():
            for changed in change(line, text):
                yield Change(name, number, line, changed)


def mutants(module: xb.Module) -> Iterator[Mutant]:
    """The programs that one operator makes of one line; those that no longer are programs are left out."""
    text = Text.of(module)
    for each in changes(text):
        found = each.mutant(text)
        if found is not None:
            yield found


def some_mutants(module: xb.Module, count: int, seed: int = 0) -> Iterator[Mutant]:
    """So many mutants, the operators by turns, each on lines by chance."""
    text, random = Text.of(module), Random(seed)
    by_operator: dict[str, list[Change]] = defaultdict(list)
    for each in changes(text):
        by_operator[each.operator].append(each)
    for several in by_operator.values():
        random.shuffle(several)
    turns = [each for row in zip_longest(*by_operator.values()) for each in row if each is not None]
    made = (found for each in turns if (found := each.mutant(text)) is not None)
    yield from islice(made, count)


@operator
def missing_reduction(line: Line, text: Text) -> Iterator[str]:
    """Each device keeps its part of the sum."""
    if line.opcode == "all-reduce" and not line.shape.startswith("("):
        yield line.spelled(opcode="copy", rest="")


@operator
def doubled_reduction(line: Line, text: Text) -> Iterator[str]:
    """What is summed already is summed again."""
    if line.opcode == "all-reduce" and not line.shape.startswith("("):
        first = line.spelled(root="", name=f"{line.name}.once")
        yield f"{first}\n{line.spelled(operands=f'{line.name}.once')}"


@operator
def part_added_again(line: Line, text: Text) -> Iterator[str]:
    """The part of the device itself is added to the sum of all."""
    if line.opcode == "all-reduce" and not line.shape.startswith("("):
        first = line.spelled(root="", name=f"{line.name}.all")
        yield f"{first}\n{line.spelled(opcode='add', operands=f'{line.name}.all, {line.operands}', rest='')}"


@operator
def bias_on_every_device(line: Line, text: Text) -> Iterator[str]:
    """What is to be added once to a sum is added to each part of it."""
    operands = line.operands.split(", ")
    if line.opcode != "add" or len(operands) != 2:
        return
    for reduced, other in (operands, operands[::-1]):
        source = text.named(reduced)
        if source is not None and source.opcode == "all-reduce":
            part = line.spelled(root="", name=f"{line.name}.part", operands=f"{source.operands}, {other}")
            yield f"{part}\n{source.spelled(root=line.root, name=line.name, operands=f'{line.name}.part')}"


@operator
def wrong_group(line: Line, text: Text) -> Iterator[str]:
    """Other devices meet: groups are split, merged, or have members exchanged or in another order."""
    match = _GROUPS.search(line.rest)
    if not match:
        return
    groups = text.groups[line.name.removesuffix(".exchanged")]  # as an all-to-all of one array is printed
    for other in _different(groups, _regrouped(groups), is_sum=line.opcode == "all-reduce"):
        spelled = ",".join(f"{{{','.join(map(str, group))}}}" for group in other)
        yield line.spelled(rest=line.rest.replace(match[0], f"replica_groups={{{spelled}}}"))


def _different(
    groups: list[list[int]], others: Iterator[list[list[int]]], *, is_sum: bool
) -> Iterator[list[list[int]]]:
    """Those that are other groups; to sums the order of members is nothing, and that of groups is nothing to all."""
    member = frozenset if is_sum else tuple
    seen = {frozenset(map(member, groups))}
    for other in others:
        key = frozenset(map(member, other))
        if key not in seen:
            seen.add(key)
            yield other


def _regrouped(groups: list[list[int]]) -> Iterator[list[list[int]]]:
    flat = sorted(n for group in groups for n in group)
    size = len(groups[0])
    if len(groups) == 1 and size % 2 == 0:
        yield [flat[: size // 2], flat[size // 2 :]]
        yield [flat[::2], flat[1::2]]
    if len(groups) > 1:
        yield [flat]
        yield [[flat[n + k * len(groups)] for k in range(size)] for n in range(len(groups))]
        yield [flat[n * size : (n + 1) * size] for n in range(len(groups))]
    yield [[group[-1], *group[:-1]] for group in groups]
    yield [group[::-1] for group in groups]


@operator
def wrong_pair(line: Line, text: Text) -> Iterator[str]:
    """A permutation goes the other way, one further, or lacks a pair."""
    match = _PAIRS.search(line.rest)
    if not match:
        return
    pairs = [(int(a), int(b)) for a, b in re.findall(r"\{(\d+),(\d+)\}", match[1])]
    count = max(max(pair) for pair in pairs) + 1
    for other in ([(b, a) for a, b in pairs], [(a, (b + 1) % count) for a, b in pairs], pairs[1:], pairs[:-1]):
        if other:
            spelled = ",".join(f"{{{a},{b}}}" for a, b in other)
            yield line.spelled(rest=line.rest.replace(match[0], f"source_target_pairs={{{spelled}}}"))


@operator
def shifted_slice(line: Line, text: Text) -> Iterator[str]:
    """A slice or a halo begins one element too early or too late."""
    match = re.search(r"slice=\{(.*)\}", line.rest)
    source = text.named(line.operands)
    if line.opcode != "slice" or not match or source is None:
        return
    spans = [[int(n) for n in each.split(":")] for each in re.findall(r"\[([\d:]+)\]", match[1])]
    for dim, (span, extent) in enumerate(zip(spans, source.dims, strict=True)):
        for step in (-1, 1):
            if span[0] + step >= 0 and span[1] + step <= extent:
                moved = [[span[0] + step, span[1] + step, *span[2:]] if n == dim else s for n, s in enumerate(spans)]
                spelled = ", ".join(f"[{':'.join(map(str, each))}]" for each in moved)
                yield line.spelled(rest=line.rest.replace(match[0], f"slice={{{spelled}}}"))


@operator
def swapped_axis(line: Line, text: Text) -> Iterator[str]:
    """Two dimensions are taken for each other: of a transpose, a broadcast, a gathering or a concatenation."""
    match = re.search(r"dimensions=\{([\d,]+)\}", line.rest)
    if not match or line.opcode == "reduce":
        return
    dims = [int(n) for n in match[1].split(",")]
    for other in _other_axes(dims, len(line.dims)):
        yield line.spelled(rest=line.rest.replace(match[0], f"dimensions={{{','.join(map(str, other))}}}"))


def _other_axes(dims: list[int], rank: int) -> Iterator[list[int]]:
    for first in range(len(dims) - 1):
        yield [*dims[:first], dims[first + 1], dims[first], *dims[first + 2 :]]
    if len(dims) == 1:
        yield from ([other] for other in range(rank) if other != dims[0])


@operator
def swapped_contraction(line: Line, text: Text) -> Iterator[str]:
    """A dot contracts another dimension of one extent."""
    for side in ("lhs", "rhs"):
        match = re.search(rf"{side}_contracting_dims=\{{(\d+)\}}", line.rest)
        if match:
            for other in range(4):
                if other != int(match[1]):
                    yield line.spelled(rest=line.rest.replace(match[0], f"{side}_contracting_dims={{{other}}}"))


@operator
def wrong_id(line: Line, text: Text) -> Iterator[str]:
    """The device takes itself for another."""
    if line.opcode == "partition-id":
        yield line.spelled(opcode="replica-id")


@operator
def wrong_reduction(line: Line, text: Text) -> Iterator[str]:
    """A collective or a fold reduces by another op."""
    match = re.search(r"to_apply=([\w.-]+)", line.rest)
    if line.opcode not in ("all-reduce", "reduce-scatter", "reduce") or not match:
        return
    folds = text.folds
    for other in sorted({fold: name for name, fold in folds.items() if fold != folds.get(match[1])}.values()):
        yield line.spelled(rest=line.rest.replace(match[0], f"to_apply={other}"))


@operator
def no_mean(line: Line, text: Text) -> Iterator[str]:
    """A quotient is left undivided, as of a sum by the number of devices or examples."""
    operands = line.operands.split(", ")
    if line.opcode == "divide":
        yield line.spelled(opcode="copy", operands=operands[0])


@operator
def swapped_operands(line: Line, text: Text) -> Iterator[str]:
    """The operands of what is not commutative change places."""
    operands = line.operands.split(", ")
    if line.opcode in ("subtract", "divide", "concatenate", "dynamic-update-slice") and len(operands) > 1:
        yield line.spelled(operands=", ".join([operands[1], operands[0], *operands[2:]]))


@operator
def other_number(line: Line, text: Text) -> Iterator[str]:
    """A number is another one, as where it counts the elements of a device for those of all."""
    if line.opcode == "constant" and re.fullmatch(r"-?[\d.e-]+", line.operands) and float(line.operands):
        value = float(line.operands) * 2
        yield line.spelled(operands=repr(int(value)) if value == int(value) else repr(value))
