"""Blocks of a plan whose values are equal on all devices: the first device computes them, the others take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shape_inference import Shape
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import opcodes

from ..rules.lines import Path, Place
from .contraction import contracted

if TYPE_CHECKING:
    from .emit import Emitter
    from .expressions import Expr

COSTLY = 1 << 12
_FREE = opcodes(lambda op: op.is_view)


def is_costly(instruction: Instruction) -> bool:
    """Whether an instruction costs more to compute than to share: it calls a computation, or moves kilobytes."""
    if instruction.opcode in _FREE:
        return False
    sizes = [instruction.shape.bytes, *(o.shape.bytes for o in instruction.operands if isinstance(o.shape, Shape))]
    return bool(instruction.called) or max(sizes) >= COSTLY


def emit_shared(
    emitter: Emitter, computation: Computation, block: Sequence[Instruction], local: dict[Instruction, Expr], path: Path
) -> None:
    """Emit a shared block: the first device that reaches the block computes its values, the other devices take them."""
    from .expressions import flat

    number, kept = emitter.block(), emitter.counter()
    emitter.lines.add(f"{kept} = device.shared({number})", path)
    emitter.lines.add(f"if {kept} is None:", path)
    with emitter.lines.block():
        with emitter.unmarked():
            emitter.run(computation, block, local, path)
        needed = [leaf for i in _needed_after(computation, block) for leaf in flat(local[i])]
        names = "".join(f"{name}, " for name in dict.fromkeys(needed) if name.startswith("v"))
        emitter.lines.add(f"device.share({number}, ({names}))", path)
    emitter.lines.add("else:", path)
    with emitter.lines.block():
        emitter.lines.add(f"({names}) = {kept}", path)
    for instruction in block:
        emitter.mark((*path, Place(instruction)))


def _needed_after(computation: Computation, block: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of a block that are used outside of it, as operands or as factors of unrounded products."""
    inside, sums = set(block), contracted(computation)
    used = {operand for i in computation.instructions if i not in inside for operand in i.operands} | {computation.root}
    used |= {factor for i, product in sums.items() if i not in inside for factor in product.operands}
    return [instruction for instruction in block if instruction in used]
