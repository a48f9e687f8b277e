"""`Equivalence`: whether two programs compute the same function, how sure that is, and where they differ."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import frozen

from shape_inference import Dims
from xbuild.core.graph import Instruction

Kind: TypeAlias = Literal["equal", "different", "undecided"]


@frozen(eq=False)
class Difference:
    """Where two programs differ.

    `value` is the first value of the one that its results need, whose operands the other has, and which itself the
    other has not; `other` the instruction there that has right operands and from which on no value is right. None where
    there is none. `output` counts the
    arrays of the result, and is None where the values themselves were compared; `element` is the place in the array of
    `device` of the other program.
    """

    output: int | None
    device: int
    element: Dims
    value: Instruction | None = None
    other: Instruction | None = None

    def __str__(self) -> str:
        places = f"[{', '.join(map(str, self.element))}]"
        if self.output is None and self.value is not None and self.other is not None:
            where = f"differs on device {self.device} at {places}"
            return f"{_named(self.value)}\n  {where} from {_named(self.other)}"
        told = [f"output {self.output} differs on device {self.device} at {places}"]
        if self.value is not None:
            told.append(f"first value that the other program lacks: {_named(self.value)}")
        if self.other is not None:
            told.append(f"here the other program leaves it: {_named(self.other)}")
        return "\n  ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {
            "output": self.output, "device": self.device, "element": list(self.element),
            "value": self.value and self.value.name, "source": str(self.value.source) if self.value else None,
            "other": self.other and self.other.name,
        }  # fmt: skip


def _named(instruction: Instruction) -> str:
    where = f" ({instruction.source})" if instruction.source else ""
    return f"{instruction.opcode.replace('_', '-')} %{instruction.name}: {instruction.shape}{where}"


@frozen(kw_only=True, eq=False)
class Equivalence:
    """The verdict of `xb.equivalent`.

    `kind`: equal, different or undecided. `draws`: on how many random inputs both were evaluated. `log2_error`: the
    logarithm of the probability that programs whose arithmetic differs are called equal. `assumed`: classes of ops
    that are random functions or choices, with the number of instructions in both programs. `undecided`: classes that
    were not decided, or why it is open. `difference`: where they differ.
    """

    kind: Kind
    draws: int = 0
    log2_error: float = 0.0
    degree: int = 0
    assumed: tuple[tuple[str, int], ...] = ()
    undecided: tuple[str, ...] = ()
    difference: Difference | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the programs are equal."""
        return self.kind == "equal"

    def __str__(self) -> str:
        return "\n".join([self._head(), *self._rest()])

    def _head(self) -> str:
        if self.kind == "equal":
            return (
                f"equal: the same values over prime fields on {self.draws} random inputs; where arithmetic differs, "
                f"this happens with a probability below 2^{self.log2_error:.0f} (degree {self.degree})"
            )
        return f"{self.kind}: {self.reason}" if self.reason else self.kind

    def _rest(self) -> list[str]:
        lines = [f"  {self.difference}"] if self.difference is not None else []
        lines += [f"  not decided: {each}" for each in self.undecided]
        return lines + [f"  {_MEANING[name]}: {count} instructions ({name})" for name, count in self.assumed]

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "kind": self.kind, "draws": self.draws, "log2_error": self.log2_error, "degree": self.degree,
            "assumed": dict(self.assumed), "undecided": list(self.undecided), "reason": self.reason,
            "difference": self.difference and self.difference.to_dict(),
        }  # fmt: skip


_MEANING = {
    "functions": "taken as random functions of their operands",
    "exponents": "taken as powers with exponents in a second field, and discrete logarithms, by their laws",
    "order": "choices by a random order of numbers, seen at the drawn inputs alone",
    "integers": "computed as they are, at the drawn inputs alone",
    "bits": "taken as random functions between floats and their bits or integers",
    "random numbers": "taken as functions of their operands and of how often the device drew",
    "quotients": "taken not to divide by 0, nor to cancel what is 0 or infinite",
}
"""What is assumed of a class of ops, in words."""
