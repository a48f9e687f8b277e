"""Loops that count in several ways to a number that something decides, with what communicates inside."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from .decisions import decided
from .expressions import integer
from .model.meeting import meet
from .program import Instruction
from .scene import PAYLOAD, Drawing, Part, Scene, element, refined, wrapped

Fill = Callable[[Scene, int], None]


@frozen
class Count:
    """How a loop counts: where it begins, what it does each time, how long it goes on, how many trips that are."""

    begin: int | None
    opcode: str
    by: int
    direction: str


COUNTS = {
    "up": Count(0, "add", 1, "LT"),
    "by two": Count(0, "add", 2, "LT"),
    "down": Count(None, "subtract", 1, "GT"),
    "halves": Count(None, "shift-right-logical", 1, "NE"),
    "from one": Count(1, "add", 1, "LE"),
    "doubles": Count(1, "multiply", 2, "LE"),
}


def trips_of(count: str, limit: int) -> int:
    """How often a loop runs that counts to (or from) a number of 0, 1, 2, ..."""
    if count == "by two":
        return (max(limit, 0) + 1) // 2
    if count in ("halves", "doubles"):
        return max(limit, 0).bit_length()
    return max(limit, 0)


def loop(scene: Scene, fill: Fill) -> None:
    drawing = scene.drawing
    count = drawing.rng.choice([*COUNTS])
    decision = decided(scene, drawing.rng.choice((2, 3, 4)), is_trips=True)
    cohorts, values = decision.cohorts(scene), decision.values
    if values is not None:
        cohorts = refined(scene.cohorts, lambda device: trips_of(count, values[device]))
    comes = cohorts
    if values is not None:
        comes = tuple(each for each in cohorts if trips_of(count, values[each[0]]))
    changes = drawing.chance(0.4)
    states = [
        None if limit is None else _LoopState(part, COUNTS[count], limit)
        for part, limit in zip(scene.parts, decision.by_part, strict=True)
    ]
    bodies = [_Body(part, state) for part, state in zip(scene.parts, states, strict=True)]
    inner = Scene(drawing, [body.part for body in bodies], comes or cohorts[:1], scene.depth + 1)
    fill(inner, drawing.rng.choice((1, 1, 2)) if comes else 1)
    tests = Scene(drawing, [_Body(p, s, "holds").part for p, s in zip(scene.parts, states, strict=True)], cohorts, 3)
    if drawing.chance(0.05):
        meet(tests, "all-reduce")
    name = drawing.next_name("loop")
    for part, state, body, test in zip(scene.parts, states, inner.parts, tests.parts, strict=True):
        if state is not None:
            _while(drawing, part, state, body, test, name, changes=changes)


class _LoopState:
    """The state with which a loop begins: its counter, its limit, then what is handed in."""

    def __init__(self, part: Part, count: Count, limit: Instruction) -> None:
        b, self.count = part.builder, count
        self.counter = limit if count.begin is None else b.constant(count.begin, "s32")
        self.limit = b.constant(0, "s32") if count.begin is None else limit
        self.values = [self.counter, self.limit, *part.state()]
        self.shape = f"({', '.join(each.shape for each in self.values)})"


class _Body:
    """A computation of a loop, with its state in parts."""

    def __init__(self, outer: Part, state: _LoopState | None, stem: str = "body") -> None:
        b = outer.builder.inner(stem)
        self.part = wrapped(b, outer)
        if state is None:
            return
        b.computation.instructions.clear()
        whole = b.parameter(0, state.shape)
        counter, limit, data, x, *pool = (element(b, whole, n, each) for n, each in enumerate(state.values))
        counter.values = None
        b.pool = [counter, limit, *pool]
        self.part = Part(b, data, x)


def _while(
    drawing: Drawing, part: Part, state: _LoopState, body: Part, test: Part, name: str, *, changes: bool
) -> None:
    b, inside, count = part.builder, body.builder, state.count
    elements = inside.computation.instructions[1 : 1 + len(state.values)]
    x = body.finish(drawing)
    counter = inside.binary(count.opcode, elements[0], inside.constant(count.by, "s32"))
    pool = [*elements[4:]]
    if changes and pool:
        kept = inside.pool
        inside.pool = [*pool, elements[0]]
        pool[-1] = inside.convert(integer(inside, "s32", 1), pool[-1].type)
        inside.pool = kept
    root = inside.tuple([counter, elements[1], elements[2], x, *pool])
    test.finish(drawing)
    tested = test.builder.computation.instructions
    holds = test.builder.compare(count.direction, tested[1], tested[2])
    computations = [test.builder.build(holds), inside.build(root)]
    attributes = f", condition={computations[0].name}, body={computations[1].name}"
    made = b.emit("while", state.shape, [b.tuple(state.values)], attributes, inner=computations, name=name)
    part.parts.append(b.element(made, 3, PAYLOAD))
