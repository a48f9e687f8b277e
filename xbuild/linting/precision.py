"""The rule of element types: f32 where bf16 or f16 came in."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import Shape

from ..core.graph import Instruction
from ..core.issues import Issue
from ..costs.report import CostRow
from ..properties.effects import COLLECTIVES, base_of, jax_primitive, op_and_name
from ..timelines.durations import PRODUCTS
from .facts import ProgramFacts, size_of
from .flow import MOVES, SUMMING
from .rules import issue, rule

_HALF = ("bf16", "f16")
_PROMOTED = "_promoted"
"""The end of the name of a reducer that XLA:CPU, which has no sums of bf16, makes of a sum of bf16."""


@rule("A product or a collective runs in f32 on values that were converted from bf16 or f16 only for it.")
def f32_from_bf16(facts: ProgramFacts) -> Iterator[Issue]:
    """Conversions that a compiler inserted do not count, nor products with values that were computed in f32.

    A sum over devices counts only if its result is converted back.
    """
    for row in facts.rows:
        if row.instruction.opcode in PRODUCTS:
            yield from _product(facts, row.instruction, row.times)
        elif row.instruction.opcode == "fusion":
            for inner in row.instruction.called[0].instructions:
                if inner.opcode in PRODUCTS:
                    yield from _product(facts, inner, row.times)
        elif row.collective is not None and row.collective.group_size > 1:
            yield from _collective(facts, row)


def _product(facts: ProgramFacts, product: Instruction, times: int) -> Iterator[Issue]:
    operands = product.operands[:2]
    converts = [_widening(facts, each) for each in operands]
    if all(converts) and not any(_is_written(each, product) for each in converts):
        return  # XLA:CPU converts both operands of a product of bf16
    narrow = next((each for each in converts if each is not None), None)
    if narrow is None or not all(_is_f32(each) for each in (*operands, product)):
        return
    other = next((each for each, convert in zip(operands, converts, strict=True) if convert is None), None)
    if other is not None and not facts.flow.depends_on([other], _is_parameter, lambda each: each.opcode in MOVES):
        return  # the other operand was computed in f32, such as a softmax
    dtype = narrow.operands[0].shape.dtype.name  # type: ignore[union-attr]
    work = facts.product_work(product)
    slow, fast = work / facts.machine.peak("f32"), work / facts.machine.peak(dtype)
    extra = sum(size_of(each) // 2 for each in operands)
    bound = extra / facts.machine.memory_bandwidth
    meets = "both operands" if other is None else f"{op_and_name(narrow)}, which meets an f32 operand,"
    yield issue(
        facts,
        "f32_from_bf16",
        f"{op_and_name(product)} multiplies in f32, but {meets} came in as {dtype}",
        f"multiply in {dtype} and sum in f32: jnp.dot(x, w, preferred_element_type=jnp.float32)"
        + ("" if other is None else f", with the other operand converted to {dtype}"),
        product,
        narrow,
        bytes=extra * times,
        seconds=max(slow - fast, bound if slow - fast > 0 else 0.0) * times,
    )


def _collective(facts: ProgramFacts, row: CostRow) -> Iterator[Issue]:
    collective = row.instruction
    kind = base_of(collective)
    if kind not in COLLECTIVES:
        return
    if kind in SUMMING and collective.attributes.to_apply.name.endswith(_PROMOTED):
        return
    wide = [
        (each, convert)
        for each in collective.operands
        if _is_f32(each) and (convert := _widening(facts, each)) is not None and _is_written(convert, collective)
    ]
    if kind in SUMMING and not all(_is_narrowed(facts, collective) for _ in wide):
        return
    if not wide:
        return
    convert = wide[0][1]
    dtype = convert.operands[0].shape.dtype.name  # type: ignore[union-attr]
    share = sum(size_of(each) for each, _ in wide) / max(sum(map(size_of, collective.operands)), 1) / 2
    sent = row.collective.link_bytes if row.collective is not None else 0
    yield issue(
        facts,
        "f32_from_bf16",
        f"{op_and_name(collective)} sends f32 that {op_and_name(convert)} made of {dtype}, which takes twice the bytes",
        f"send {dtype}, and convert afterwards",
        collective,
        convert,
        bytes=int(sent * share) * row.times,
        seconds=facts.seconds_once(collective) * share * row.times,
    )


def _is_parameter(value: Instruction) -> bool:
    return value.opcode == "parameter"


def _is_f32(value: Instruction) -> bool:
    return isinstance(value.shape, Shape) and value.shape.dtype.name == "f32"


def _widening(facts: ProgramFacts, value: Instruction) -> Instruction | None:
    """The conversion from bf16 or f16 that a value comes from; None if no conversion is behind it."""
    found = facts.flow.origin(value, lambda each: each.opcode in MOVES - {"convert"} or each.opcode == "broadcast")
    if found.opcode != "convert" or not _is_f32(found):
        return None
    given = found.operands[0].shape
    return found if isinstance(given, Shape) and given.dtype.name in _HALF else None


def _is_written(convert: Instruction | None, user: Instruction) -> bool:
    """Whether a user wrote a conversion: its metadata says so, or what uses it has no metadata either."""
    if convert is None:
        return False
    has_name = bool((user.annotations.get("metadata") or {}).get("op_name"))
    return not has_name or jax_primitive(convert) == "convert_element_type"


def _is_narrowed(facts: ProgramFacts, collective: Instruction) -> bool:
    """Whether the result is only used as bf16 or f16 again."""
    moves = MOVES - {"convert"}
    users = [*facts.flow.reached(collective, lambda each: each.opcode in moves or each.opcode.endswith("_done"))]
    last = [each for each in users if each.opcode not in moves and not each.opcode.endswith("_done")]
    return bool(last) and all(
        each.opcode == "convert" and isinstance(each.shape, Shape) and each.shape.dtype.name in _HALF for each in last
    )
