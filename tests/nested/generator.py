"""Random HLO text of nested loops, branches and calls with collectives inside, and nests of one shape."""

from __future__ import annotations

import random

from attrs import define, field

STATE = "(s32[], f32[2])"
LOOP = "(s32[], s32[], s32[], f32[2])"  # the counter, the number of trips, and the state
SUM = "sum {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] add(a, b)\n}"
SUM_OF_FLOATS = SUM.replace("sum {", "sum_of_floats {").replace("s32", "f32")


@define
class Nest:
    """The text of a program while it is written: each computation maps the state to the state."""

    random: random.Random
    replicas: int
    partitions: int
    most: int  # statements of all computations
    most_trips: int
    texts: list[str] = field(factory=lambda: [SUM, SUM_OF_FLOATS])
    bodies: list[str] = field(factory=list)
    names: int = 0
    channels: int = 0

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def module(self, depth: int) -> str:
        entry = self.body(depth)
        main = f"ENTRY main {{\n  x = f32[2] parameter(0)\n  n = s32[] parameter(1)\n  z = s32[] {self.start()}\n"
        main += f"  s = {STATE} tuple(z, x)\n  ROOT r = {STATE} call(s), to_apply={entry}\n}}"
        header = f"HloModule nest, replica_count={self.replicas}, num_partitions={self.partitions}"
        return "\n\n".join([header, *self.texts, main]) + "\n"

    def start(self) -> str:
        return self.random.choice(["constant(0)", "constant(3)", "copy(n)"])

    def body(self, depth: int) -> str:
        """A computation of a few statements; one that was written before, with some probability."""
        if self.bodies and self.random.random() < 0.15:
            return self.random.choice(self.bodies)
        name, lines = self.name("body"), [f"  p = {STATE} parameter(0)"]
        state = "p"
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            if self.most > 0:
                self.most -= 1
                state = self.statement(lines, state, depth)
        here = self.name("v")
        lines += [f"  {here}a = s32[] get-tuple-element({state}), index=0"]
        lines += [f"  {here}x = f32[2] get-tuple-element({state}), index=1"]
        lines += [f"  ROOT {here} = {STATE} tuple({here}a, {here}x)"]
        self.texts.append(f"{name} {{\n" + "\n".join(lines) + "\n}")
        self.bodies.append(name)
        return name

    def statement(self, lines: list[str], state: str, depth: int) -> str:
        """Append a statement; the name of the state after it."""
        kinds = [self.arithmetic, self.collective]
        if depth > 0:
            kinds += [self.loop] * 4 + [self.branches] * 2 + [self.call] * 2
        here = self.name("v")
        lines += [f"  {here}a = s32[] get-tuple-element({state}), index=0"]
        lines += [f"  {here}x = f32[2] get-tuple-element({state}), index=1"]
        return self.random.choice(kinds)(lines, here, state, depth)

    def number(self, lines: list[str], here: str) -> str:
        """A number from 0 to 3: constant, of the state, of the device or of the data."""
        kind = self.random.random()
        if kind < 0.5:
            lines += [f"  {here}n = s32[] constant({self.random.randint(0, self.most_trips)})"]
            return f"{here}n"
        lines += [f"  {here}m = s32[] constant({self.random.choice((1, 2, 3))})"]
        if kind < 0.75:
            lines += [f"  {here}n = s32[] and({here}a, {here}m)"]
        elif kind < 0.85:
            lines += [f"  {here}i = u32[] {self.random.choice(('replica-id', 'partition-id'))}()"]
            lines += [f"  {here}c = s32[] convert({here}i)", f"  {here}n = s32[] and({here}c, {here}m)"]
        else:
            lines += [f"  {here}s = f32[1] slice({here}x), slice={{[0:1]}}", f"  {here}f = f32[] reshape({here}s)"]
            lines += [f"  {here}c = s32[] convert({here}f)", f"  {here}n = s32[] and({here}c, {here}m)"]
        return f"{here}n"

    def arithmetic(self, lines: list[str], here: str, state: str, depth: int) -> str:
        lines += [f"  {here}k = s32[] constant({self.random.randint(-2, 5)})"]
        lines += [f"  {here}b = s32[] {self.random.choice(('add', 'multiply', 'xor', 'maximum'))}({here}a, {here}k)"]
        lines += [f"  {here}y = f32[2] {self.random.choice(('tanh', 'negate', 'exponential'))}({here}x)"]
        lines += [f"  {here} = {STATE} tuple({here}b, {here}y)"]
        return here

    def collective(self, lines: list[str], here: str, state: str, depth: int) -> str:
        self.channels += 1
        devices = self.replicas * self.partitions
        ids = ",".join(map(str, range(devices)))
        groups = f"channel_id={self.channels}, replica_groups={{{{{ids}}}}}, use_global_device_ids=true"
        kind, b, y = self.random.random(), f"{here}a", f"{here}x"
        if kind < 0.35:
            lines += [f"  {here}b = s32[] all-reduce({here}a), {groups}, to_apply=sum"]
            b = f"{here}b"
        elif kind < 0.6:
            lines += [f"  {here}y = f32[2] all-reduce({here}x), {groups}, to_apply=sum_of_floats"]
            y = f"{here}y"
        elif kind < 0.8 and self.partitions > 1:
            pairs = ",".join(f"{{{n},{(n + 1) % self.partitions}}}" for n in range(self.partitions))
            lines += [f"  {here}b = s32[] collective-permute({here}a), channel_id={self.channels}, "]
            lines[-1] += f"source_target_pairs={{{pairs}}}"
            b = f"{here}b"
        else:
            lines += [f"  {here}s = f32[2] all-reduce-start({here}x), {groups}, to_apply=sum_of_floats"]
            lines += [f"  {here}y = f32[2] all-reduce-done({here}s)"]
            y = f"{here}y"
        lines += [f"  {here} = {STATE} tuple({b}, {y})"]
        return here

    def call(self, lines: list[str], here: str, state: str, depth: int) -> str:
        called = self.body(depth - 1)
        lines += [f"  {here} = {STATE} call({state}), to_apply={called}"]
        return here

    def branches(self, lines: list[str], here: str, state: str, depth: int) -> str:
        index = self.number(lines, here)
        called = [self.body(depth - 1) for _ in range(self.random.choice((2, 2, 3)))]
        lines += [f"  {here} = {STATE} conditional({index}, {', '.join([state] * len(called))}), "]
        lines[-1] += f"branch_computations={{{', '.join(called)}}}"
        return here

    def loop(self, lines: list[str], here: str, state: str, depth: int) -> str:
        trips, called, name = self.number(lines, here), self.body(depth - 1), self.name("loop")
        self.texts.append(
            f"{name}_condition {{\n  p = {LOOP} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
            f"  n = s32[] get-tuple-element(p), index=1\n  ROOT c = pred[] compare(i, n), direction=LT\n}}"
        )
        self.texts.append(f"{name}_body {{\n{self.trip(called)}\n}}")
        lines += [f"  {here}z = s32[] constant(0)", f"  {here}t = {LOOP} tuple({here}z, {trips}, {here}a, {here}x)"]
        lines += [f"  {here}w = {LOOP} while({here}t), condition={name}_condition, body={name}_body"]
        lines += [f"  {here}d = s32[] get-tuple-element({here}w), index=2"]
        lines += [f"  {here}e = f32[2] get-tuple-element({here}w), index=3"]
        lines += [f"  {here} = {STATE} tuple({here}d, {here}e)"]
        return here

    def trip(self, called: str) -> str:
        """The lines of a loop's body: what is inside, with the outer state or with the counter, then the next trip."""
        inner = self.random.choice(("a", "a", "i"))
        lines = [f"  p = {LOOP} parameter(0)"]
        for n, (name, shape) in enumerate((("i", "s32[]"), ("n", "s32[]"), ("a", "s32[]"), ("x", "f32[2]"))):
            lines += [f"  {name} = {shape} get-tuple-element(p), index={n}"]
        lines += ["  one = s32[] constant(1)", "  j = s32[] add(i, one)", f"  s = {STATE} tuple({inner}, x)"]
        lines += [f"  r = {STATE} call(s), to_apply={called}", "  b = s32[] get-tuple-element(r), index=0"]
        lines += ["  y = f32[2] get-tuple-element(r), index=1", f"  ROOT t = {LOOP} tuple(j, n, b, y)"]
        return "\n".join(lines)


def random_nest(seed: int) -> str:
    """The text of a random program: up to twelve levels, up to eight devices, up to about 150 kB."""
    draw = random.Random(seed)
    replicas, partitions = draw.choice(((1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 4)))
    depth = draw.choice((2, 3, 4, 5, 6, 8, 10, 12))
    most = draw.choice((5, 10, 20, 40, 80))
    return Nest(draw, replicas, partitions, most, draw.choice((1, 2, 3, 4, 7))).module(depth)


def loops_in_loops(depth: int, trips: int, innermost: str, carried: str = "a") -> str:
    """Loops in loops, each of a constant number of trips; the innermost does a collective of `innermost`.

    `innermost` is `known` (the collective is of data, and decides nothing), `none` or `decides` (a sum
    over the devices chooses whether another collective is done). `carried` is what a trip begins with: the state `a`,
    or its counter `i`.
    """
    nest = Nest(random.Random(0), 2, 2, 0, trips)
    lines = [f"  p = {STATE} parameter(0)", "  a = s32[] get-tuple-element(p), index=0"]
    lines += ["  x = f32[2] get-tuple-element(p), index=1"]
    ids = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
    y, b = "x", "a"
    if innermost != "none":
        lines += [f"  y = f32[2] all-reduce(x), channel_id=1, {ids}, to_apply=sum_of_floats"]
        y = "y"
    if innermost == "decides":
        nest.texts.append(
            f"last {{\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=3, {ids}, "
            "to_apply=sum_of_floats\n}"
        )
        nest.texts.append("left {\n  ROOT p = f32[2] parameter(0)\n}")
        lines += [f"  q = s32[] all-reduce(a), channel_id=2, {ids}, to_apply=sum", "  one = s32[] constant(1)"]
        lines += ["  b = s32[] and(q, one)", "  h = s32[] shift-right-logical(q, one)", "  k = s32[] and(h, one)"]
        lines += [f"  w = f32[2] conditional(k, {y}, {y}), branch_computations={{last, left}}"]
        b, y = "b", "w"
    lines += [f"  ROOT r = {STATE} tuple({b}, {y})"]
    nest.texts.append("innermost {\n" + "\n".join(lines) + "\n}")
    called = "innermost"
    for level in range(depth):
        name = f"level{level}"
        condition = f"p = {LOOP} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] "
        condition += "get-tuple-element(p), index=1\n  ROOT c = pred[] compare(i, n), direction=LT"
        trip = (
            nest.trip(called)
            .replace("tuple(i, x)", f"tuple({carried}, x)")
            .replace("tuple(a, x)", f"tuple({carried}, x)")
        )
        nest.texts += [f"{name}_condition {{\n  {condition}\n}}", f"{name}_body {{\n{trip}\n}}"]
        lines = [f"  p = {STATE} parameter(0)", "  a = s32[] get-tuple-element(p), index=0"]
        lines += ["  x = f32[2] get-tuple-element(p), index=1", "  z = s32[] constant(0)"]
        lines += [f"  n = s32[] constant({trips})", f"  t = {LOOP} tuple(z, n, a, x)"]
        lines += [f"  w = {LOOP} while(t), condition={name}_condition, body={name}_body"]
        lines += ["  d = s32[] get-tuple-element(w), index=2", "  e = f32[2] get-tuple-element(w), index=3"]
        lines += [f"  ROOT r = {STATE} tuple(d, e)"]
        nest.texts.append(f"{name} {{\n" + "\n".join(lines) + "\n}")
        called = name
    main = f"ENTRY main {{\n  x = f32[2] parameter(0)\n  a = s32[] constant(1)\n  s = {STATE} tuple(a, x)\n"
    main += f"  ROOT r = {STATE} call(s), to_apply={called}\n}}"
    return "\n\n".join(["HloModule nest, replica_count=2, num_partitions=2", *nest.texts, main]) + "\n"
