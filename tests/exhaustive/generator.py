"""Random programs of several devices: what communicates, in loops, branches and calls that something decides."""

from __future__ import annotations

import random
from collections.abc import Callable

from .builder import SLOTS, Builder
from .decisions import Decision, decided
from .disturbing import disturb
from .loops import loop
from .model.judge import all_data
from .model.machine import Machine
from .model.meeting import meet
from .passing import transfer
from .program import Computation, Instruction, Program
from .scene import PAYLOAD, Drawing, Groups, Part, Scene, wrapped

GRIDS = ((2, 1), (2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 2), (1, 6), (2, 3), (5, 1))


def random_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    is_one = rng.random() < 0.62
    replicas, partitions = rng.choice(GRIDS) if is_one else (rng.choice((2, 2, 3, 3, 4)), 1)
    wild = rng.choice((0.0, 0.05, 0.15, 0.4))
    share = rng.choice((0.0, 0.0, 0.1, 0.3))
    drawing = Drawing(rng, replicas, partitions, is_one, rng.random() < 0.6, wild, data_share=share)
    drawing.feeds = rng.random() < 0.06
    entries = _entries(drawing)
    disturb(drawing, entries)
    domains = tuple(
        tuple(
            domain if slot in drawing.used.get(device, ()) else domain[:1] for slot, domain in enumerate(drawing.slots)
        )
        for device in drawing.devices
    )
    program = Program(
        tuple(entries * len(drawing.devices) if is_one else entries),
        replicas, partitions, drawing.is_given, domains, rng.choice((0, 0, 0, 0, 1, 2)), None, seed,
    )  # fmt: skip
    if drawing.feeds:
        program.infeed = _items(drawing, program)
    return program


def _entries(drawing: Drawing) -> list[Computation]:
    parts = []
    for module in drawing.modules():
        b = Builder(module, Computation("main"))
        parts.append(Part(b, b.parameter(0, f"s32[{SLOTS}]"), b.parameter(1, PAYLOAD)))
    scene = Scene(drawing, parts, (drawing.devices,), 0)
    _fill(scene, drawing.rng.choice((1, 2, 2, 3, 3)))
    return [part.builder.build(part.finish(drawing)) for part in parts]


def _fill(scene: Scene, count: int) -> None:
    drawing = scene.drawing
    for _ in range(count):
        names = ["meet"] * 4 + ["transfer"] * 3
        if scene.depth < 3:
            names += ["choose"] * 3 + ["loop"] * 2 + ["call"]
        if drawing.feeds:
            names += ["feed"] * 3
        ITEMS[drawing.rng.choice(names)](scene)
        for part in scene.present():
            part.advance(drawing, 0.4)
            if not drawing.is_given and drawing.chance(0.2):
                _tie(part)


def _tie(part: Part) -> None:
    """What comes next comes after what was there last."""
    effects = [each for each in part.builder.computation.instructions if each.effects]
    part.builder.after = (effects[-1],) if effects else ()


def _choose(scene: Scene) -> None:
    drawing = scene.drawing
    count = drawing.rng.choice((2, 2, 2, 3))
    decision = decided(scene, count)
    cohorts = decision.cohorts(scene)
    values = decision.values
    roots: list[list[Computation]] = [[] for _ in scene.parts]
    for branch in range(count):
        comes = cohorts
        if values is not None:
            comes = tuple(each for each in cohorts if _branch(decision, values[each[0]], count) == branch)
        inner = _below(scene, comes or cohorts[:1], "branch", wrapped)
        if comes or drawing.chance(0.4):
            _fill(inner, drawing.rng.choice((0, 1, 1, 2)))
        for found, part in zip(roots, inner.parts, strict=True):
            found.append(part.builder.build(part.finish(drawing)))
    name = drawing.next_name("choice")
    for part, index, branches in zip(scene.parts, decision.by_part, roots, strict=True):
        if index is not None:
            _conditional(part, index, branches, name)


def _conditional(part: Part, index: Instruction, branches: list[Computation], name: str) -> None:
    b = part.builder
    operand = b.tuple(part.state())
    if index.type == "pred":
        attributes = f", true_computation={branches[0].name}, false_computation={branches[1].name}"
    else:
        attributes = f", branch_computations={{{', '.join(each.name for each in branches)}}}"
    operands = [index, *[operand] * len(branches)]
    part.parts.append(b.emit("conditional", PAYLOAD, operands, attributes, inner=branches, name=name))


def _branch(decision: Decision, number: int, count: int) -> int:
    first = next(each for each in decision.by_part if each is not None)
    if first.type == "pred":
        return 0 if number else 1
    return number if 0 <= number < count else count - 1


Enter = Callable[[Builder, Part], Part]


def _below(scene: Scene, cohorts: Groups, stem: str, enter: Enter) -> Scene:
    parts = [enter(part.builder.inner(stem), part) for part in scene.parts]
    return Scene(scene.drawing, parts, cohorts, scene.depth + 1)


def _flat(b: Builder, outer: Part) -> Part:
    """A level whose state are several parameters."""
    data, x, *pool = (b.parameter(number, each) for number, each in enumerate(outer.state()))
    b.pool = pool
    return Part(b, data, x)


def _call(scene: Scene) -> None:
    drawing = scene.drawing
    inner = _below(scene, scene.cohorts, "called", _flat)
    _fill(inner, drawing.rng.choice((1, 1, 2)))
    name = drawing.next_name("call")
    times = 2 if drawing.is_one and drawing.chance(0.25) else 1
    for part, below in zip(scene.parts, inner.parts, strict=True):
        operands = part.state()
        computation = below.builder.build(below.finish(drawing))
        if not set(part.devices) & set(scene.active):
            continue
        for number in range(times):
            attributes, suffix = f", to_apply={computation.name}", f".{number}" * (times > 1)
            part.parts.append(
                part.builder.emit("call", PAYLOAD, operands, attributes, inner=[computation], name=name + suffix)
            )


def _feed(scene: Scene) -> None:
    for part in scene.present():
        b = part.builder
        b.emit("infeed", "(s32[], token[])", [b.emit("after-all", "token[]")])


ITEMS: dict[str, Callable[[Scene], None]] = {
    "meet": meet,
    "transfer": transfer,
    "choose": _choose,
    "loop": lambda scene: loop(scene, _fill),
    "call": _call,
    "feed": _feed,
}


def _items(drawing: Drawing, program: Program) -> tuple[int, ...]:
    """As many items as the devices take, or one less on one of them."""
    most = [0] * program.devices
    for data in all_data(program):
        machine = Machine(program, data, ({},) * program.devices)
        machine.run()
        most = [max(most[device], machine.counts["infeed", device]) for device in drawing.devices]
    if drawing.chance(0.3):
        least = drawing.rng.randrange(program.devices)
        most[least] = max(most[least] - 1, 0)
    return tuple(most)
