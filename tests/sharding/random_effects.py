"""Random global programs with effects at every depth, and what each device has to do of them, in which order.

Outfeeds, infeeds, custom calls with side effects and changes of the random state stand in the entry, in calls, loops,
branches and asynchronous calls; most values of the computations around them are used by nobody. What is placed on a
device is done there alone; a custom call that says nothing is done by every device, with whole operands; an infeed that
is cut gives each device its part; every device changes its random state.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field, frozen

import interpreter
import xbuild as xb
from xbuild.core.context import annotated
from xbuild.properties.effects import reaches_outside
from xbuild.sharding.partition import Partitioned
from xbuild.sharding.partition.partitioned import part_of
from xbuild.sharding.sharding import Placement
from xbuild.sharding.stated_shardings import sharding_of
from xbuild.text.annotations import Raw

from .random_shardings import random_sharding

TARGET = "tests.note"
DEEPEST = 3
_OWN = ("outfeed", "infeed", "custom_call", "rng_get_and_update_state")
_TAGS = {"outfeed": "outfeed_config", "infeed": "infeed_config", "custom_call": "backend_config"}


@xb.custom_call_target(TARGET)
def _note(x: Any, *_: Any) -> Any:
    return x


@define
class _Drawing:
    """A program under way: the mesh, and the number of the next effect."""

    mesh: xb.Mesh
    dims: tuple[int, ...]
    effects: int = 0
    after: list[xb.Value] = field(factory=list)


def effect_program(chance: random.Random, mesh: xb.Mesh) -> tuple[xb.Module, list[np.ndarray[Any, Any]]]:
    """A module with some effects, and its arguments."""
    dims = tuple(chance.randrange(1, 6) for _ in range(chance.choice((1, 1, 2))))
    drawing = _Drawing(mesh, dims)
    builder = xb.Builder("effects")
    shape, count = xb.s32[dims], int(np.prod(dims))
    values = [xb.parameter(builder, number=number, shape=shape) for number in range(2)]
    arguments = [np.array([chance.randrange(-9, 10) for _ in range(count)], np.int32).reshape(dims) for _ in values]
    _statements(chance, drawing, values, chance.randrange(2, 7), 0)
    root = xb.ops.add(values[0], chance.choice(values))
    return xb.Module("effects", builder.build(root)), arguments


def _statements(chance: random.Random, drawing: _Drawing, values: list[xb.Value], count: int, depth: int) -> None:
    drawing.after = []
    for _ in range(count):
        kinds = [*EFFECTS, *EFFECTS, _computed] if depth == DEEPEST else [*EFFECTS, _computed, *NESTED, *NESTED]
        if chance.random() < 0.2 and drawing.after:
            with xb.control(after=[chance.choice(drawing.after)]):
                made = chance.choice(EFFECTS)(chance, drawing, values, depth)
        else:
            made = chance.choice(kinds)(chance, drawing, values, depth)
        if made is not None and chance.random() < 0.5:
            values.append(made)


def _place(chance: random.Random, drawing: _Drawing, share: float = 1.0) -> dict[str, Any]:
    if chance.random() > share:
        return {}
    return {"sharding": Raw(f"{{maximal device={chance.randrange(drawing.mesh.num_devices)}}}")}


def _tag(drawing: _Drawing) -> str:
    drawing.effects += 1
    return f"effect {drawing.effects}"


def _value(chance: random.Random, values: list[xb.Value]) -> xb.Value:
    x = chance.choice(values[-4:])
    return xb.ops.negate(x) if chance.random() < 0.3 else x


def _fed_out(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> None:
    tag, x = _tag(drawing), _value(chance, values)
    number = xb.constant(x.builder, np.int32(drawing.effects))
    item = xb.ops.tuple_((number, x))
    token = xb.ops.after_all((), builder=x.builder)
    with annotated(**_place(chance, drawing)):
        drawing.after.append(xb.ops.outfeed(item, token, outfeed_shape=item.shape, outfeed_config=tag))


def _fed_in(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    builder, shape = values[0].builder, xb.s32[drawing.dims]
    token = xb.ops.after_all((), builder=builder)
    if chance.random() < 0.6:
        (place,) = _place(chance, drawing).values()
        text = f"{{{place},{place}}}"
    else:
        cut = random_sharding(chance, drawing.mesh, len(drawing.dims))
        text = f"{{{xb.shard.hlo_text(cut, len(drawing.dims))},{{replicated}}}}"
    with annotated(sharding=Raw(text)):
        found = xb.ops.infeed(token, shape=shape, infeed_config=_tag(drawing))
    drawing.after.append(found)
    return xb.ops.get_tuple_element(found, index=0)


def _called_out(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    x = _value(chance, values)
    with annotated(**_place(chance, drawing, 0.5)):
        found = xb.ops.custom_call((x,), custom_call_target=TARGET, shape=x.shape, custom_call_has_side_effect=True,
                                   backend_config=_tag(drawing))  # fmt: skip
    drawing.after.append(found)
    return found


def _begun(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    """A custom call with a side effect as an asynchronous op."""
    tag = _tag(drawing)

    def inner(y: Any) -> Any:
        return xb.ops.custom_call((y,), custom_call_target=TARGET, shape=y.shape, custom_call_has_side_effect=True,
                                  backend_config=tag)  # fmt: skip

    return xb.ops.async_done(xb.ops.async_start((_value(chance, values),), calls=inner))


def _state(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> None:
    drawing.effects += 1
    xb.ops.rng_get_and_update_state(values[0].builder, delta=drawing.effects, shape=xb.u64[2])


def _computed(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    x, y = _value(chance, values), _value(chance, values)
    return chance.choice(
        (
            lambda: xb.ops.add(x, y),
            lambda: xb.ops.reverse(x, dimensions=(0,)),
            lambda: xb.ops.maximum(x, y),
            lambda: xb.ops.remainder(xb.ops.multiply(x, y), xb.ops.broadcast(
                xb.constant(x.builder, np.int32(11)), sizes=x.shape.dims, dimensions=())),
        )
    )()  # fmt: skip


def _inside(drawing: _Drawing, depth: int, seed: float) -> Callable[[Any], Any]:
    """A computation with effects of its own; traced once, as its effects have numbers."""

    def inner(x: Any) -> Any:
        chance, outer = random.Random(seed), drawing.after
        values = [x]
        _statements(chance, drawing, values, chance.randrange(1, 4), depth + 1)
        drawing.after = outer
        return xb.ops.add(x, values[-1])

    return inner


def _call(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    return xb.ops.call((_value(chance, values),), to_apply=_inside(drawing, depth, chance.random()))


def _loop(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    x, trips, body = _value(chance, values), chance.randrange(4), _inside(drawing, depth, chance.random())
    tests = chance.random() < 0.3
    state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x))

    def test(state: Any) -> Any:
        if tests:
            outer, drawing.after = drawing.after, []
            _called_out(chance, drawing, [state[1]], depth)
            drawing.after = outer
        return xb.lt(state[0], np.int32(trips))

    found = xb.ops.while_(state, condition=test, body=lambda s: (s[0] + 1, body(s[1])))
    return xb.ops.get_tuple_element(found, index=1)


def _branch(chance: random.Random, drawing: _Drawing, values: list[xb.Value], depth: int) -> xb.Value:
    x, y = _value(chance, values), _value(chance, values)
    zero = xb.constant(x.builder, np.int32(0))
    total = xb.ops.reduce((y,), (zero,), to_apply=xb.ops.add, dimensions=range(y.shape.rank))
    bodies = tuple(_inside(drawing, depth, chance.random()) for _ in range(2))
    return xb.ops.conditional(xb.gt(total, np.int32(0)), (x, x), branch_computations=bodies)


EFFECTS = (_fed_out, _fed_out, _fed_in, _called_out, _called_out, _state, _begun)
NESTED = (_call, _loop, _branch)


@frozen
class Event:
    """An effect that a device has done: the op, what tells it from others, and the array that it gives or takes."""

    opcode: str
    tag: str
    payload: Any

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Event)
        return (self.opcode, self.tag) == (other.opcode, other.tag) and np.array_equal(self.payload, other.payload)


def _run(module: xb.Module, rows: list[list[Any]], items: dict[int, list[Any]]) -> tuple[list[Any], list[list[Event]]]:
    """The results of all devices, and the effects of each, in order."""
    done: list[list[Event]] = [[] for _ in rows]

    def observe(step: int, device: int, instruction: xb.Instruction, value: Any) -> None:
        if instruction.opcode == "rng_get_and_update_state":
            done[device].append(Event(instruction.opcode, str(instruction.attributes.delta), None))
        elif instruction.opcode in ("infeed", "custom_call") and _is_own(instruction):
            given = value[0] if instruction.opcode == "infeed" else value
            tag = getattr(instruction.attributes, _TAGS[instruction.opcode])
            done[device].append(Event(instruction.opcode, str(tag), np.array(given)))

    def take(device: int, item: Any) -> None:
        done[device].append(Event("outfeed", f"effect {int(item[0])}", np.array(item[1])))

    limits = interpreter.Limits(seconds=60)
    found = interpreter.execute(module, rows, infeed=items, outfeed=take, observer=observe, limits=limits)
    return found, done


def _is_own(instruction: xb.Instruction) -> bool:
    return instruction.opcode in _OWN and reaches_outside(instruction)


def _effects(module: xb.Module) -> dict[str, xb.Instruction]:
    """The effects of a program by what tells them apart."""
    return dict(_all(module))


def _all(module: xb.Module) -> list[tuple[str, xb.Instruction]]:
    every = [each for computation in module.entry.reachable() for each in computation.instructions if _is_own(each)]
    return [(_key(each), each) for each in every]


def _key(instruction: xb.Instruction) -> str:
    key = _TAGS.get(instruction.opcode, "delta")
    return f"{instruction.opcode} {getattr(instruction.attributes, key)}"


def effects_fault(module: xb.Module, made: Partitioned, arguments: list[Any], padding: int) -> str | None:
    """What devices do otherwise than the global program asks for, or None."""
    counts = [Counter(key for key, _ in _all(each)) for each in (module, made.module)]
    if counts[0] != counts[1]:
        return f"effects that are in one program alone: {counts[0] - counts[1]} {counts[1] - counts[0]}"
    effects, mesh = _effects(module), made.mesh
    numbers = np.random.default_rng(7)
    shapes = [each.shape.elements[0].dims for each in effects.values() if each.opcode == "infeed"]
    items = [numbers.integers(-9, 9, shapes[0]).astype(np.int32) for _ in range(400)] if shapes else []
    (wanted,), (events,) = _run(module, [arguments], {0: iter(items)})
    fed: dict[int, list[Any]] = {device: [] for device in range(mesh.num_devices)}
    expected: list[list[Event]] = [[] for _ in range(mesh.num_devices)]
    for event in events:
        instruction = effects[f"{event.opcode} {event.tag}"]
        for device, payload in _shares(instruction, event.payload, mesh, padding):
            expected[device].append(Event(event.opcode, event.tag, payload))
            if event.opcode == "infeed":
                fed[device].append(payload)
    results, came = _run(made.module, made.arguments(*arguments, padding=padding), {d: iter(v) for d, v in fed.items()})
    for device, (right, done) in enumerate(zip(expected, came, strict=True)):
        if right != done:
            return f"device {device} does\n{done}\nand not\n{right}"
    found = made.joined(results)
    return None if np.array_equal(wanted, found) else f"{wanted}\n and \n{found}"


def _shares(instruction: xb.Instruction, payload: Any, mesh: xb.Mesh, padding: int) -> list[tuple[int, Any]]:
    """The devices that do an effect, each with what it gives or takes."""
    everyone = [(device, payload) for device in range(mesh.num_devices)]
    if "sharding" not in instruction.annotations or instruction.opcode == "rng_get_and_update_state":
        return everyone
    stated = sharding_of(instruction, mesh)
    one = stated[0] if isinstance(stated, tuple) else stated
    if isinstance(one, Placement):
        return [(one.device, payload)] if one.device is not None else everyone
    if instruction.opcode == "custom_call":
        return everyone
    whole = one.padded(np.ndim(payload))
    return [(device, part_of(payload, whole, device, padding)) for device, _ in everyone]
