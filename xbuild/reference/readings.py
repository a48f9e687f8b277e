"""What the readings of an op say: its names elsewhere, its derivative, its cost, and an index picture."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import XbuildError

from ..costs import cost
from ..costs.table import short
from ..differentiation.rules import REASONS, ZERO, all_rules
from ..differentiation.transforms.programs import vjp
from ..sharding.rules.table import rule_of
from ..stablehlo.spelling.op_names import OP_NAMES
from ..stablehlo.writing import ops as _lines  # enters the rules
from ..stablehlo.writing.support.tables import REFUSED
from .corner_cases import told
from .index_pictures import index_picture
from .jax_names import JAX_NAMES
from .op_examples import OpExample, op_example

__all__ = ["picture", "rows"]

_entered = _lines
_PLAIN = ("parameter", "constant", "tuple", "get-tuple-element")


def rows(opcode: str) -> Iterator[tuple[str, str]]:
    """What other readings say of an op: a word for the reading, and a sentence.

    >>> dict(rows("dot"))["in JAX"]
    'jax.lax.dot_general'
    """
    yield "in StableHLO", _stablehlo(opcode)
    if JAX_NAMES.get(opcode):
        yield "in JAX", ", ".join(f"jax.lax.{name}" for name in JAX_NAMES[opcode].split())
    yield "derivative", _derivative(opcode)
    found = (("corner cases", told(opcode)), ("cost", _cost(opcode)), ("sharding rule", _sharding(opcode)))
    yield from ((word, text) for word, text in found if text)


def picture(opcode: str) -> str | None:
    """The index picture of the op's example, where there is one."""
    found = op_example(opcode)
    return None if found is None else index_picture(found)


def _stablehlo(opcode: str) -> str:
    if opcode in REFUSED:
        return "no form"
    is_dissolved = opcode in ("tuple", "get_tuple_element") or opcode not in OP_NAMES
    return "no op of its own: see docs/stablehlo.md" if is_dissolved else OP_NAMES[opcode]


def _derivative(opcode: str) -> str:
    """The ops of which the way back of the example is made, or why there is none."""
    all_rules()
    if opcode in REASONS:
        return f"none: {REASONS[opcode]}"
    if opcode in ZERO:
        return "zero: the result has no cotangent"
    found = op_example(opcode)
    made = () if found is None else _made(found)
    return f"of the example by {', '.join(made)}" if made else "there is one: xb.grad and xb.vjp go through the op"


def _made(example: OpExample) -> tuple[str, ...]:
    """The ops that the derivative of an example has beside those of the example itself."""
    try:
        back = vjp(example.trace.program)
    except (XbuildError, TypeError, ValueError):  # an example of integers, or one whose context has no derivative
        return ()
    module = getattr(back, "entry", back)
    names = (i.opcode.replace("_", "-") for i in module.instructions if ".vjp" in i.name)
    return tuple(dict.fromkeys(name for name in names if name not in _PLAIN))


def _cost(opcode: str) -> str | None:
    """What the example of the op costs, by the rules of `xb.cost`."""
    found = op_example(opcode)
    if found is None:
        return None
    row = next((row for row in cost(found.trace.program).rows if row.instruction is found.instruction), None)
    if row is None:
        return None
    parts = [short(row.work.flops, "FLOP") if row.work.flops else "0 FLOP"]
    if row.work.transcendentals:
        parts.append(f"{row.work.transcendentals} transcendental{'s' * (row.work.transcendentals != 1)}")
    parts.append(f"{short(row.bytes_read + row.bytes_written, 'B')} read and written")
    if row.collective is not None:
        parts.append(f"{short(row.collective.link_bytes, 'B')} on a link")
    return f"of the example {', '.join(parts)}"


def _sharding(opcode: str) -> str | None:
    """The factors of the example: which dimensions are cut together, and what a cut then needs."""
    found = op_example(opcode)
    rule = None if found is None else rule_of(found.instruction)
    return None if rule is None else f"of the example {rule}"


def spelled(opcode: str) -> str:
    """All of this as text.

    >>> print(spelled("all_gather").splitlines()[0])
    in StableHLO  stablehlo.all_gather
    """
    found = [*rows(opcode)]
    width = max(len(word) for word, _ in found)
    lines = [f"{word:<{width}}  {text}" for word, text in found]
    drawn = picture(opcode)
    return "\n".join([*lines, *(["", drawn] if drawn else [])])
