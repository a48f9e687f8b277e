"""The wording of findings: instructions with their place and shape, and devices that take different branches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from attrs import evolve

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.elided import ElidedArray

from ...core.graph import Instruction
from ...properties.effects import (
    START_OF,
    TRANSFERS,
    CallStep,
    Path,
    base_of,
    collective_in,
    communicates_itself,
    is_in_place,
    name_in_report,
    notable,
    op_and_name,
    start_of,
    steps,
    where,
)
from ...properties.sites import Site, collectives_of, reached
from ...properties.trip_counts import element, is_invariant
from .outer_values import follow, outer_texts
from .program import devices_text
from .verdict import Finding, ReportRow

# ----------------------------------------------------------------------------
# Instructions by name, call path, channel, groups and shape; findings and their rows

SHOWN = 4


def payload(instruction: Instruction) -> AnyShape:
    """The shape that an instruction passes: of a send its operand, of a recv its result, of a collective its operands.

    Several operands are a tuple; a ragged all-to-all and a permute in place pass only their first.
    """
    if instruction.opcode == "recv":
        return instruction.attributes.shape  # type: ignore[no-any-return]
    operands = instruction.operands
    passes_all = collective_in(instruction) is instruction and base_of(instruction) != "ragged_all_to_all"
    if len(operands) > 1 and passes_all and not is_in_place(instruction):
        return TupleShape(tuple(each.shape for each in operands))
    return operands[0].shape if operands else instruction.shape


def fact(instruction: Instruction, device: int | None = None, peer: int | None = None) -> str:
    """`channel 1 -> device 1, f32[4]`, `f32[128], groups {0,1},{2,3}`"""
    collective = collective_in(instruction)
    if collective is not None:
        return _collective_fact(collective)
    start = start_of(instruction) if instruction.opcode in START_OF else None
    if start is not None and collective_in(start) is not None:
        return fact(start)
    if not hasattr(instruction.attributes, "channel_id"):
        return "" if isinstance(instruction.shape, TupleShape) else str(instruction.shape)
    channel = f"channel {instruction.attributes.channel_id}"
    if instruction.opcode not in ("send", "recv"):
        return channel
    arrow = "->" if instruction.opcode == "send" else "<-"
    host = ", host transfer" if instruction.attributes.is_host_transfer else ""
    target = "" if peer is None else f" {arrow} device {peer}"
    return f"{channel}{target}, {payload(instruction)}{host}"


def _collective_fact(collective: Instruction) -> str:
    attributes = collective.attributes
    shape, channel = payload(collective), getattr(attributes, "channel_id", None)
    parts = [str(shape), groups_text(collective)]
    return ", ".join([*parts, *([f"channel {channel}"] if channel is not None else [])])


def groups_text(collective: Instruction) -> str:
    """`groups {0,1},{2,3}`, `all devices`, `pairs {0,1}`"""
    pairs = getattr(collective.attributes, "source_target_pairs", None)
    lists = getattr(collective.attributes, "replica_groups", ()) if pairs is None else pairs
    if not lists and pairs is None:
        return "one group of all"
    return f"{'groups' if pairs is None else 'pairs'} {','.join(braces(ids) for ids in lists) or '{}'}"


def braces(ids: Iterable[int]) -> str:
    return f"{{{','.join(map(str, ids))}}}"


def named(instruction: Instruction, path: Path = ()) -> str:
    """`send s in while w`, `send.1 in while.25`"""
    return f"{op_and_name(instruction)}{where(path)}"


def calls_text(blocked: Iterable[tuple[int, Instruction]]) -> str:
    """`send.1 of device 0 and send.2 of device 1`, in the order of the devices; only the first of many calls."""
    devices: dict[str, set[int]] = {}
    for device, instruction in sorted(blocked, key=lambda pair: pair[0]):
        devices.setdefault(instruction.name, set()).add(device)
    parts = [f"{name} of {devices_text(callers)}" for name, callers in devices.items()]
    if len(parts) > SHOWN:
        parts = [*parts[: SHOWN - 1], f"{len(parts) - SHOWN + 1} more"]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def untying_text(ties: Sequence[tuple[Instruction, Instruction, int]]) -> str:
    """The advice to remove one of the dependencies that fix an order: (later, earlier, device)."""
    parts = [f"{late.name} depends on {early.name} on device {device}" for late, early, device in ties[:SHOWN]]
    return f"remove one of these dependencies (use a separate token, or a different operand): {', '.join(parts)}"


def row(devices: Iterable[int], site: Site, peer: int | None = None) -> ReportRow:
    """The row of a site: the devices, its name, its facts, its line."""
    members = tuple(devices)
    return ReportRow(members, str(site), fact(site.instruction, members[0], peer), site.instruction.source)


def absent_row(devices: Iterable[int], text: str) -> ReportRow:
    """The row of devices that lack the other half of a transfer, or a collective."""
    return ReportRow(tuple(devices), text)


def finding(
    kind: str,
    message: str,
    *places: tuple[Iterable[int], Site],
    rows: Iterable[ReportRow] = (),
    facts: Sequence[str] = (),
    **more: str,
) -> Finding:
    """A finding about these sites: a row for each, with its fact if `facts` are given, then the other rows."""
    listed = [(tuple(devices), site) for devices, site in places]
    site_rows = [row(devices, site) for devices, site in listed]
    if facts:
        site_rows = [evolve(one, fact=text) for one, text in zip(site_rows, facts, strict=True)]
    return Finding(
        kind,
        message,
        (*site_rows, *rows),
        instructions=tuple(dict.fromkeys(site.instruction for _, site in listed)),
        devices=tuple(sorted({device for devices, _ in listed for device in devices})),
        **more,  # type: ignore[arg-type]
    )


def nest_finding(name: str, *places: tuple[tuple[int, ...], Site]) -> Finding:
    """The finding that two sites that should meet are under different calls."""
    (_, a), (_, b) = places
    return finding(
        "nest_mismatch",
        f"the two sides of {name} are inside different calls: {_place_text(a)}, {_place_text(b)}",
        *places,
        cause_text="the sides would run a different number of times, or one would wait for code that may not run",
        repair_text=f"put {a.instruction.name} and {b.instruction.name} inside the same kinds of calls",
    )


def _place_text(site: Site) -> str:
    return str(site) if site.path else f"{site} in the entry computation"


# ----------------------------------------------------------------------------
# Devices that take different branches: the predicate as written, the cause, and the repair

_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_BY_DEVICE = {"replica_id": "replica-id", "partition_id": "partition-id"}
_THROUGH = ("convert", "copy", "reshape", "opt_barrier")
DEEPEST, LONGEST = 4, 160
MOST_SHOWN = 8  # operands of one op
MOST_NAMED = 3  # instructions that communicate in one place
_OF_JAX = re.compile(
    r"(?:jit|pjit|pmap)\(|(?:.*/)?(?:p(?:sum|max|min|permute|broadcast)|all_gather|all_to_all|psum_scatter)\b"
)
Bound: TypeAlias = Mapping[Instruction, Callable[[], str]]
UNBOUND: Bound = {}


def innermost_branch(site: Site) -> CallStep | None:
    """The innermost branch around a site."""
    return next((step for step in reversed(site.path) if step.instruction.opcode == "conditional"), None)


def predicate_row(site: Site, step: CallStep, here: int, missing: tuple[int, ...]) -> ReportRow:
    """`compare.1 = (replica-id == 0)`, `conditional.2: true_computation on device 0, another branch on device 1`"""
    predicate, path = follow(step.instruction.operands[0], _path_to(site, step))
    takes = f"{step.branch} on device {here}, another branch on {devices_text(missing)}"
    return ReportRow(
        (here, *missing),
        _equation(predicate, _outer_bound(predicate, path)),
        f"decides {step.instruction.name}: {takes}",
        predicate.source,
    )


def decider_row(unit: Site, devices: Sequence[int]) -> ReportRow:
    """The row of a predicate: `compare.1 = (n > 0)`, `decides conditional.2`; that of a loop reads its `state`."""
    decided, fact = unit.instruction, f"decides {unit.instruction.name}"
    if decided.opcode == "while":
        condition = decided.attributes.condition
        predicate, bound = condition.root, {condition.parameters[0]: lambda: "state"}
        step = next(step for step in steps(decided) if step.computation is condition)
        bound = {**bound, **_outer_bound(predicate, (*unit.path, step))}
        fact += "".join(f"; {line}" for line in _state_lines(decided))
    else:
        predicate, path = follow(decided.operands[0], unit.path)
        bound = {**_outer_bound(predicate, path)}
    return ReportRow(tuple(devices), _equation(predicate, bound), fact, predicate.source)


def _is_of_jax(instruction: Instruction) -> bool:
    """Whether JAX lowered an instruction, by the op_name that it gives."""
    op_name = str((instruction.annotations.get("metadata") or {}).get("op_name", ""))
    return _OF_JAX.match(op_name) is not None


def _state_lines(loop: Instruction) -> Iterator[str]:
    """`state[1] is computed at solver.py:19`, for what the condition of a while reads and its trips change."""
    (state,), body = loop.attributes.condition.parameters, loop.attributes.body
    read = {
        each.attributes.index
        for each in loop.attributes.condition.instructions
        if each.opcode == "get_tuple_element" and each.operands[0] is state
    }
    for index in sorted(read):
        value = None if is_invariant(body, (index,)) else element(body.root, index)
        line = None if value is None else users_line(value)
        if line:
            yield f"state[{index}] is computed at {line}"


def users_line(instruction: Instruction) -> str:
    """`solver.py:19`; empty if only the line of a text is known."""
    source = instruction.source
    return "" if source is None or source.file.startswith("<") else str(source).partition(" in ")[0]


def communication_inside(unit: Instruction) -> str:
    """`all-reduce psum.2, train.py:23` for what communicates inside a loop or conditional; only the first three."""
    inside = _communicating_in(unit)
    lines = ((named(each), users_line(each)) for each in itertools.islice(inside, MOST_NAMED))
    texts = [", ".join(filter(None, each)) for each in lines]
    more = len(inside) - len(texts)
    return "; ".join(texts) + f"; {more} more" * (more > 0)


def _communicating_in(unit: Instruction) -> list[Instruction]:
    """The collectives, sends and recvs of the computations that a loop or conditional calls."""
    places = (each for called in unit.called for computation in reached(called) for each in notable(computation))
    meets = (each for each in places if communicates_itself(each))
    return [*dict.fromkeys(each for each in meets if collective_in(each) is not None or each.opcode in TRANSFERS)]


def equal_on_all_devices(unit: Instruction, decider: str) -> str:
    """How a user makes what decides a loop or conditional equal on all devices."""
    function, where_to = "(maximum, or, and)", "to the values it is computed from"
    if any(map(_is_of_jax, (unit, *_communicating_in(unit)))):
        function, where_to = "(maximum), such as jax.lax.pmax,", f"to the {decider} or {where_to}"
    return f"make the {decider} equal on all devices: apply an all-reduce {function} {where_to}"


def _path_to(site: Site, step: CallStep) -> Path:
    """The path to the instruction of a step on the path to a site."""
    return site.path[: site.path.index(step)]


def _outer_bound(value: Instruction, path: Path) -> Bound:
    """The texts of what a value takes from outside of the loops, branches and calls around it."""
    return outer_texts(value, path, DEEPEST + 1, lambda each, outer: _expression(each, 3, _outer_bound(each, outer)))


def _equation(instruction: Instruction, bound: Bound = UNBOUND) -> str:
    expression, name = expression_text(instruction, bound), name_in_report(instruction)
    return name if expression == name else f"{name} = {expression}"


def cause_in_branch(site: Site, step: CallStep) -> str:
    """Why only some devices reach a site in a branch."""
    decider = deciding_id(step.instruction.operands[0], _path_to(site, step))
    kind = "a collective" if collective_in(site.instruction) is not None else site.instruction.opcode.replace("_", "-")
    return f"{kind} inside a conditional whose predicate {f'depends on {decider}' if decider else 'differs'}"


def is_in_other_branch(site: Site, step: CallStep) -> bool:
    """Whether another branch of a conditional reaches a collective with the op and the channel of this one."""
    own = collective_in(site.instruction)
    others = [called for called in step.instruction.called if called is not step.computation]
    return own is not None and any(
        (found := collective_in(other.instruction)) is not None
        and found.opcode == own.opcode
        and getattr(found.attributes, "channel_id", None) == getattr(own.attributes, "channel_id", None)
        for called in others
        for other in collectives_of(called)
    )


def repair_in_branch(site: Site, step: CallStep) -> str:
    """Which edit makes all devices reach a site in a branch."""
    name, conditional = site.instruction.name, step.instruction.name
    if is_in_other_branch(site, step):
        return (
            f"run the collectives in the same order in all branches of {conditional}, or move {name} and those that "
            "match it out of the branches"
        )
    if collective_in(site.instruction) is None:
        return (
            f"move {name} and its done out of {conditional}, or move the matching half to a place that the same "
            "devices reach"
        )
    return (
        f"move {name} out of {conditional}: return its operand from this branch and the neutral element, such as "
        f"zeros, from the other branches; then run {name} after {conditional}"
    )


def deciding_id(predicate: Instruction, path: Path = ()) -> str:
    """The id that a predicate is computed from, such as `replica-id`; empty if it is computed from none.

    `path` leads to the predicate, and values are followed out of it.
    """
    stack, seen = [(predicate, path)], set[tuple[Instruction, int]]()
    while stack:
        value, outer = stack.pop()
        if value.opcode in _BY_DEVICE:
            return _BY_DEVICE[value.opcode]
        if (value, len(outer)) not in seen:
            seen.add((value, len(outer)))
            stack += [(each, outer) for each in value.operands]
            stack.append(follow(value, outer))
            if value.opcode == "fusion":
                stack.append((value.called[0].root, ()))
    return ""


def bound_from_id(loop: Instruction) -> Instruction | None:
    """The initial value that a while's condition reads and that is computed from the id of a device; None without."""
    if loop.opcode != "while" or loop.operands[0].opcode != "tuple":
        return None
    (parameter,), initial = loop.attributes.condition.parameters, loop.operands[0].operands
    for each in loop.attributes.condition.instructions:
        if each.opcode == "get_tuple_element" and each.operands[0] is parameter:
            value: Instruction = initial[each.attributes.index]
            if deciding_id(value):
                return value
    return None


def expression_text(instruction: Instruction, bound: Bound = UNBOUND) -> str:
    """The expression of a value, of at most `LONGEST` characters: `(replica-id == 0)`; inner operands by name.

    `bound` has the texts of parameters. Of many operands, only the first `MOST_SHOWN` are shown.
    """
    texts = (_expression(instruction, depth, bound) for depth in range(DEEPEST, -1, -1))
    return next((text for text in texts if len(text) <= LONGEST), name_in_report(instruction))


def _expression(instruction: Instruction, depth: int, bound: Bound) -> str:
    """The expression, with operands below this depth by name; a fusion is what its root is."""
    opcode, operands = instruction.opcode, instruction.operands
    if instruction in bound:
        return bound[instruction]()
    if opcode in _BY_DEVICE:
        return _BY_DEVICE[opcode]
    if opcode == "constant" and isinstance(instruction.shape, Shape) and not instruction.shape.dims:
        literal = instruction.attributes.literal
        return instruction.name if isinstance(literal, ElidedArray) else str(literal[()])
    if depth == 0 or opcode == "parameter" or not operands:
        return name_in_report(instruction)
    inner = [partial(_expression, operand, depth - 1, bound) for operand in operands]
    if opcode in _THROUGH:
        return inner[0]()
    if opcode == "get_tuple_element":
        return f"{inner[0]()}[{instruction.attributes.index}]"
    if opcode == "fusion":
        (called,) = instruction.called
        return _expression(called.root, depth, dict(zip(called.parameters, inner, strict=True)))
    if opcode == "compare":
        left, right = inner
        return f"({left()} {_SIGNS[instruction.attributes.direction]} {right()})"
    shown = [text() for text in inner[:MOST_SHOWN]] + ["..."] * (len(operands) > MOST_SHOWN)
    return f"{opcode.replace('_', '-')}({', '.join(shown)})"
