"""Collectives of every kind, in every form of groups, on what is known and on what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from ..builder import Builder, size_of
from ..expressions import integer
from ..program import Collective, Instruction, Reducer
from ..scene import PAYLOAD, Part, Scene, Step
from ..spelling import EQUAL, Spelled, spelled
from .machine import results

KINDS = (
    "all-reduce", "all-reduce", "all-reduce", "all-gather", "all-gather", "reduce-scatter", "all-to-all",
    "collective-permute", "collective-permute", "collective-broadcast",
)  # fmt: skip
OWN_START = {
    "all-reduce": "all-reduce-start",
    "all-gather": "all-gather-start",
    "collective-permute": "collective-permute-start",
}


def meet(scene: Scene, kind: str | None = None) -> None:
    """A collective of what is known or of the payload, in one instruction or in two."""
    drawing = scene.drawing
    kind = kind or drawing.rng.choice(KINDS)
    groups = spelled(scene, kind)
    if groups is None:
        return
    is_known = drawing.chance(0.45)
    is_split = drawing.chance(0.25)
    name = drawing.next_name(kind.replace("-", "_"))
    reducer = drawing.rng.choice(("add", "maximum", "minimum", "or", "xor") if is_known else ("add", "maximum"))
    made = _Made(scene, kind, groups, name, reducer, is_known=is_known)
    for part in scene.present():
        scene.begin(part, made.split(part) if is_split else [lambda part=part: made.whole(part)])


def agreed(scene: Scene, numbers: Sequence[Instruction | None]) -> list[Instruction | None]:
    """The largest of the numbers of all who come here alike."""
    groups = spelled(scene, "all-reduce", is_exact=True)
    assert groups is not None
    name = scene.drawing.next_name("agree")
    made = _Made(scene, "all-reduce", groups, name, "maximum", is_known=True)
    return [
        None if number is None else made.emit(part.builder, "all-reduce", number, number.shape)
        for part, number in zip(scene.parts, numbers, strict=True)
    ]


@frozen(eq=False)
class _Made:
    scene: Scene
    kind: str
    spelled: Spelled
    name: str
    reducer: str
    is_known: bool

    def whole(self, part: Part) -> None:
        b = part.builder
        operand = self._operand(part)
        self._arrived(part, self.emit(b, self.kind, operand, self._shape(operand)))

    def split(self, part: Part) -> list[Step]:
        """A start, and its done later."""
        if self.kind in OWN_START and self.scene.drawing.chance(0.6):
            return self._own_halves(part)
        return self._async_halves(part)

    def _own_halves(self, part: Part) -> list[Step]:
        b, made = part.builder, list[Instruction]()

        def start() -> None:
            operand = self._operand(part)
            result = self._shape(operand)
            shape = {
                "all-reduce": result,
                "all-gather": f"({operand.shape}, {result})",
                "collective-permute": f"({operand.shape}, {result}, u32[], u32[])",
            }[self.kind]
            made.extend((self.emit(b, OWN_START[self.kind], operand, shape, suffix=".start"), operand))

        def done() -> None:
            begun, operand = made
            result = b.emit(f"{self.kind}-done", self._shape(operand), [begun], name=f"{self.name}.done")
            self._know(b, result, operand)
            self._arrived(part, result)

        return [start, done]

    def _async_halves(self, part: Part) -> list[Step]:
        b, made = part.builder, list[Instruction]()

        def start() -> None:
            operand = self._operand(part)
            inside = b.inner("wrapped")
            parameter = inside.parameter(0, operand.shape)
            root = self.emit(inside, self.kind, parameter, self._shape(operand))
            computation = inside.build(root)
            shape = f"(({operand.shape}), {root.shape})"
            begun = b.emit(
                "async-start", shape, [operand], f", calls={computation.name}",
                given=root.given, inner=[computation], name=f"{self.name}.start",
            )  # fmt: skip
            made.extend((begun, operand, root))

        def done() -> None:
            begun, operand, root = made
            result = b.emit("async-done", root.shape, [begun], name=f"{self.name}.done")
            self._know(b, result, operand)
            self._arrived(part, result)

        return [start, done]

    @property
    def size(self) -> int:
        return len(self.spelled.groups[0])

    def _operand(self, part: Part) -> Instruction:
        """A known number, or the payload, in the shape that the kind wants."""
        b = part.builder
        if not self.is_known:
            x = part.payload(self.scene.drawing)
            if self.kind in ("reduce-scatter", "all-to-all"):
                return b.concatenate([x] * self.size)
            return x
        number = integer(b, "s32", self.scene.drawing.rng.choice((0, 1, 2)))
        if self.kind == "all-gather":
            return b.reshape(number, "[1]")
        if self.kind in ("reduce-scatter", "all-to-all"):
            if self.size > 1 and b.rng.random() < 0.5:
                other = b.reshape(integer(b, "s32", 1), "[1]")
                return b.concatenate([b.broadcast(number, self.size - 1), other])
            return b.broadcast(number, self.size)
        return number

    def _shape(self, operand: Instruction) -> str:
        if self.kind == "all-gather":
            return f"{operand.type}[{size_of(operand) * self.size}]"
        if self.kind == "reduce-scatter":
            return f"{operand.type}[{size_of(operand) // self.size}]"
        return operand.shape

    def _reducer(self, operand: Instruction) -> Reducer | None:
        return Reducer(f"{self.reducer}.{operand.type}") if self.kind in ("all-reduce", "reduce-scatter") else None

    def emit(self, b: Builder, opcode: str, operand: Instruction, shape: str, suffix: str = "") -> Instruction:
        reducer = self._reducer(operand)
        groups = self.spelled
        given = Collective(self.kind, groups.groups, reducer, groups.pairs, groups.channel)
        attributes = groups.attributes + (f", to_apply={reducer}" if reducer else "")
        if self.kind in EQUAL:
            attributes += ", dimensions={0}"
        name = self.name + suffix if b.computation.name.split(".")[0] != "wrapped" else f"{self.name}.wrapped"
        made = b.emit(opcode, shape, [operand], attributes, given=given, name=name)
        if not suffix:
            self._know(b, made, operand)
        return made

    def _know(self, b: Builder, made: Instruction, operand: Instruction) -> None:
        """Its values, where all bring what is known (in one program for all)."""
        made.values, groups = None, self.spelled.groups
        if operand.values is not None and self.scene.drawing.is_one:
            collective = Collective(self.kind, groups, self._reducer(operand), self.spelled.pairs)
            found: dict[int, Any] = {}
            named = {device for group in groups for device in group}
            for group in (*groups, *((d,) for d in b.module.devices if d not in named)):
                found |= results(collective, group, operand.values)
            made.values = found
        agree = self.kind in ("all-reduce", "all-gather", "collective-broadcast")
        alike = all(any(set(cohort) <= set(group) for group in groups) for cohort in self.scene.cohorts)
        made.uniform = (agree and alike) or (made.values is not None and len(set(made.values.values())) == 1)

    def _arrived(self, part: Part, result: Instruction) -> None:
        """What has come is added to the payload, or is a number that may decide."""
        b = part.builder
        if result.type == "f32":
            part.parts.append(b.slice(result, 0, 2) if result.shape != PAYLOAD else result)
            return
        if not result.shape.endswith("[]"):
            result = _scalar(b, result)
        b.pool.append(result)


def _scalar(b: Builder, vector: Instruction) -> Instruction:
    if b.rng.random() < 0.5:
        return b.reduce(vector, b.rng.choice(("add", "maximum", "minimum")), 0)
    start = b.rng.randrange(size_of(vector))
    return b.reshape(b.slice(vector, start, start + 1), "[]")
