"""What decides: an index or a predicate out of known numbers, data, or what devices have agreed on."""

from __future__ import annotations

import math
from typing import Any

from attrs import frozen

from .builder import Builder
from .expressions import index_of, integer, predicate
from .model.meeting import agreed
from .program import Instruction
from .scene import Drawing, Groups, Part, Scene, refined

# What is made of a number that is given, and the numbers that stand for all of them.
FUNNELS = {"and": (0, 1), "clamp": (0, 1, 2), "less": (-1, 0), "sign": (-3, 0, 5), "rem": (0, 1, 2), "popcnt": (0, 2)}


@frozen(eq=False)
class Decision:
    """By part the instruction that decides; what it is on each device where that is known."""

    by_part: list[Instruction | None]
    values: dict[int, Any] | None
    uniform: bool

    def cohorts(self, scene: Scene) -> Groups:
        """Who goes on alike: of what nobody knows, each device alone, or (rarely, and in vain) all."""
        values = self.values
        if values is not None:
            return refined(scene.cohorts, lambda device: values.get(device))
        if self.uniform or scene.drawing.chance(0.3):
            return scene.cohorts
        return tuple((device,) for device in scene.active)


def decided(scene: Scene, count: int, *, is_trips: bool = False) -> Decision:
    """A decision among `count`; of two by a predicate or an index."""
    drawing = scene.drawing
    if drawing.chance(drawing.data_share) and (made := _data(scene, count)):
        return made
    is_predicate = count == 2 and not is_trips and drawing.chance(0.5)
    if drawing.is_one:
        return _known(scene, count, is_predicate=is_predicate)
    return _by_module(scene, count, is_predicate=is_predicate)


def _known(scene: Scene, count: int, *, is_predicate: bool) -> Decision:
    (part,) = scene.parts
    made = _drawn(part.builder, scene.drawing, count, is_predicate=is_predicate)
    return Decision([made], made.values, made.uniform)


def _drawn(b: Builder, drawing: Drawing, count: int, *, is_predicate: bool) -> Instruction:
    depth = drawing.rng.choice((1, 1, 2, 2, 3))
    if is_predicate:
        return predicate(b, depth)
    return index_of(b, integer(b, "s32", depth), count)


def _by_module(scene: Scene, count: int, *, is_predicate: bool) -> Decision:
    """In each module by an expression of its own, most often such that devices that come alike go on alike."""
    drawing, wanted, values = scene.drawing, dict[int, int](), dict[int, Any]()
    for cohort in scene.cohorts:
        all_alike, number = not drawing.chance(drawing.wild), drawing.rng.randrange(count)
        wanted |= {device: number if all_alike else drawing.rng.randrange(count) for device in cohort}
    by_part = list[Instruction | None]()
    for part in scene.parts:
        (device,) = part.devices
        if device not in wanted:
            by_part.append(None)
            continue
        made = _wanted(part.builder, drawing, wanted[device], is_predicate=is_predicate)
        by_part.append(made)
        values[device] = None if made.values is None else made.values[device]
    known = None if any(each is None for each in values.values()) else values
    return Decision(by_part, known, uniform=False)


def _wanted(b: Builder, drawing: Drawing, number: int, *, is_predicate: bool) -> Instruction:
    made = integer(b, "s32", drawing.rng.choice((0, 1, 2, 3)))
    (device,) = b.module.devices
    came = 0 if made.values is None else made.values[device]
    if came != number and made.values is not None:
        made = b.binary("add", made, b.constant(number - came, "s32"))
    if made.values is None:
        made = b.constant(number, "s32")
    if is_predicate:
        return b.compare("EQ", made, b.constant(0, "s32"))
    return made


def _data(scene: Scene, count: int) -> Decision | None:
    """A number that each device is given for itself; or, once all have told each other, the largest."""
    drawing = scene.drawing
    funnel = drawing.rng.choice([*FUNNELS])
    slot = _slot(drawing, FUNNELS[funnel], scene.active)
    if slot is None:
        return None
    is_agreed = drawing.chance(0.4)
    by_part = list[Instruction | None]()
    numbers = [_funnelled(drawing, part, slot, funnel) if part in [*scene.present()] else None for part in scene.parts]
    if is_agreed:
        numbers = agreed(scene, numbers)
    for part, number in zip(scene.parts, numbers, strict=True):
        if number is None:
            by_part.append(None)
            continue
        if drawing.chance(0.3):
            part.builder.pool.append(number)
        number = number if len(FUNNELS[funnel]) <= count else index_of(part.builder, number, count)
        by_part.append(number)
    return Decision(by_part, None, uniform=is_agreed)


def _slot(drawing: Drawing, domain: tuple[int, ...], active: tuple[int, ...]) -> int | None:
    """A place in the data for another number, as long as all data can be tried."""
    size = math.prod(len(drawing.slots[slot]) for used in drawing.used.values() for slot in used)
    if size * len(domain) ** len(active) > drawing.room:
        return None
    drawing.slots.append(domain)
    on = drawing.devices if drawing.is_one else active
    for device in on:
        drawing.used.setdefault(device, set()).add(len(drawing.slots) - 1)
    return len(drawing.slots) - 1


def _funnelled(drawing: Drawing, part: Part, slot: int, funnel: str) -> Instruction:
    """The number in a slot, brought into its small range."""
    b = part.builder
    number = b.reshape(b.slice(part.data, slot, slot + 1), "[]")
    if funnel == "and":
        return b.binary("and", number, b.constant(1, "s32"))
    if funnel == "clamp":
        return b.emit("clamp", "s32[]", [b.constant(0, "s32"), number, b.constant(2, "s32")])
    if funnel == "less":
        return b.convert(b.compare("LT", number, b.constant(0, "s32")), "s32")
    if funnel == "sign":
        return b.binary("add", b.unary("sign", number), b.constant(1, "s32"))
    if funnel == "rem":
        return b.convert(b.binary("remainder", b.convert(number, "u32"), b.constant(3, "u32")), "s32")
    return b.unary("popcnt", b.binary("and", number, b.constant(2, "s32")))
