"""Which ops may take unreduced operands: those that are linear in all of them together, so that sums go through."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from shape_inference import PrimitiveType, Shape

from ...core.graph import Computation, Instruction


def always(instruction: Instruction) -> str | None:
    """Linear whatever the attributes are."""
    return None


@frozen
class Linear:
    """An op that is linear in the operands `data`, where `factors` are one value on all devices.

    `unless` gives the reason why an instruction of the op is not linear after all, or None. `either`: one side is the
    data and the other the factor, whichever way.
    """

    data: tuple[str, ...]
    factors: tuple[str, ...] = ()
    unless: Callable[[Instruction], str | None] = always
    either: bool = False


def _inexact(convert: Instruction) -> str | None:
    """Why a conversion does not commute with a sum: only widening of floats, and of real to complex, does."""
    (operand,) = convert.operands
    assert isinstance(operand.shape, Shape)
    assert isinstance(convert.shape, Shape)
    source, target = operand.shape.dtype, convert.shape.dtype
    if source is target or (_is_real_or_complex(source) and _is_real_or_complex(target) and _widens(source, target)):
        return None
    return f"a conversion from {source} to {target} does not commute with a sum"


def _is_real_or_complex(dtype: PrimitiveType) -> bool:
    return dtype.kind in ("float", "complex")


def _widens(source: PrimitiveType, target: PrimitiveType) -> bool:
    """Whether every number of one type is a number of the other."""
    if source.kind == "complex" and target.kind != "complex":
        return False
    bits = target.bits // (2 if target.kind == "complex" else 1)
    own = source.bits // (2 if source.kind == "complex" else 1)
    return bits > own or (bits == own and target.kind == "complex" and source.name in ("f32", "f64"))


def _of_integers(divide: Instruction) -> str | None:
    assert isinstance(divide.shape, Shape)
    return f"division of {divide.shape.dtype} rounds" if divide.shape.dtype.is_integer else None


def is_sum(computation: Computation) -> bool:
    """Whether a reducer is the addition of its two parameters."""
    root = computation.root
    return root.opcode == "add" and {*root.operands} == {*computation.parameters} and len(computation.parameters) == 2


def _not_a_sum(instruction: Instruction) -> str | None:
    (region,) = instruction.called
    return None if is_sum(region) else f"{instruction.opcode.replace('_', '-')} by {region.name} is no sum"


def _not_a_sum_or_set(scatter: Instruction) -> str | None:
    (region,) = scatter.called
    count = len(region.parameters)
    sets = count == 2 and region.root is region.parameters[1]
    return None if is_sum(region) or sets else f"a scatter by {region.name} neither adds nor writes over"


def _other_bits(bitcast: Instruction) -> str | None:
    same = bitcast.operands[0].shape.plain() == bitcast.shape.plain()
    return None if same else "bits are read as another shape or type"


_MOVING = (
    "reshape", "transpose", "reverse", "broadcast", "slice", "copy", "negate", "real", "imag", "domain", "fft",
)  # fmt: skip

LINEAR: dict[str, Linear] = {
    **dict.fromkeys(_MOVING, Linear(("operand",))),
    "add": Linear(("lhs", "rhs")),
    "subtract": Linear(("lhs", "rhs")),
    "complex": Linear(("lhs", "rhs")),
    "multiply": Linear(("lhs",), ("rhs",), either=True),
    "dot": Linear(("lhs",), ("rhs",), either=True),
    "convolution": Linear(("lhs",), ("rhs",), either=True),
    "divide": Linear(("lhs",), ("rhs",), unless=_of_integers),
    "triangular_solve": Linear(("b",), ("a",)),
    "convert": Linear(("operand",), unless=_inexact),
    "bitcast": Linear(("operand",), unless=_other_bits),
    "concatenate": Linear(("operands",)),
    "select": Linear(("on_true", "on_false")),
    "pad": Linear(("operand", "padding_value")),
    "gather": Linear(("operand",)),
    "dynamic_slice": Linear(("operand",)),
    "dynamic_update_slice": Linear(("operand", "update")),
    "scatter": Linear(("operands", "updates"), unless=_not_a_sum_or_set),
    "reduce": Linear(("operands", "init_values"), unless=_not_a_sum),
    "reduce_window": Linear(("operands", "init_values"), unless=_not_a_sum),
}


def is_zero(instruction: Instruction) -> bool:
    """Whether a value is zero on every device, as its constant tells."""
    found = constant_of(instruction)
    return found is not None and not found.attributes.literal.astype(bool).any()


def constant_of(instruction: Instruction) -> Instruction | None:
    """The constant that a value is, or that it repeats and reshapes."""
    while instruction.opcode in ("broadcast", "reshape", "copy", "convert"):
        (instruction,) = instruction.operands
    return instruction if instruction.opcode == "constant" else None
