"""Why a partitioned program has each of its collectives: the user wrote it, or XLA's partitioner inserted it for an op.

XLA names no reason. The reason follows from the opcode, from the op in the metadata for which XLA inserted the
collective, from the values around it, and from the shardings in the text before XLA partitioned the program, if there
is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.graph import Instruction, MetadataSource, Module, Source
from ..costs import Cost, CostRow
from ..linting.flow import MOVES, ValueFlow
from ..properties.effects import base_of, name_in_report, spelling
from ..sharding.hlo_text import TileAssignment, parsed
from ..sharding.propagation import short

_PRIMITIVES = {
    "all_reduce": ("psum", "psum2", "psum_invariant", "pmax", "pmin", "pmean", "pbroadcast"),
    "all_gather": ("all_gather", "all_gather_invariant", "pgather"),
    "reduce_scatter": ("reduce_scatter", "psum_scatter"),
    "all_to_all": ("all_to_all", "pswapaxes"),
    "ragged_all_to_all": ("ragged_all_to_all",),
    "collective_permute": ("ppermute", "pshuffle", "collective_permute", "psend", "precv"),
    "collective_broadcast": ("pbroadcast", "collective_broadcast"),
}
"""The primitives of JAX that become each collective: these the user wrote."""

_CONTRACTING = ("dot_general", "dot", "conv_general_dilated", "convolution", "einsum")
_SCATTERING = ("scatter", "scatter-add", "scatter_add", "segment_sum")
_MOVED = MOVES | {"copy", "fusion", "all_gather_start", "all_gather_done"}

_MOST_SEEN = 200
"""Values behind a collective that are searched for a line."""


@frozen
class CollectiveReason:
    """A collective of a partitioned program, whose it is, and why it is there.

    `is_written` says that the user wrote it; `scope` is the op that it serves, by its metadata. `cost` is its row in
    `xb.cost`.
    """

    instruction: Instruction
    is_written: bool
    scope: str
    reason: str
    source: Source | None
    cost: CostRow

    @property
    def whose(self) -> str:
        """Who put the collective into the program."""
        return "written by you" if self.is_written else "inserted by XLA"

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data."""
        collective = self.cost.collective
        return {
            "name": self.instruction.name,
            "opcode": spelling(self.instruction.opcode),
            "is_written": self.is_written,
            "scope": self.scope,
            "reason": self.reason,
            "source": None if self.source is None else str(self.source),
            "groups": str(collective).partition(" ")[2],
            "bytes": self.cost.link_bytes,
            "times": self.cost.times,
        }


def explain_collectives(cost: Cost, before: Module | None = None) -> Iterator[CollectiveReason]:
    """The collectives of a program that XLA partitioned, each with its reason, in the order of the program.

    `before` is the same program before XLA partitioned it.
    """
    for number, module in enumerate(cost.programs):
        walk = _Walk(module, before)
        yield from (walk.explain(row) for row in cost.rows if row.program == number and row.collective is not None)


class _Walk:
    """One program, the uses of its values, and the shardings that the program had before it was partitioned."""

    def __init__(self, module: Module, before: Module | None) -> None:
        self.module = module
        self.flow = ValueFlow(module.entry.reachable())
        self.before = before

    def explain(self, row: CostRow) -> CollectiveReason:
        instruction = row.instruction
        parts = _parts_of_scope(row.scope)
        opcode = base_of(instruction)
        primitives = [part.rpartition("/")[2].partition("[")[0] for part in parts] or [""]
        written = [each in _PRIMITIVES.get(opcode, ()) for each in primitives]
        is_written = all(written) or opcode in ("send", "recv")
        told = [
            f"you wrote {op}" if of_user else self._reason(instruction, opcode, op, number)
            for number, (op, of_user) in enumerate(zip(primitives, written, strict=True))
        ]
        reason = spelling(opcode) if is_written and not any(written) else "; ".join(dict.fromkeys(told))
        if len(parts) > 1:
            reason = f"{len(parts)} collectives, which XLA combined: {reason}"
        source = (
            instruction.source if isinstance(instruction.source, MetadataSource) else self._line_around(instruction)
        )
        return CollectiveReason(instruction, is_written, row.scope, reason, source, row)

    def _reason(self, collective: Instruction, opcode: str, op: str, number: int) -> str:
        """Why XLA inserted a collective for an op."""
        served = f"for {op}" if op else ""
        if opcode in ("all_reduce", "reduce_scatter"):
            scattered = ", and each device keeps its part" if opcode == "reduce_scatter" else ""
            return f"{self._sum_reason(collective, op, number)}{scattered}"
        if opcode == "all_gather":
            return self._gather_reason(collective, served)
        if opcode == "all_to_all":
            what = self._named_origin(collective.operands[0])
            return f"{what} moves from one split dimension to another {served}".rstrip()
        if opcode == "collective_permute":
            what = self._named_origin(collective.operands[0])
            return f"devices exchange parts of {what} {served}".rstrip()
        return f"XLA's partitioner inserted it {served}".rstrip()

    def _sum_reason(self, collective: Instruction, op: str, number: int) -> str:
        operand = collective.operands[min(number, len(collective.operands) - 1)]
        made = {each.opcode for each in self._made_by(operand)}
        if op in _CONTRACTING or (not op and made & {"dot", "convolution"}):
            return f"the dimension that {op or 'dot'} sums over is split, so each device holds a partial sum"
        if op.startswith("reduce") or (not op and "reduce" in made):
            return f"the dimension that {op or 'reduce'} reduces is split, so each device holds a partial result"
        if op in _SCATTERING or "scatter" in made:
            return f"each device adds its own updates in {op or 'scatter'}"
        if op.startswith("gather") or op == "take":
            return f"each device has some of the rows that {op} reads, and zeros for the others"
        return f"each device holds a part of the result{f' of {op}' if op else ''}"

    def _made_by(self, value: Instruction) -> Iterator[Instruction]:
        """The instruction that computes a value, into fusions and through moves."""
        origin = self.flow.origin(value, _moves_or_ends)
        yield origin
        for called in origin.called:
            yield from called.instructions

    def _gather_reason(self, gather: Instruction, served: str) -> str:
        what = self._named_origin(gather.operands[0])
        split = f"{what} is split along dimension {gather.attributes.all_gather_dimension}"
        result = self._result_number(gather)
        if result is not None:
            stated = _sharding_text(self.before.entry.root, result) if self.before else ""
            return f"{split}, but result {result} of the program {stated or 'must be whole, or in larger parts'}"
        if not served:
            user = next((each for each in self.flow.reached(gather, lambda u: u.opcode in _MOVED)), None)
            served = "" if user is None else f"for {name_in_report(user)}"
        return f"{split}, and each device needs all of it {served}".rstrip()

    def _named_origin(self, value: Instruction) -> str:
        """The value that moves, by the name of the argument if it is one, with its sharding before partitioning."""
        origin = self.flow.origin(value, _moves_or_ends)
        if origin.opcode != "parameter" or self.flow.home[origin] is not self.module.entry:
            return in_line(origin.name)
        number = origin.attributes.number
        whole = self.before.entry.parameters if self.before else ()
        stated = _sharding_text(whole[number], 0) if number < len(whole) else ""
        name = name_in_report(whole[number] if number < len(whole) else origin)
        return f"argument {number}, {in_line(name)}{f', which {stated},' if stated else ','}"

    def _result_number(self, value: Instruction) -> int | None:
        """The number of the result that a value becomes, if nothing else uses it."""
        root = self.module.entry.root
        results: Sequence[Instruction] = root.operands if root.opcode == "tuple" else (root,)
        for number, result in enumerate(results):
            if self.flow.origin(result, _moves_or_ends) is value:
                return number
        return None

    def _line_around(self, instruction: Instruction) -> Source | None:
        """The line of the nearest value behind or ahead of an instruction without one."""
        behind = list(islice(self.flow.sources([instruction]), _MOST_SEEN))
        near = [*self.flow.users.get(instruction, ()), *behind]
        return next((each.source for each in near if isinstance(each.source, MetadataSource)), instruction.source)


def _sharding_text(value: Instruction, number: int) -> str:
    """How the text before partitioning states the sharding of a value, or of an element of it; empty if it does not."""
    text = str(value.annotations.get("sharding", ""))
    try:
        found = parsed(text) if text else ()
    except XbuildError:  # a sharding that cannot be read is not shown
        return ""
    several = found if isinstance(found, tuple) else (found,)
    if number >= len(several):
        return ""
    stated = several[number].stated
    if isinstance(stated, TileAssignment):
        tiles = " x ".join(map(str, stated.dims))
        return f"is stated to be in {tiles} tiles"
    return f"is stated as {in_line(short(stated))}"


def _moves_or_ends(each: Instruction) -> bool:
    """Whether a value has the elements of an operand: it moves them, or ends what moves them."""
    return each.opcode in MOVES or each.opcode == "copy" or each.opcode.endswith("_done")


def _parts_of_scope(scope: str) -> list[str]:
    """The scopes of the collectives that XLA combined, which it writes as `jit(f)/(a:b)`; else the scope itself.

    >>> _parts_of_scope("jit(f)/(a/psum:b/dot_general)")
    ['a/psum', 'b/dot_general']
    """
    begin = _matching_open(scope) if scope.endswith(")") else 0
    parts, depth = [""], 0
    for letter in scope[begin + 1 : -1] if begin and scope[begin - 1] == "/" else "":
        depth += (letter == "(") - (letter == ")")
        if letter == ":" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts if len(parts) > 1 else [scope] if scope else []


def _matching_open(text: str) -> int:
    """The place of the parenthesis that the last one closes; 0 without one."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            return place
    return 0
