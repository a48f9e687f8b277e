"""Values that are equal on all devices: the first device computes them, and the others take them from a pool.

Sections:

    Which values are equal on all devices
    Blocks of a plan that compute or take such values
    The pool from which devices take them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, field

from shape_inference import Shape
from shape_inference.trees import flatten
from xbuild.checking.dataflow.replication import make_recording_by_path, record_labels
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.op import opcodes

from .facts import weight
from .lines import Path, PlanPlace

if TYPE_CHECKING:
    from .emit import Emitter
    from .requests import Expr

# ----------------------------------------------------------------------------
# Which values are equal on all devices.

CallPath: TypeAlias = tuple[int, ...]
MOST_PLACES = 50_000  # beyond, the analysis takes longer than what it saves: about 50 us for each place


def shared_sites(module: Module, uniform: Sequence[bool]) -> frozenset[CallPath]:
    """The call paths whose values are equal on all devices, given which parameters are equal on all devices.

    The set is empty if the program has too many call paths to analyze.
    """
    if weight(module.entry) >= MOST_PLACES:
        return frozenset()
    walk = make_recording_by_path(tuple(range(module.num_devices)), (module.num_replicas, module.num_partitions, False))
    labels = [walk.everywhere if same else walk.nowhere for same in uniform]
    parameters = [walk.fill_shape(label, p.shape) for label, p in zip(labels, module.entry.parameters, strict=True)]
    labels_by_site, everywhere = record_labels(walk, module, parameters), walk.partitions.everywhere
    return frozenset(
        site_of(instruction, [step.instruction for step in path])
        for key, (path, instruction) in walk.paths.items()
        if instruction.opcode != "parameter"
        and key in labels_by_site
        and all(label is everywhere for label in labels_by_site[key])
    )


def site_of(instruction: Instruction, callers: Sequence[Instruction]) -> CallPath:
    """The identity of an instruction at a call path: the ids of its callers and its own."""
    return (*map(id, callers), id(instruction))


# ----------------------------------------------------------------------------
# Blocks of a plan: the first device that reaches one computes its values, the others take them.

COSTLY = 1 << 12
FREE = opcodes(lambda op: op.is_view)


def is_costly(instruction: Instruction) -> bool:
    """Whether an instruction costs more to compute than to share: it calls a computation, or moves kilobytes."""
    if instruction.opcode in FREE:
        return False
    sizes = [instruction.shape.bytes, *(o.shape.bytes for o in instruction.operands if isinstance(o.shape, Shape))]
    return bool(instruction.called) or max(sizes) >= COSTLY


def emit_shared(
    emitter: Emitter, computation: Computation, block: Sequence[Instruction], local: dict[Instruction, Expr], path: Path
) -> None:
    """Emit a shared block: the first device that reaches the block computes its values, the other devices take them."""

    number, values = emitter.new_block(), emitter.new_counter()
    emitter.lines.add(f"{values} = device.shared({number})", path)
    emitter.lines.add(f"if {values} is None:", path)
    with emitter.lines.block():
        with emitter.unmarked():
            emitter.emit_block(computation, block, local, path)
        needed = [leaf for i in _used_outside(emitter, computation, block) for leaf in flatten(local[i])]
        names = "".join(f"{name}, " for name in dict.fromkeys(needed) if name.startswith("v"))
        emitter.lines.add(f"device.share({number}, ({names}))", path)
    emitter.lines.add("else:", path)
    with emitter.lines.block():
        emitter.lines.add(f"({names}) = {values}", path)
    for instruction in block:
        emitter.mark((*path, PlanPlace(instruction)))


def _used_outside(emitter: Emitter, computation: Computation, block: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of a block whose values are read outside of it."""
    inside, shortcuts = set(block), emitter.shortcuts_of(computation)
    used = {value for i in computation.instructions if i not in inside for value in shortcuts.reads(i)}
    return [instruction for instruction in block if instruction in used or instruction is computation.root]


# ----------------------------------------------------------------------------
# The pool from which devices take shared values.


@define
class SharedPool:
    """Values of shared blocks: the first device puts them in, and the last device that takes them removes them."""

    devices: int
    _entries: dict[tuple[int, int], list[Any]] = field(factory=dict)

    def take(self, block: int, turn: int) -> Any:
        """The values of one execution of a block; None for the first device, which then computes and puts them."""
        entry = self._entries.get((block, turn))
        if entry is None:
            return None
        entry[1] -= 1
        if not entry[1]:
            del self._entries[block, turn]
        return entry[0]

    def put(self, block: int, turn: int, values: Any) -> None:
        self._entries[block, turn] = [values, self.devices - 1]
