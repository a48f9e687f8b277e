"""The facts of one instruction of a module, each found when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from attrs import frozen

from shape_inference import XbuildError

from ..checking.model.program import devices_text
from ..core.graph import Computation, Instruction, Module
from ..properties.mesh import Mesh, mesh_of
from ..properties.variances import STATES, Variance, declared, flat, type_of
from ..traces.saying import said
from .dependencies import Callers, Cone, cone_of
from .early_values import early_values, rows
from .shapes import reasons

_MOST_DEVICES = 64
"""The greatest number of devices for which a value is computed before the run."""

_MEANT = {
    "varying": "devices along {} may hold different values",
    "unreduced": "devices along {} hold parts, and the value that is meant is their sum",
    "reduced": "devices along {} hold one value, whose cotangent is a part on each",
}


@frozen(eq=False, slots=False)
class Facts:
    """What is known of an instruction before the run."""

    module: Module
    instruction: Instruction

    @cached_property
    def callers(self) -> Callers:
        return Callers.in_module(self.module)

    @property
    def home(self) -> Computation:
        """The computation that the instruction is in."""
        return self.callers.home[self.instruction]

    @property
    def called_by(self) -> list[Instruction]:
        return list(self.callers.of.get(self.home, ()))

    @property
    def users(self) -> list[str]:
        return [each.name for each in self.home.instructions if self.instruction in each.operands]

    @cached_property
    def cone(self) -> Cone:
        return cone_of(self.module, self.instruction, self.callers)

    @property
    def shape(self) -> tuple[str, ...]:
        """Why the shape is what it is, in lines; the first is the shape where no dimension is to be told."""
        return tuple(reasons[self.instruction.opcode](self.instruction)) or (f"{self.instruction.shape}, a scalar",)

    @property
    def variance(self) -> str:
        """The type on the mesh and its meaning; empty where the program states none."""
        text = declared(self.instruction)
        if text is None:
            return ""
        try:
            given, mesh = type_of(self.instruction), mesh_of(self.module)
        except XbuildError:
            return text
        leaves = flat(given)
        return f"{text or '{}'}: {_meaning(leaves[0], mesh)}" if len(leaves) == 1 else text

    @property
    def equal(self) -> str:
        """Which devices hold equal values, as text; empty on one device, and where nothing is known."""
        if self.module.num_devices == 1:
            return ""
        from ..checking import replication
        from ..checking.replication_text import value_text

        try:
            return value_text(replication(self.module), self.instruction)
        except (KeyError, XbuildError):
            return ""

    @property
    def values(self) -> tuple[str, ...]:
        """The value, where it is known before the run, in lines; none where it is not."""
        count = self.module.num_devices
        ids = [divmod(device, self.module.num_partitions) for device in range(min(count, _MOST_DEVICES))]
        found = early_values(self.instruction, ids)
        return () if found is None else tuple(_valued(found, count))

    def to_dict(self) -> dict[str, Any]:
        source = self.instruction.source
        return {
            "instruction": self.instruction.name, "opcode": self.instruction.opcode, "computation": self.home.name,
            "shape": str(self.instruction.shape), "why": list(self.shape),
            "source": None if source is None else str(source),
            "called_by": [each.name for each in self.called_by], "users": self.users,
            "parameters": [each.name for each in self.cone.parameters()],
            "communication": [each.name for each in self.cone.meetings()],
            "variance": declared(self.instruction), "devices": self.equal or None, "value": list(self.values) or None,
        }  # fmt: skip


def _meaning(leaf: Variance, mesh: Mesh | None) -> str:
    ordered = mesh.ordered if mesh is not None else sorted
    sets = [(state, list(ordered(getattr(leaf, state)))) for state in STATES if getattr(leaf, state)]
    return "; ".join(_MEANT[state].format(" and ".join(axes)) for state, axes in sets) or "one value on all devices"


def _valued(found: list[Any], count: int) -> Iterator[str]:
    if len(found) == 1:
        yield f"known before the run{' on each device' * (count > 1)}: {said(found[0])}"
        return
    yield "known before the run:"
    for devices, value in rows(found):
        yield f"{devices_text(devices)}: {said(value)}"
    if count > len(found):
        yield f"devices {len(found)} to {count - 1} are not looked at"
