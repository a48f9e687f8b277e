"""Small programs for one module on two devices, whose values share memory, and their HLO text.

A program is a list of steps on named arrays. `Update` writes over its target; `Pure` and the results of pairs have
memory of their own. Nothing here knows how the check or the interpreter place values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from attrs import define, field, frozen


@frozen
class Pure:
    """`out` is computed from the operands, in memory of its own."""

    out: str
    operands: tuple[str, ...]


@frozen
class Update:
    """`out` is `target` with a new element, written in place.

    A `stated` update is a fusion with output_to_operand_aliasing, which replaces every element; a `scattered` one is a
    scatter, the others are dynamic-update-slices.
    """

    out: str
    target: str
    kind: Literal["slice", "scattered", "fused", "stated"] = "slice"


Pair: TypeAlias = Literal["all_reduce", "all_gather", "permute", "copy", "transfer", "update"]


@frozen
class Start:
    """A pair begins to read `operand`; a pair of kind `update` also begins to write over it."""

    out: str
    operand: str
    kind: Pair


@frozen
class Done:
    """The pair of this name ends; `out` is its result."""

    out: str
    start: str


@frozen
class Loop:
    """`trips` trips of a body on some arrays, which it names as the program does, and whose values it replaces."""

    out: tuple[str, ...]
    carried: tuple[str, ...]
    body: tuple[Step, ...]
    result: tuple[str, ...]
    trips: int


@frozen
class Branch:
    """One of two bodies on an array, which data choose."""

    out: str
    operand: str
    bodies: tuple[tuple[Step, ...], tuple[Step, ...]]
    results: tuple[str, str]


@frozen
class Call:
    """A body on an array, once."""

    out: str
    operand: str
    body: tuple[Step, ...]
    result: str


Step: TypeAlias = Pure | Update | Start | Done | Loop | Branch | Call


@frozen
class Program:
    """`donated` pairs results with the parameters in whose memory they have to be."""

    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    donated: tuple[tuple[int, int], ...] = ()


# ----------------------------------------------------------------------------
# Random programs: most updates overwrite what nothing reads later, so that races are about one in three


@define
class _Drawing:
    """What a random program has so far: arrays that may be read, and pairs under way."""

    chance: random.Random
    count: list[int] = field(factory=lambda: [0])
    arrays: list[str] = field(factory=list)
    open: list[tuple[str, str]] = field(factory=list)
    steps: list[Step] = field(factory=list)

    def name(self, prefix: str = "v") -> str:
        self.count[0] += 1
        return f"{prefix}{self.count[0]}"

    def draw(self, length: int, depth: int) -> None:
        for _ in range(length):
            kind = self.chance.choices(
                ("pure", "update", "start", "done", "loop", "branch", "call"), (4, 5, 4, 4, depth, depth, depth)
            )[0]
            getattr(self, f"_{kind}")(depth)
        self.chance.shuffle(self.open)
        while self.open:
            self._done(depth)

    def some(self) -> str:
        return self.chance.choice(self.arrays)

    def add(self, step: Step, *made: str) -> None:
        self.steps.append(step)
        self.arrays += made

    def _pure(self, _: int) -> None:
        out = self.name()
        self.add(Pure(out, tuple(self.some() for _ in range(self.chance.choice((1, 2))))), out)

    def _lose(self, array: str) -> None:
        """Forget an array that was overwritten, in most cases."""
        if len(self.arrays) > 1 and self.chance.random() < 0.93:
            self.arrays.remove(array)

    def _update(self, _: int) -> None:
        out, target = self.name(), self.some()
        self._lose(target)
        kind = self.chance.choices(("slice", "scattered", "fused", "stated"), (5, 2, 2, 2))[0]
        self.add(Update(out, target, kind), out)

    def _start(self, _: int) -> None:
        if len(self.open) < 3:
            kinds: tuple[Pair, ...] = ("all_reduce", "all_gather", "permute", "copy", "transfer", "update")
            out, operand, kind = self.name("pair"), self.some(), self.chance.choices(kinds, (1, 1, 1, 1, 1, 3))[0]
            if kind == "update":
                self._lose(operand)
            self.open.append((out, kind))
            self.add(Start(out, operand, kind))

    def _done(self, _: int) -> None:
        if self.open:
            start, _ = self.open.pop(self.chance.randrange(len(self.open)))
            out = self.name()
            self.add(Done(out, start), out)

    def inner(self, arrays: Sequence[str], length: int, *, communicates: bool) -> _Drawing:
        inside = _Drawing(self.chance, self.count, [*arrays])
        for _ in range(length):
            kinds = ("pure", "update", "start", "done") if communicates else ("pure", "update")
            getattr(inside, f"_{self.chance.choice(kinds)}")(0)
        while inside.open:
            inside._done(0)
        return inside

    def _loop(self, _: int) -> None:
        carried = tuple(dict.fromkeys(self.some() for _ in range(self.chance.choice((1, 2)))))
        inside = self.inner(carried, 3, communicates=True)
        result = tuple(inside.some() for _ in carried)
        for array in carried:
            self._lose(array)
        out = tuple(self.name() for _ in carried)
        self.add(Loop(out, carried, tuple(inside.steps), result, self.chance.choice((1, 2))), *out)

    def _branch(self, _: int) -> None:
        operand, out = self.some(), self.name()
        bodies = [self.inner([operand], self.chance.choice((0, 1, 2)), communicates=False) for _ in range(2)]
        self._lose(operand)
        first, second = bodies
        self.add(Branch(out, operand, (tuple(first.steps), tuple(second.steps)), (first.some(), second.some())), out)

    def _call(self, _: int) -> None:
        operand, out = self.some(), self.name()
        inside = self.inner([operand], 2, communicates=True)
        self._lose(operand)
        self.add(Call(out, operand, tuple(inside.steps), inside.some()), out)


def random_program(seed: int) -> Program:
    """The program of a number; it may have races, or overwrite what a later step reads."""
    chance = random.Random(seed)
    parameters = tuple(f"p{n}" for n in range(chance.choice((1, 2, 3))))
    drawing = _Drawing(chance, arrays=[*parameters])
    drawing.draw(chance.randint(2, 9), chance.choice((0, 0, 1)))
    results = tuple(dict.fromkeys(drawing.some() for _ in range(chance.choice((1, 2)))))
    donated: list[tuple[int, int]] = []
    if chance.random() < 0.4:
        number, parameter = chance.randrange(len(results)), chance.randrange(len(parameters))
        if results[number] not in parameters:
            donated.append((number, parameter))
    return Program(parameters, tuple(drawing.steps), results, tuple(donated))


# ----------------------------------------------------------------------------
# HLO text


def text_of(program: Program) -> str:
    """The program as a scheduled module for two replicas."""
    writer = _Writer()
    body = "\n".join(f"  {line}" for line in writer.entry(program))
    aliases = ", ".join(f"{{{result}}}: ({parameter}, {{}}, may-alias)" for result, parameter in program.donated)
    header = f", input_output_alias={{ {aliases} }}" if aliases else ""
    return "\n".join(
        (
            f"HloModule drawn, is_scheduled=true, num_partitions=2{header}",
            _SHARED,
            *writer.parts,
            f"ENTRY main {{\n{body}\n}}",
        )
    )


_SHARED = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
replace { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
"""


@define
class _Writer:
    """Lines of computations, and the computations that they call."""

    parts: list[str] = field(factory=list)
    pairs: dict[str, tuple[str, int]] = field(factory=dict)
    count: int = 0

    def new(self) -> int:
        self.count += 1
        return self.count

    def entry(self, program: Program) -> Iterator[str]:
        for number, name in enumerate(program.parameters):
            yield f"{name} = f32[4] parameter({number})"
        yield f"choice = pred[] parameter({len(program.parameters)})"
        for step in program.steps:
            yield from self.lines(step)
        shapes = ", ".join("f32[4]" for _ in program.results)
        yield f"ROOT results = ({shapes}) tuple({', '.join(program.results)})"

    def lines(self, step: Step) -> Iterator[str]:
        yield from getattr(self, f"_{type(step).__name__.lower()}")(step)

    def _pure(self, step: Pure) -> Iterator[str]:
        op = "negate" if len(step.operands) == 1 else "add"
        yield f"{step.out} = f32[4] {op}({', '.join(step.operands)})"

    def _update(self, step: Update) -> Iterator[str]:
        n = self.new()
        if step.kind in ("fused", "stated"):
            self.parts.append(_FUSED.format(n=n) if step.kind == "fused" else _STATED.format(n=n))
            stated = ", output_to_operand_aliasing={{}: (0, {})}" if step.kind == "stated" else ""
            yield f"{step.out} = f32[4] fusion({step.target}), kind=kLoop, calls=fused{n}{stated}"
            return
        yield f"new{n} = f32[1] constant({{{n}}})"
        yield f"at{n} = s32[] constant(0)"
        if step.kind == "slice":
            yield f"{step.out} = f32[4] dynamic-update-slice({step.target}, new{n}, at{n})"
            return
        yield f"where{n} = s32[1,1] constant({{{{0}}}})"
        yield (
            f"{step.out} = f32[4] scatter({step.target}, where{n}, new{n}), update_window_dims={{}}, "
            "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=replace"
        )

    def _start(self, step: Start) -> Iterator[str]:
        out, operand, n = step.out, step.operand, self.new()
        if step.kind == "all_reduce":
            yield f"{out} = f32[4] all-reduce-start({operand}), to_apply=add, channel_id={n}"
        elif step.kind == "all_gather":
            yield f"{out} = (f32[4], f32[8]) all-gather-start({operand}), dimensions={{0}}, channel_id={n}"
        elif step.kind == "permute":
            pairs = "source_target_pairs={{0,1},{1,0}}"
            yield f"{out} = (f32[4], f32[4]) collective-permute-start({operand}), {pairs}, channel_id={n}"
        elif step.kind == "copy":
            yield f"{out} = (f32[4], f32[4], u32[]) copy-start({operand})"
        elif step.kind == "transfer":
            pairs = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,0}}"}'
            yield f"token{n} = token[] after-all()"
            yield f"{out}_into = (f32[4], u32[], token[]) recv(token{n}), channel_id={n}, {pairs}"
            yield f"{out} = (f32[4], u32[], token[]) send({operand}, token{n}), channel_id={n}, {pairs}"
        else:
            self.parts.append(_ASYNC.format(n=n))
            yield f"{out} = ((f32[4]), f32[4], s32[]) async-start({operand}), calls=wrapped{n}"
        self.pairs[out] = step.kind, n

    def _done(self, step: Done) -> Iterator[str]:
        kind, n = self.pairs[step.start]
        out, start = step.out, step.start
        if kind == "all_gather":
            yield f"{out}_whole = f32[8] all-gather-done({start})"
            yield f"{out} = f32[4] slice({out}_whole), slice={{[0:4]}}"
        elif kind == "transfer":
            yield f"{out}_sent = token[] send-done({start}), channel_id={n}"
            yield f"{out}_got = (f32[4], token[]) recv-done({start}_into), channel_id={n}"
            yield f"{out} = f32[4] get-tuple-element({out}_got), index=0"
        elif kind == "update":
            yield f"{out} = f32[4] async-done({start}), calls=wrapped{n}"
        else:
            op = {"all_reduce": "all-reduce", "permute": "collective-permute", "copy": "copy"}[kind]
            yield f"{out} = f32[4] {op}-done({start})"

    def _loop(self, step: Loop) -> Iterator[str]:
        n, count = self.new(), len(step.carried)
        shape = f"({', '.join(['f32[4]'] * count)}, s32[])"
        lines = [f"state = {shape} parameter(0)"]
        lines += [f"{name} = f32[4] get-tuple-element(state), index={k}" for k, name in enumerate(step.carried)]
        lines += [f"trip = s32[] get-tuple-element(state), index={count}"]
        for inner in step.body:
            lines += self.lines(inner)
        lines += ["one = s32[] constant(1)", "next = s32[] add(trip, one)"]
        lines += [f"ROOT again = {shape} tuple({', '.join((*step.result, 'next'))})"]
        self._part(f"body{n}", lines)
        self._part(
            f"condition{n}",
            [
                f"state = {shape} parameter(0)", f"trip = s32[] get-tuple-element(state), index={count}",
                f"most = s32[] constant({step.trips})", "ROOT goes = pred[] compare(trip, most), direction=LT",
            ],
        )  # fmt: skip
        yield f"zero{n} = s32[] constant(0)"
        yield f"init{n} = {shape} tuple({', '.join((*step.carried, f'zero{n}'))})"
        yield f"loop{n} = {shape} while(init{n}), condition=condition{n}, body=body{n}"
        for k, name in enumerate(step.out):
            yield f"{name} = f32[4] get-tuple-element(loop{n}), index={k}"

    def _branch(self, step: Branch) -> Iterator[str]:
        n = self.new()
        for side, (steps, result) in enumerate(zip(step.bodies, step.results, strict=True)):
            self._body(f"side{n}_{side}", step.operand, steps, result)
        yield (
            f"{step.out} = f32[4] conditional(choice, {step.operand}, {step.operand}), "
            f"true_computation=side{n}_0, false_computation=side{n}_1"
        )

    def _call(self, step: Call) -> Iterator[str]:
        n = self.new()
        self._body(f"called{n}", step.operand, step.body, step.result)
        yield f"{step.out} = f32[4] call({step.operand}), to_apply=called{n}"

    def _body(self, name: str, operand: str, steps: Sequence[Step], result: str) -> None:
        lines = [f"{operand} = f32[4] parameter(0)"]
        for inner in steps:
            lines += self.lines(inner)
        found = next(k for k, line in enumerate(lines) if line.startswith(f"{result} = "))
        lines[found] = f"ROOT {lines[found]}"
        self._part(name, lines)

    def _part(self, name: str, lines: Sequence[str]) -> None:
        self.parts.append("\n".join((f"{name} {{", *(f"  {line}" for line in lines), "}")))


_FUSED = """fused{n} {{ x = f32[4] parameter(0)
  u = f32[1] constant({{{n}}})
  i = s32[] constant(0)
  ROOT d = f32[4] dynamic-update-slice(x, u, i) }}"""
_STATED = """fused{n} {{ x = f32[4] parameter(0)
  u = f32[] constant({n})
  v = f32[4] broadcast(u), dimensions={{}}
  ROOT d = f32[4] add(x, v) }}"""
_ASYNC = """wrapped{n} {{ x = f32[4] parameter(0)
  u = f32[1] constant({{{n}}})
  i = s32[] constant(0)
  ROOT d = f32[4] dynamic-update-slice(x, u, i) }}"""
