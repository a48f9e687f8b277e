"""Plants one fault of each rule of `xb.lint` in a program, in its text, next to the values that it has.

`plant` gives a program with the fault, the rule, and the names of the planted instructions; None if the program has no
place for the fault. The planted text is a program that `xb.check` accepts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from attrs import evolve, frozen

import xbuild as xb
from shape_inference import Shape
from xbuild.linting.flow import ELEMENTWISE, ValueFlow
from xbuild.properties.effects import collective_in, communicates_anywhere
from xbuild.properties.trip_counts import is_invariant, known_trips, path_of

DEVICES = 4
"""The devices of a planted program that was for one device."""


@frozen
class Planted:
    """A program with a fault, the rule that finds it, and the instructions at which it may be reported."""

    program: xb.Module
    rule: str
    names: frozenset[str]


_INSTRUCTION = re.compile(r"  (?:ROOT )?[\w.\-]+ = ")


class NoPlaceError(Exception):
    """The program has no place for the fault."""


class Draft:
    """A module and its text, in which a planter inserts lines."""

    def __init__(self, module: xb.Module, random: random.Random) -> None:
        self.module, self.random = module, random
        if module.num_devices == 1:
            lines = module.to_hlo().split("\n")
            lines[0] += f", num_partitions={DEVICES}"
            self.lines = lines
            self.replicas, self.partitions = 1, DEVICES
        else:
            self.lines = module.to_hlo().split("\n")
            self.replicas, self.partitions = module.num_replicas, module.num_partitions
        self.flow = ValueFlow(module.entry.reachable())
        rows = {row.instruction: row.times for row in xb.cost(module).rows}
        self.times = {each: times for each, times in rows.items() if times}

    @property
    def count(self) -> int:
        return self.replicas * self.partitions

    @property
    def group(self) -> str:
        """The attributes of a collective of all devices."""
        ids = ",".join(map(str, range(self.count)))
        if self.partitions == 1:
            return f"replica_groups={{{{{ids}}}}}"
        return f"channel_id=9001, replica_groups={{{{{ids}}}}}, use_global_device_ids=true"

    def pairs(self, pairs: list[tuple[int, int]]) -> str:
        channel = "channel_id=9002, " if self.partitions > 1 else ""
        return f"{channel}source_target_pairs={{{','.join(f'{{{a},{b}}}' for a, b in pairs)}}}"

    @property
    def members(self) -> int:
        """The ids that source-target pairs name."""
        return self.partitions if self.partitions > 1 else self.replicas

    # -- places

    def values(self, is_wanted: Callable[[xb.Instruction], bool]) -> list[xb.Instruction]:
        """The arrays computed from data and used, in the entry and in loops, those that move most bytes first."""
        found = [
            each
            for each in self.times
            if isinstance(each.shape, Shape)
            and each.shape.size
            and not each.shape.is_dynamic
            and each.opcode != "constant"
            and "start" not in each.opcode
            and "done" not in each.opcode
            and self.flow.users.get(each)
            and is_wanted(each)
        ]
        found.sort(key=lambda each: -each.shape.bytes * self.times[each])
        return found

    def choose(self, is_wanted: Callable[[xb.Instruction], bool], most: int = 5) -> xb.Instruction:
        """One of the values that move most bytes; raises NoPlaceError if there is none."""
        found = self.values(is_wanted)[:most]
        if not found:
            raise NoPlaceError
        return self.random.choice(found)

    def is_data(self, value: xb.Instruction) -> bool:
        return self.flow.depends_on([value], lambda each: each.opcode == "parameter" and self.is_of_entry(each))

    def is_of_entry(self, value: xb.Instruction) -> bool:
        return self.flow.home[value] is self.module.entry

    # -- edits

    def _span(self, value: xb.Instruction) -> tuple[int, int, int]:
        """The line of a value, the line after it, and the end of its computation; its attributes may take lines."""
        home = self.flow.home[value]
        head = f"ENTRY {home.name} {{" if home is self.module.entry else f"{home.name} {{"
        begin = self.lines.index(head)
        end = next(n for n in range(begin, len(self.lines)) if self.lines[n] == "}")
        pattern = re.compile(rf"  (?:ROOT )?{re.escape(value.name)} = ")
        at = next(n for n in range(begin, end) if pattern.match(self.lines[n]))
        return at, next((n for n in range(at + 1, end) if _INSTRUCTION.match(self.lines[n])), end), end

    def replace(self, value: xb.Instruction, lines: list[str], by: str, only: xb.Instruction | None = None) -> None:
        """Insert lines after a value, and use `by` in place of the value, or only in one user."""
        at, after, end = self._span(value)
        name = re.compile(rf"(?<![\w.\-]){re.escape(value.name)}(?![\w.\-])")
        places = range(at + 1, end) if only is None else [self._span(only)[0]]
        for number in places:
            head, _, rest = self.lines[number].partition("(")
            operands, close, more = rest.partition(")")
            self.lines[number] = f"{head}({name.sub(by, operands)}{close}{more}" if rest else head
        if self.lines[at].startswith("  ROOT "):
            self.lines[at] = self.lines[at].replace("  ROOT ", "  ", 1)
            lines = [*lines[:-1], f"ROOT {lines[-1]}"]
        self.lines[after:after] = [f"  {each}" for each in lines]

    def reducer(self, dtype: str) -> str:
        """The name of a computation that adds, which is inserted."""
        name = f"planted_add_{dtype}"
        text = [f"{name} {{", f"  planted_lhs = {dtype}[] parameter(0)", f"  planted_rhs = {dtype}[] parameter(1)"]
        self.lines[1:1] = ["", *text, f"  ROOT planted_sum = {dtype}[] add(planted_lhs, planted_rhs)", "}"]
        return name

    def append(self, parameters: list[tuple[str, str, str]], lines: list[str], results: list[tuple[str, str]]) -> None:
        """Append parameters, lines and results to the entry: names with shapes, and the attributes of parameters."""
        entry, root = self.module.entry, self.module.entry.root
        at, after, _ = self._span(root)
        first = len(entry.parameters)
        head = [
            f"  {name} = {shape} parameter({first + n}){attributes}"
            for n, (name, shape, attributes) in enumerate(parameters)
        ]
        self.lines[at] = self.lines[at].replace("  ROOT ", "  ", 1)
        elements = list(root.shape.elements) if not isinstance(root.shape, Shape) else [root.shape]
        parts = []
        if isinstance(root.shape, Shape):
            old = [root.name]
        else:
            old = [f"planted_part_{n}" for n in range(len(elements))]
            parts = [
                f"  {name} = {shape} get-tuple-element({root.name}), index={n}"
                for n, (name, shape) in enumerate(zip(old, elements, strict=True))
            ]
        shapes = ", ".join([*map(str, elements), *(shape for _, shape in results)])
        names = ", ".join([*old, *(name for name, _ in results)])
        tail = f"  ROOT planted_results = ({shapes}) tuple({names})"
        self.lines[after:after] = [*parts, *head, *(f"  {each}" for each in lines), tail]
        self.lines[0] = _without_layout(self.lines[0])

    def finish(self, rule: str, *names: str) -> Planted:
        return Planted(xb.parse_hlo("\n".join(self.lines)), rule, frozenset(names))


def _without_layout(header: str) -> str:
    """The header without the layout of the entry, and aliases, which no longer fit."""
    for word in (", entry_computation_layout=", ", input_output_alias=", ", buffer_donor="):
        begin = header.find(word)
        if begin < 0:
            continue
        depth, end = 0, begin + len(word)
        while end < len(header):
            depth += {"{": 1, "}": -1}.get(header[end], 0)
            end += 1
            if not depth:
                break
        header = header[:begin] + header[end:]
    return re.sub(r", allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}", "", header)


def _array(value: xb.Instruction) -> str:
    return str(value.shape.plain())


def _is_number(value: xb.Instruction) -> bool:
    return value.shape.dtype.name in ("f32", "f64", "bf16", "f16", "s32", "u32")


# ----------------------------------------------------------------------------
# The faults


def permutation_zeros(draft: Draft) -> Planted:
    def is_unmasked(value: xb.Instruction) -> bool:
        users = {user.opcode for user, _ in draft.flow.uses(value) if user is not None}
        return not users & {"select", "multiply", "and"} and draft.is_data(value)

    value = draft.choose(is_unmasked)
    shift = draft.pairs([(n, n + 1) for n in range(draft.members - 1)])
    draft.replace(value, [f"planted = {_array(value)} collective-permute({value.name}), {shift}"], "planted")
    return draft.finish("permutation_zeros", "planted")


def reduced_twice(draft: Draft) -> Planted:
    value = draft.choose(lambda each: _is_number(each) and draft.is_data(each))
    add = draft.reducer(value.shape.dtype.name)
    lines = [
        f"planted_once = {_array(value)} all-reduce({value.name}), {draft.group}, to_apply={add}",
        f"planted = {_array(value)} all-reduce(planted_once), {draft.group.replace('9001', '9003')}, to_apply={add}",
    ]
    draft.replace(value, lines, "planted")
    return draft.finish("reduced_twice", "planted")


def full_rematerialization(draft: Draft) -> Planted:
    value = draft.choose(lambda each: each.shape.rank > 0 and draft.is_data(each), 3)
    dims, dtype, own = value.shape.dims, value.shape.dtype, "partition-id" if draft.partitions > 1 else "replica-id"
    count = draft.count
    if draft.partitions > 1 and draft.replicas > 1:
        raise NoPlaceError
    whole = f"{dtype}[{','.join(map(str, (dims[0] * count, *dims[1:])))}]"
    zeros = ", planted_zero" * (len(dims) - 1)
    lines = [
        f"planted = {whole} all-gather({value.name}), {draft.group}, dimensions={{0}}",
        f"planted_id = u32[] {own}()",
        f"planted_rows = u32[] constant({dims[0]})",
        "planted_start = u32[] multiply(planted_id, planted_rows)",
        "planted_zero = u32[] constant(0)",
        f"planted_slice = {_array(value)} dynamic-slice(planted, planted_start{zeros}), "
        f"dynamic_slice_sizes={{{','.join(map(str, dims))}}}",
    ]
    draft.replace(value, lines, "planted_slice")
    return draft.finish("full_rematerialization", "planted")


def blocking_callback(draft: Draft) -> Planted:
    value = draft.choose(draft.is_data)
    target = draft.random.choice(["xla_ffi_python_cpu_callback", "xla_python_gpu_callback"])
    line = f'planted = {_array(value)} custom-call({value.name}), custom_call_target="{target}"'
    draft.replace(value, [line], "planted")
    return draft.finish("blocking_callback", "planted")


def f32_from_bf16(draft: Draft) -> Planted:
    dots = [
        each
        for each in draft.times
        if each.opcode == "dot"
        and all(isinstance(o.shape, Shape) and o.shape.dtype.name == "f32" for o in (*each.operands, each))
    ]
    if not dots:
        return _wide_collective(draft)
    costs = {row.instruction: row.flops for row in xb.cost(draft.module).rows}
    dot = max(dots, key=costs.__getitem__)
    for number, operand in enumerate(dict.fromkeys(dot.operands)):
        dims = f"[{','.join(map(str, operand.shape.dims))}]"
        lines = [
            f"planted_half_{number} = bf16{dims} convert({operand.name})",
            f"planted_wide_{number} = f32{dims} convert(planted_half_{number})",
        ]
        draft.replace(operand, lines, f"planted_wide_{number}", only=dot)
    return draft.finish("f32_from_bf16", dot.name)


def _wide_collective(draft: Draft) -> Planted:
    value = draft.choose(lambda each: each.shape.dtype.name == "f32" and draft.is_data(each))
    dims = f"[{','.join(map(str, value.shape.dims))}]"
    ring = draft.pairs([(n, (n + 1) % draft.members) for n in range(draft.members)])
    lines = [
        f"planted_half = bf16{dims} convert({value.name})",
        f"planted_wide = f32{dims} convert(planted_half)",
        f"planted = f32{dims} collective-permute(planted_wide), {ring}",
    ]
    draft.replace(value, lines, "planted")
    return draft.finish("f32_from_bf16", "planted")


def hoistable_collective(draft: Draft) -> Planted:
    places = []
    for loop in draft.times:
        trips = known_trips(loop) if loop.opcode == "while" else 0
        if trips is not None and trips < 2:
            continue
        body = loop.attributes.body
        for each in body.instructions:
            path = path_of(each) if each.opcode == "get_tuple_element" else None
            is_array = isinstance(each.shape, Shape) and each.shape.size > 0
            if path is not None and is_array and is_invariant(body, path[1]) and each in draft.flow.users:
                places.append(each)
    if not places:
        raise NoPlaceError
    places.sort(key=lambda each: -each.shape.bytes)
    value = draft.random.choice(places[:3])
    ring = draft.pairs([(n, (n + 1) % draft.members) for n in range(draft.members)])
    users = [each for each in draft.flow.users[value] if each is not draft.flow.home[value].root]
    if not users:
        raise NoPlaceError
    line = f"planted = {_array(value)} collective-permute({value.name}), {ring}"
    draft.replace(value, [line], "planted", only=users[0])
    return draft.finish("hoistable_collective", "planted")


def accumulated_collective(draft: Draft) -> Planted:
    """A sum over devices in a loop that is only added to the state: the other form of `hoistable_collective`."""
    for loop in draft.times:
        if loop.opcode != "while" or (known_trips(loop) or 2) < 2:
            continue
        body = loop.attributes.body
        elements = {path_of(each): each for each in body.instructions if each.opcode == "get_tuple_element"}
        for number, after in enumerate(body.root.operands if body.root.opcode == "tuple" else ()):
            element = elements.get((0, (number,)))
            is_sum = after.opcode == "add" and isinstance(after.shape, Shape) and after.shape.dtype.name == "f32"
            if not is_sum or element not in after.operands or draft.flow.users[element] != [after]:
                continue
            term = next((each for each in after.operands if each is not element), None)
            if term is not None and draft.flow.users[term] == [after] and term.opcode not in ("constant", "broadcast"):
                add = draft.reducer("f32")
                line = f"planted = {_array(term)} all-reduce({term.name}), {draft.group}, to_apply={add}"
                draft.replace(term, [line], "planted")
                return draft.finish("hoistable_collective", "planted")
    raise NoPlaceError


def not_reduced(draft: Draft) -> Planted:
    if draft.partitions > 1 and draft.replicas > 1:
        raise NoPlaceError
    array = "f32[8,8]"
    equal, own = _shardings(draft)
    add = draft.reducer("f32")
    parameters = [("planted_w", array, equal), ("planted_b", array, equal), ("planted_x", array, own)]
    forms = {
        "plain": [f"planted_gb = {array} tanh(planted_x)"],
        "data": [f"planted_t = {array} multiply(planted_x, planted_w)", f"planted_gb = {array} sine(planted_t)"],
    }
    lines = [
        f"planted_g = {array} multiply(planted_x, planted_x)",
        f"planted_gw = {array} all-reduce(planted_g), {draft.group}, to_apply={add}",
        *draft.random.choice([*forms.values()]),
        f"planted_new_w = {array} subtract(planted_w, planted_gw)",
        f"planted_new_b = {array} subtract(planted_b, planted_gb)",
    ]
    draft.append(parameters, lines, [("planted_new_w", array), ("planted_new_b", array)])
    return draft.finish("not_reduced", "planted_new_b")


def _shardings(draft: Draft) -> tuple[str, str]:
    """The attributes of a parameter that is equal on all devices, and of one that is not."""
    if draft.partitions == 1:
        return "", ""
    return ", sharding={replicated}", f", sharding={{devices=[{draft.partitions},1]<=[{draft.partitions}]}}"


def replicated_state(draft: Draft) -> Planted:
    if draft.partitions > 1 and draft.replicas > 1:
        raise NoPlaceError
    held = sum(p.shape.bytes for p in draft.module.entry.parameters if isinstance(p.shape, Shape))
    side = draft.count * 2
    while side * side * 4 < held / 20:
        side *= 2
    array = f"f32[{side},{side}]"
    equal, own = _shardings(draft)
    add = draft.reducer("f32")
    parameters = [("planted_w", array, equal), ("planted_m", array, equal), ("planted_x", array, own)]
    lines = [
        f"planted_a = {array} dot(planted_x, planted_w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        f"planted_t = {array} tanh(planted_a)",
        f"planted_g = {array} dot(planted_x, planted_t), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        f"planted_gw = {array} all-reduce(planted_g), {draft.group}, to_apply={add}",
        "planted_rate = f32[] constant(0.9)",
        f"planted_rates = {array} broadcast(planted_rate), dimensions={{}}",
        f"planted_kept = {array} multiply(planted_m, planted_rates)",
        f"planted_new_m = {array} add(planted_kept, planted_gw)",
        f"planted_new_w = {array} subtract(planted_w, planted_new_m)",
    ]
    draft.append(parameters, lines, [("planted_new_w", array), ("planted_new_m", array)])
    return draft.finish("replicated_state", "planted_m")


def avoidable_gather(draft: Draft) -> Planted:
    """An op of two parameters of a program for one device, sharded so that one must be moved."""
    if draft.module.num_devices > 1:
        raise NoPlaceError
    entry = draft.module.entry
    for op in entry.instructions:
        if len(op.operands) != 2 or op.operands[0] is op.operands[1] or not {*op.operands} <= {*entry.parameters}:
            continue
        dims = _dims_of_dot(op) if op.opcode == "dot" else _dims_of_sum(op)
        if dims is None:
            continue
        places = {
            each.attributes.number: xb.P(*("x" if n == dim else None for n in range(each.shape.rank)))
            for each, dim in zip(op.operands, dims, strict=True)
        }
        unscheduled = evolve(draft.module, is_scheduled=False)  # a schedule says that it is partitioned
        stated = xb.shard.annotated(unscheduled, places, mesh=xb.Mesh(x=2))
        return Planted(stated, "avoidable_gather", frozenset(each.name for each in op.operands))
    raise NoPlaceError


def _dims_of_dot(dot: xb.Instruction) -> tuple[int, int] | None:
    """A free dimension of the first operand and the contracted one of the second, to be split by 2."""
    lhs, rhs = dot.operands
    attributes = dot.attributes
    if attributes.lhs_batch_dims or len(attributes.lhs_contracting_dims) != 1:
        return None
    free = next((n for n in range(lhs.shape.rank) if n not in attributes.lhs_contracting_dims), None)
    contracted = attributes.rhs_contracting_dims[0]
    if free is None or lhs.shape.dims[free] % 2 or rhs.shape.dims[contracted] % 2:
        return None
    return free, contracted


def _dims_of_sum(op: xb.Instruction) -> tuple[int, int] | None:
    """Two different dimensions of the operands of an elementwise op, to be split by 2."""
    if op.opcode not in ELEMENTWISE or any(not isinstance(each.shape, Shape) for each in op.operands):
        return None
    if op.operands[0].shape.dims != op.operands[1].shape.dims:
        return None
    even = [n for n, dim in enumerate(op.operands[0].shape.dims) if dim and dim % 2 == 0]
    return (even[0], even[1]) if len(even) > 1 else None


FAULTS: dict[str, Callable[[Draft], Planted]] = {
    fault.__name__: fault
    for fault in (
        permutation_zeros,
        reduced_twice,
        not_reduced,
        hoistable_collective,
        accumulated_collective,
        full_rematerialization,
        replicated_state,
        avoidable_gather,
        f32_from_bf16,
        blocking_callback,
    )
}


def plant(module: xb.Module, fault: str, seed: int) -> Planted | None:
    """The program with a fault; None if it has no place for it."""
    try:
        return FAULTS[fault](Draft(module, random.Random(seed)))
    except NoPlaceError:
        return None


def finds(report: xb.LintReport, planted: Planted) -> bool:
    """Whether a report has an issue of the rule at a planted instruction, which the partitioner may have numbered."""

    def is_planted(name: str) -> bool:
        return name in planted.names or name.rpartition(".")[0] in planted.names

    return any(each.rule == planted.rule and any(map(is_planted, each.instructions)) for each in report.issues)


def is_plain(module: xb.Module) -> bool:
    """Whether a program can be planted in: it runs, and states no order that a new instruction could break."""
    return not any(
        collective_in(each) is None and communicates_anywhere(each)
        for computation in module.entry.reachable()
        for each in computation.instructions
    )
