"""The program of one rank as HLO text: calls one after the other, loops and branches around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

SIZE = 12  # elements of the payload: what 2, 3 and 4 ranks divide
KINDS = (
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast",
)  # fmt: skip
REDUCING = ("all-reduce", "reduce-scatter")
DIMENSIONED = ("all-gather", "all-to-all", "reduce-scatter")
WITH_CHANNEL = ("all-reduce", "all-gather", "reduce-scatter")  # the others are known by their name
Body = Callable[["Lines"], None]


def braces(lists: Any) -> str:
    return "{" + ",".join("{" + ",".join(map(str, each)) + "}" for each in lists) + "}"


@define(eq=False)
class Call:
    """A collective as a rank calls it; what is not said is what all ranks say."""

    kind: str
    number: int
    stem: str = ""
    groups: tuple[tuple[int, ...], ...] | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    type: str = "f32"
    size: int = SIZE
    reducer: str = "add"
    channel: int | None = None

    @property
    def name(self) -> str:
        return f"{self.stem or 'call'}{self.number}_{self.kind.replace('-', '_')}"


@define(eq=False)
class Lines:
    """The instructions of a computation of a rank (of all ranks where `rank` is None); `data` and `x` are at hand."""

    rank: int | None
    ranks: int
    lines: list[str] = field(factory=list)
    callees: list[str] = field(factory=list)
    numbers: list[int] = field(factory=lambda: [0])

    def fresh(self, stem: str) -> str:
        self.numbers[0] += 1
        return f"{stem}.{self.numbers[0]}"

    def add(self, name: str, rest: str) -> str:
        self.lines.append(f"  {name} = {rest}")
        return name

    def inner(self) -> Lines:
        return Lines(self.rank, self.ranks, [], self.callees, self.numbers)

    # What ranks call.

    def call(self, call: Call) -> str:
        return self.add(call.name, f"{self._result(call)} {call.kind}({self._operand(call)}){self._attributes(call)}")

    def start(self, call: Call) -> str:
        """Begin a collective in the background."""
        wrapped = self.fresh("wrapped")
        body = f"{self._result(call)} {call.kind}(p){self._attributes(call)}"
        self.callees.append(
            f"{wrapped} {{\n  p = {call.type}[{call.size}] parameter(0)\n  ROOT {call.name}.in = {body}\n}}"
        )
        shape = f"(({call.type}[{call.size}]), {self._result(call)})"
        return self.add(f"{call.name}.start", f"{shape} async-start({self._operand(call)}), calls={wrapped}")

    def done(self, call: Call, suffix: str = ".done") -> str:
        return self.add(f"{call.name}{suffix}", f"{self._result(call)} async-done({call.name}.start)")

    def _operand(self, call: Call) -> str:
        if call.type == "f32" and call.size == SIZE:
            return "x"
        zero = self.add(self.fresh("zero"), f"{call.type}[] constant(0)")
        return self.add(self.fresh("zeros"), f"{call.type}[{call.size}] broadcast({zero}), dimensions={{}}")

    def _result(self, call: Call) -> str:
        size = {"all-gather": call.size * self.ranks, "reduce-scatter": call.size // self.ranks}.get(
            call.kind, call.size
        )
        return f"{call.type}[{size}]"

    def _attributes(self, call: Call) -> str:
        channel = call.number if call.channel is None else call.channel
        text = f", channel_id={channel}" * (call.kind in WITH_CHANNEL)
        if call.kind == "collective-permute":
            ring = tuple((rank, (rank + 1) % self.ranks) for rank in range(self.ranks))
            return f"{text}, source_target_pairs={braces(call.pairs or ring)}"
        text += f", replica_groups={braces(call.groups or (tuple(range(self.ranks)),))}"
        if call.kind in REDUCING:
            reducer = f"{call.reducer}.{call.type}"
            self._reducer(reducer)
            text += f", to_apply={reducer}"
        return text + ", dimensions={0}" * (call.kind in DIMENSIONED)

    def _reducer(self, name: str) -> None:
        opcode, of = name.split(".")
        text = f"{name} {{\n  a = {of}[] parameter(0)\n  b = {of}[] parameter(1)\n  ROOT r = {of}[] {opcode}(a, b)\n}}"
        if text not in self.callees:
            self.callees.insert(0, text)

    def send(self, channel: int, of: str = "f32", size: int = SIZE, pairs: str = "") -> str:
        token = self.add(self.fresh("token"), "token[] after-all()")
        operand = self._operand(Call("send", channel, type=of, size=size))
        shape = f"({of}[{size}], u32[], token[])"
        return self.add(f"send{channel}", f"{shape} send({operand}, {token}), channel_id={channel}{_told(pairs)}")

    def recv(self, channel: int, of: str = "f32", size: int = SIZE, pairs: str = "") -> str:
        token = self.add(self.fresh("token"), "token[] after-all()")
        shape = f"({of}[{size}], u32[], token[])"
        return self.add(f"recv{channel}", f"{shape} recv({token}), channel_id={channel}{_told(pairs)}")

    def send_done(self, channel: int, suffix: str = "", of: int | None = None) -> str:
        number = channel if of is None else of
        return self.add(f"send_done{channel}{suffix}", f"token[] send-done(send{channel}), channel_id={number}")

    def recv_done(self, channel: int, suffix: str = "", of: str = "f32", size: int = SIZE) -> str:
        shape = f"({of}[{size}], token[])"
        return self.add(f"recv_done{channel}{suffix}", f"{shape} recv-done(recv{channel}), channel_id={channel}")

    def blocking_send(self, channel: int) -> None:
        self.send(channel)
        self.send_done(channel)

    def blocking_recv(self, channel: int) -> None:
        self.recv(channel)
        self.recv_done(channel)

    # What decides.

    def constant(self, number: int) -> str:
        return self.add(self.fresh("constant"), f"s32[] constant({number})")

    def my_rank(self) -> str:
        mine = self.add(self.fresh("id"), "u32[] replica-id()")
        return self.add(self.fresh("rank"), f"s32[] convert({mine})")

    def own(self) -> str:
        """A number that each rank is given for itself."""
        return self.add(self.fresh("own"), "s32[] copy(data)")

    def agreed(self, number: int) -> str:
        """The largest of the numbers of all ranks."""
        self._reducer("maximum.s32")
        every = braces((tuple(range(self.ranks)),))
        text = f"s32[] all-reduce(data), channel_id={number}, replica_groups={every}, to_apply=maximum.s32"
        return self.add(f"agree{number}", text)

    def compare(self, number: str, direction: str, other: int) -> str:
        constant = self.constant(other)
        return self.add(self.fresh("compare"), f"pred[] compare({number}, {constant}), direction={direction}")

    # What stands around calls.

    def branch(self, name: str, predicate: str, taken: Body, other: Body = lambda lines: None) -> None:
        names = [self._computation(body, f"{name}.{side}") for body, side in ((taken, "true"), (other, "false"))]
        state = self.add(self.fresh("state"), f"(s32[], f32[{SIZE}]) tuple(data, x)")
        attributes = f"true_computation={names[0]}, false_computation={names[1]}"
        self.add(name, f"f32[{SIZE}] conditional({predicate}, {state}, {state}), {attributes}")

    def _computation(self, body: Body, name: str) -> str:
        inside = self.inner()
        inside.lines += [
            f"  state = (s32[], f32[{SIZE}]) parameter(0)",
            "  data = s32[] get-tuple-element(state), index=0",
            f"  x = f32[{SIZE}] get-tuple-element(state), index=1",
        ]
        body(inside)
        self.callees.append("\n".join([f"{name} {{", *inside.lines, f"  ROOT result = f32[{SIZE}] copy(x)", "}"]))
        return name

    def loop(self, name: str, trips: str, body: Body) -> None:
        shape = f"(s32[], s32[], s32[], f32[{SIZE}])"
        elements = [
            f"  state = {shape} parameter(0)",
            "  counter = s32[] get-tuple-element(state), index=0",
            "  limit = s32[] get-tuple-element(state), index=1",
            "  data = s32[] get-tuple-element(state), index=2",
            f"  x = f32[{SIZE}] get-tuple-element(state), index=3",
        ]
        inside = self.inner()
        inside.lines += elements
        body(inside)
        more = [
            "  one = s32[] constant(1)",
            "  following = s32[] add(counter, one)",
            f"  ROOT next = {shape} tuple(following, limit, data, x)",
        ]
        self.callees.append("\n".join([f"{name}.body {{", *inside.lines, *more, "}"]))
        holds = "  ROOT holds = pred[] compare(counter, limit), direction=LT"
        self.callees.append("\n".join([f"{name}.condition {{", *elements, holds, "}"]))
        zero = self.constant(0)
        state = self.add(self.fresh("state"), f"{shape} tuple({zero}, {trips}, data, x)")
        self.add(name, f"{shape} while({state}), condition={name}.condition, body={name}.body")

    def nested(self, name: str, body: Body) -> None:
        """A call of a computation."""
        inside = self.inner()
        inside.lines += ["  data = s32[] parameter(0)", f"  x = f32[{SIZE}] parameter(1)"]
        body(inside)
        self.callees.append("\n".join([f"{name}.body {{", *inside.lines, f"  ROOT result = f32[{SIZE}] copy(x)", "}"]))
        self.add(name, f"f32[{SIZE}] call(data, x), to_apply={name}.body")

    def text(self, *, is_given: bool = True) -> str:
        header = f"HloModule rank{'s' if self.rank is None else self.rank}{', is_scheduled=true' * is_given}"
        entry = [
            "ENTRY main {",
            "  data = s32[] parameter(0)",
            f"  x = f32[{SIZE}] parameter(1)",
            *self.lines,
            f"  ROOT result = f32[{SIZE}] copy(x)",
            "}",
        ]
        return "\n\n".join([f"{header}, replica_count={self.ranks}", *self.callees, "\n".join(entry)]) + "\n"


def _told(pairs: str) -> str:
    return f', frontend_attributes={{_xla_send_recv_source_target_pairs="{pairs}"}}' if pairs else ""
