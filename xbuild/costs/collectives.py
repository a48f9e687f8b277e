"""The collectives and transfers of a program: who takes part, along which axes, and what crosses the links."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from ..core.graph import Instruction
from ..properties.device_groups import Groups, grouping, pairs_of
from ..properties.effects import MEETS, TRANSFERS
from .algorithms import Algorithm, algorithms
from .axes import Axes, Digits, digits_of
from .work import leaf_bytes


@frozen
class CollectiveCost:
    """A collective, or one end of a transfer: `payload` bytes in each of `num_groups` groups of `group_size` devices.

    `axes` names the axes of the mesh that its groups lie along, or says how else they are made. `algorithms` are those
    that apply, the first of which is counted. `is_bound` says that data decides how much is sent, and this is the most.
    """

    instruction: Instruction
    axes: str
    group_size: int
    num_groups: int
    payload: int
    algorithms: tuple[Algorithm, ...]
    is_bound: bool = field(default=False)

    @property
    def link_bytes(self) -> int:
        """Bytes over the busiest link at an execution, by the first algorithm; a transfer counts at its send."""
        return 0 if self._is_recv else self.algorithms[0].link_bytes

    @property
    def steps(self) -> int:
        return 0 if self._is_recv else self.algorithms[0].steps

    @property
    def total_bytes(self) -> int:
        """Bytes over all links of all groups at an execution, by the first algorithm."""
        return 0 if self._is_recv else self.algorithms[0].total_bytes * self.num_groups

    @property
    def _is_recv(self) -> bool:
        return self.instruction.opcode == "recv"

    def __str__(self) -> str:
        """`all-gather over axis b: 8 of 512, 64 groups`"""
        name = self.instruction.opcode.replace("_", "-")
        where = f"over {self.axes}" if self.axes else "from device to device"
        groups = f"{self.num_groups} group" + "s" * (self.num_groups != 1)
        return f"{name} {where}: {self.group_size} of {self.group_size * self.num_groups}, {groups}"


@frozen
class Grid:
    """How many replicas and partitions there are, and whether each device has a program of its own."""

    num_replicas: int
    num_partitions: int
    is_own: bool

    @property
    def num_devices(self) -> int:
        return self.num_replicas * self.num_partitions


def is_communication(instruction: Instruction) -> bool:
    """Whether an instruction sends to other devices, or receives; done halves and transfers with the host do not."""
    if instruction.opcode in TRANSFERS:
        return not instruction.attributes.is_host_transfer
    return instruction.opcode in MEETS


def _has_pairs(instruction: Instruction) -> bool:
    return instruction.opcode in TRANSFERS or "collective_permute" in instruction.opcode


def _groups(instruction: Instruction, grid: Grid) -> Groups:
    return grouping(instruction, grid.num_replicas, grid.num_partitions, grid.is_own).groups


def digits_of_all(communicating: Sequence[Instruction], grid: Grid) -> list[Digits]:
    """How each collective's groups lie among the devices, of those whose groups are regular."""
    lists = dict.fromkeys(_groups(each, grid) for each in communicating if not _has_pairs(each))
    return [digits for groups in lists if (digits := digits_of(groups)) is not None]


def collective_cost(instruction: Instruction, grid: Grid, axes: Axes) -> CollectiveCost:
    """The cost of a communicating instruction at one execution."""
    payload = _payload(instruction)
    if _has_pairs(instruction):
        pairs = pairs_of(instruction, grid.num_replicas, grid.num_partitions, grid.is_own)
        moved = sum(source != target for source, target in pairs) if pairs else 1
        size = 2 if moved else 1
        return CollectiveCost(
            instruction, "", size, max(moved, 1), payload, algorithms(instruction.opcode, size, payload)
        )
    groups = _groups(instruction, grid)
    size = max(map(len, groups))
    return CollectiveCost(
        instruction,
        axes.named(digits_of(groups), size),
        size,
        len(groups),
        payload,
        algorithms(instruction.opcode, size, payload),
        instruction.opcode == "ragged_all_to_all",
    )


def _payload(instruction: Instruction) -> int:
    """Bytes of the whole array: of the result where devices gather, else of what a device gives."""
    opcode, given = instruction.opcode.removesuffix("_start"), [each.shape for each in instruction.operands]
    if opcode == "all_gather":
        return _gathered(instruction)
    if opcode in ("recv", "send"):
        return leaf_bytes(instruction.shape.elements[0])  # type: ignore[union-attr]
    return sum(map(leaf_bytes, given[:1] if opcode in ("ragged_all_to_all", "collective_permute") else given))


def _gathered(instruction: Instruction) -> int:
    shape = instruction.shape
    if instruction.opcode == "all_gather_start":
        shape = shape.elements[1]  # type: ignore[union-attr]
    return leaf_bytes(shape)
