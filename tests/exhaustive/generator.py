"""Random programs of several devices: what communicates, in loops, branches and calls that something decides."""

from __future__ import annotations

import random
from collections.abc import Callable

from attrs import frozen

from .builder import SLOTS, Builder
from .decisions import Decision, decided
from .expressions import integer
from .judge import all_data
from .machine import Machine
from .meeting import braces, meet
from .program import Computation, Instruction, Program, Transfer
from .scene import PAYLOAD, Drawing, Groups, Part, Scene, refined

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
    _disturb(drawing, entries)
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


def _transfer(scene: Scene) -> None:
    drawing = scene.drawing
    pairs = _pairs(scene)
    if not pairs:
        return
    transfer = Transfer(drawing.next_channel(), pairs)
    is_late = drawing.chance(max(drawing.wild, 0.05) if drawing.is_given else 0.5)
    for part in scene.present():
        sends = any(source in part.devices for source, _ in pairs)
        takes = any(target in part.devices for _, target in pairs)
        if drawing.is_one:
            sends = takes = True
        halves = _Halves(scene, part, transfer)
        steps = [halves.recv] * takes + [halves.send] * sends
        ends = [halves.send_done] * sends + [halves.recv_done] * takes
        if is_late:
            steps.reverse()
        if drawing.chance(0.2) and sends and takes:
            steps, ends = [halves.send, halves.send_done], [halves.recv, halves.recv_done]
        if steps:
            scene.begin(part, [*steps, *ends])


class _Halves:
    """The four instructions of a transfer on one part."""

    def __init__(self, scene: Scene, part: Part, transfer: Transfer) -> None:
        self.scene, self.part, self.transfer = scene, part, transfer
        self.made: dict[str, Instruction] = {}

    def _token(self) -> Instruction:
        return self.part.builder.emit("after-all", "token[]")

    @property
    def _attributes(self) -> str:
        pairs = braces(self.transfer.pairs) if self.scene.drawing.is_one else ""
        told = f', frontend_attributes={{_xla_send_recv_source_target_pairs="{pairs}"}}' if pairs else ""
        return f", channel_id={self.transfer.channel}{told}"

    def _emit(self, opcode: str, shape: str, operands: list[Instruction]) -> Instruction:
        name = f"{opcode.replace('-', '_')}{self.transfer.channel}"
        self.made[opcode] = self.part.builder.emit(
            opcode, shape, operands, self._attributes, given=self.transfer, name=name
        )
        return self.made[opcode]

    def recv(self) -> None:
        self._emit("recv", f"({PAYLOAD}, u32[], token[])", [self._token()])

    def send(self) -> None:
        x = self.part.payload(self.scene.drawing)
        self._emit("send", f"({PAYLOAD}, u32[], token[])", [x, self._token()])

    def send_done(self) -> None:
        self._emit("send-done", "token[]", [self.made["send"]])

    def recv_done(self) -> None:
        taken = self._emit("recv-done", f"({PAYLOAD}, token[])", [self.made["recv"]])
        self.part.parts.append(self.part.builder.element(taken, 0, PAYLOAD))


def _pairs(scene: Scene) -> Groups:
    """Who sends to whom: of those that come alike; of several modules one pair."""
    drawing, pairs = scene.drawing, list[tuple[int, int]]()
    cohorts = [scene.active] if drawing.chance(drawing.wild) else [*scene.cohorts]
    for cohort in cohorts:
        sources, targets = [*cohort], [*cohort]
        if drawing.chance(0.5):
            targets = targets[1:] + targets[:1]
        else:
            drawing.rng.shuffle(targets)
        pairs += [pair for pair in zip(sources, targets, strict=True) if pair[0] != pair[1] and drawing.chance(0.7)]
    drawing.rng.shuffle(pairs)
    return tuple(pairs if drawing.is_one else pairs[:1])


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
        inner = _below(scene, comes or cohorts[:1], "branch", _wrapped)
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


def _wrapped(b: Builder, outer: Part) -> Part:
    """A level whose state is one tuple."""
    state = outer.state()
    whole = b.parameter(0, f"({', '.join(each.shape for each in state)})")
    data, x, *pool = (_element(b, whole, number, each) for number, each in enumerate(state))
    b.pool = pool
    return Part(b, data, x)


def _element(b: Builder, whole: Instruction, number: int, like: Instruction) -> Instruction:
    made = b.element(whole, number, like.shape)
    made.values, made.uniform = like.values, like.uniform
    return made


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


def _loop(scene: Scene) -> None:
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
    _fill(inner, drawing.rng.choice((1, 1, 2)) if comes else 1)
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
        self.part = _wrapped(b, outer)
        if state is None:
            return
        b.computation.instructions.clear()
        whole = b.parameter(0, state.shape)
        counter, limit, data, x, *pool = (_element(b, whole, n, each) for n, each in enumerate(state.values))
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


def _feed(scene: Scene) -> None:
    for part in scene.present():
        b = part.builder
        b.emit("infeed", "(s32[], token[])", [b.emit("after-all", "token[]")])


ITEMS: dict[str, Callable[[Scene], None]] = {
    "meet": meet, "transfer": _transfer, "choose": _choose, "loop": _loop, "call": _call, "feed": _feed,
}  # fmt: skip


def _disturb(drawing: Drawing, entries: list[Computation]) -> None:
    """In a given order, now and then, two neighbours change places that may."""
    while drawing.is_given and drawing.chance(min(drawing.wild + 0.05, 0.3)):
        entry = drawing.rng.choice(entries)
        computation = drawing.rng.choice([*entry.reached()])
        effects = [each for each in computation.instructions if each.effects]
        if len(effects) > 1:
            place = drawing.rng.randrange(len(effects) - 1)
            _moved_up(computation, effects[place + 1], effects[place])


def _moved_up(computation: Computation, later: Instruction, before: Instruction) -> None:
    """Move an instruction (with what it needs) before another, unless it needs that."""
    needed = dict[Instruction, None]()

    def need(instruction: Instruction) -> None:
        for each in (*instruction.operands, *instruction.control):
            need(each)
        needed[instruction] = None

    need(later)
    if before in needed:
        return
    at = computation.instructions.index(before)
    first = [each for each in computation.instructions[:at] if each not in needed]
    rest = [each for each in computation.instructions[at:] if each not in needed]
    kept = [each for each in computation.instructions[:at] if each in needed]
    moved = [each for each in computation.instructions[at:] if each in needed]
    order = {each: n for n, each in enumerate(computation.instructions)}
    computation.instructions[:] = [*sorted((*first, *kept), key=order.__getitem__), *moved, *rest]
    computation.renumber()
    computation.code = None


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
