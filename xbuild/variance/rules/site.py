"""What a rule of types is given of an instruction, and what it gives: types that operands need, type of the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import field, frozen

from shape_inference import RuleTable, ShapeError, XbuildError

from ...core.diagnostics import explain, operand_labels
from ...core.graph import Instruction
from ...core.op import OPS
from ...properties.mesh import Mesh
from ...properties.variances import Type, Variance, flat, like, spelled
from .marks import Mark, cast_of, mark_of

if TYPE_CHECKING:
    from .walk import Typed, Walk

variance = RuleTable("variance")
"""opcode -> rule(site): the types that the operands need, after casts, and the type of the result."""


@frozen(eq=False)
class Judgement:
    """The types that the operands have after casts, in the flat order of operands, and the type of the result.

    `called` are the typed computations that the instruction calls, in order; `reasons` tell, by the number of an
    operand, why it is cast.
    """

    operands: tuple[Type, ...]
    result: Type
    called: tuple[Typed, ...] = ()
    reasons: Mapping[int, str] = field(factory=dict)


@frozen(eq=False)
class Site:
    """An instruction with the types of its operands, on a mesh."""

    walk: Walk
    instruction: Instruction
    operands: tuple[Type, ...]

    @property
    def mesh(self) -> Mesh:
        return self.walk.mesh

    @property
    def mark(self) -> Mark | None:
        return mark_of(self.instruction) or cast_of(self.instruction)

    @property
    def labels(self) -> list[str]:
        """The name of each operand in the flat order."""
        schema = OPS[self.instruction.opcode]
        return operand_labels(schema, len(self.operands), self.instruction.segments)

    def shown(self, number: int) -> str:
        """An operand as a message names it."""
        return f"{self.labels[number]} %{self.instruction.operands[number].name} is {self.typed(number)}"

    def typed(self, number: int) -> str:
        """The shape of an operand with its type."""
        return shown(self.instruction.operands[number].shape, self.operands[number], self.mesh)

    def refuse(self, kind: str, message: str, *hints: str) -> NoReturn:
        """Refuse the instruction, with its operands and their types."""
        raise dressed(self, ShapeError(kind, message, hints))


@frozen
class _Shown:
    """An operand as messages show it."""

    shape: str
    name: str


def shown(shape: Any, given: Type, mesh: Mesh) -> str:
    """A shape with its type behind it, or leaf by leaf of a tuple."""
    if isinstance(given, tuple):
        return f"({', '.join(shown(*pair, mesh) for pair in zip(shape.elements, given, strict=True))})"
    return f"{shape}{given.text(mesh)}"


def dressed(site: Site, error: XbuildError) -> XbuildError:
    """The refusal with the op, its operands and their types, its attributes, and the user's line."""
    instruction = site.instruction
    operands: list[Any] = [
        _Shown(shown(o.shape, given, site.mesh), o.name)
        for o, given in zip(instruction.operands, site.operands, strict=True)
    ]
    where = instruction.where if isinstance(instruction.where, tuple) else None
    schema, attributes = OPS[instruction.opcode], instruction.attribute_values()
    return explain(error, schema, tuple(operands), instruction.segments, attributes, _place(where))


def _place(where: Any) -> tuple[CodeType, int] | None:
    return where  # type: ignore[no-any-return]


def leaves_of(types: Iterable[Type]) -> list[Variance]:
    """The leaves of several types, in order."""
    return [leaf for each in types for leaf in flat(each)]


def relike(leaves: Sequence[Variance], operands: Sequence[Instruction]) -> tuple[Type, ...]:
    """The leaves of all operands as one type for each."""
    given = iter(leaves)
    return tuple(like(given, operand.shape) for operand in operands)


def told(given: Type, mesh: Mesh) -> str:
    """A type in words: `invarying` where it is so along every axis."""
    text = spelled(given, mesh)
    return "invarying" if text == "{}" else text
