"""The short spelling of async ops that wrap one op: `all-to-all-start`, `negate-done`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shape_inference import AnyShape, TupleShape, XbuildError, compatible, refuse

from ..core.builder import infer_shape
from ..core.graph import NOTHING, Computation, Instruction
from ..core.op import OPS, Schema
from ..properties.effects import origin, wrapped_in
from .annotations import BY_GROUPS, KEPT
from .counts import check_ids
from .expansion import expansion
from .spelling import REGION, STRING, Joined, NameWriter, ParsedInstruction, segments_of

if TYPE_CHECKING:
    from .reader import Body


THREAD = "async_execution_thread"
IN_SUGAR = {THREAD: STRING.read}
IN_HALVES = {THREAD: STRING.read, "calls": REGION.read}
HALVES = ("async_update", "async_done")
ASYNC = ("async_start", "async_update", "async_done")
_ENDS = {"-start": "async_start", "-update": "async_update", "-done": "async_done"}
_SPELLED = {schema.spelling: schema for schema in OPS.values() if schema.opcode not in ("constant", "parameter")}


def sugared(half: Instruction) -> Instruction | None:
    """The op whose name spells an async start, update or done; None if the short spelling does not apply.

    It does not if it would mean another op, such as all-reduce-start, or would lose information.
    """
    start = half if half.opcode == "async_start" else origin(half)
    wrapped = wrapped_in(start) if start is not None and start.opcode == "async_start" else None
    if wrapped is None or start is None or wrapped.opcode == "constant" or _has_own_halves(wrapped.opcode):
        return None
    if "output_to_operand_aliasing" in start.annotations:  # the short form would give it to the wrapped op
        return None
    in_order = wrapped.operands == start.attributes.calls.parameters
    return wrapped if in_order and expansion(wrapped) == (wrapped,) else None


def _has_own_halves(opcode: str) -> bool:
    """Whether a start or done of the op is an opcode itself."""
    return f"{opcode}_start" in OPS or f"{opcode}_done" in OPS


def spelled_opcode(instruction: Instruction) -> str:
    """The opcode in HLO text."""
    spelling = instruction.opcode.replace("_", "-")
    wrapped = sugared(instruction) if instruction.opcode in ASYNC else None
    return spelling if wrapped is None else spelling.replace("async", wrapped.opcode.replace("_", "-"))


def hidden_computations(computations: tuple[Computation, ...]) -> frozenset[Computation]:
    """The computations that are printed only as the short form of their start."""
    started = {i for i in _starts(computations) if sugared(i) is not None}
    hidden = {start.attributes.calls for start in started}
    if hidden:
        hidden -= {called for c in computations for i in c.instructions if i not in started for called in i.called}
    return frozenset(hidden)


def _starts(computations: tuple[Computation, ...]) -> Iterator[Instruction]:
    return (i for c in computations for i in c.instructions if i.opcode == "async_start")


def execution_threads(computations: tuple[Computation, ...]) -> Mapping[Computation, str]:
    """The execution thread of each computation that does not run on the main thread."""
    found: dict[Computation, str] = {}
    for start in _starts(computations):
        if start.attributes.async_execution_thread != "main":
            for called in start.attributes.calls.reachable():
                found[called] = start.attributes.async_execution_thread
    return found


def _calls_text(writer: NameWriter, start: Instruction) -> str:
    from .codec_table import spellings

    wrapped = sugared(start)
    if wrapped is None:
        return f", calls={writer.computation_name(start.attributes.calls)}"
    own = [spelling.text(writer, wrapped) for spelling in spellings(wrapped.opcode)] if wrapped.attributes else []
    kept = (key for key in KEPT.get(wrapped.opcode, ()) if key in wrapped.annotations and key not in BY_GROUPS)
    return "".join([*own, *(f", {key}={wrapped.annotations[key]}" for key in kept)])


CALLS = Joined(
    ("calls",),
    _calls_text,
    lambda parsed: {key: parsed.written[key] for key in ("calls",) if key in parsed.written},
    {"calls": REGION.read},
    by_operands=True,
)


def find_op(spelling: str, shape: AnyShape | None) -> tuple[Schema, Schema | None] | None:
    """The op of this spelling, and the wrapped op if it is the short form of an async op."""
    own = OPS.get(spelling.replace("-", "_")) if spelling in _SPELLED or spelling in ("constant", "parameter") else None
    for end, opcode in _ENDS.items():
        base = _SPELLED.get(spelling.removesuffix(end)) if spelling.endswith(end) else None
        if base is not None and (own is None or (opcode == "async_start" and _is_async_start(own, shape))):
            return OPS[opcode], base
    return None if own is None else (own, None)


def _is_async_start(own: Schema, shape: AnyShape | None) -> bool:
    """Whether a start of this shape, whose name is also an opcode, is an async-start, with a tuple of operands."""
    parts = shape.elements if isinstance(shape, TupleShape) else ()
    first = parts[0] if parts else None
    if own.opcode == "collective_permute_start" and isinstance(parts[1] if len(parts) > 1 else None, TupleShape):
        return False  # a collective-permute-start of several operands
    return isinstance(first, TupleShape) and (own.opcode != "all_gather_start" or len(first) == 1)


def resolve_async(body: Body, schema: Schema, wrapped: Schema | None, parsed: ParsedInstruction, place: int) -> Schema:
    """The op, given its operands: anything that completes an async-start is an async op, whatever its name."""
    start = parsed.operands[0] if parsed.operands else None
    while start is not None and start.opcode == "async_update":
        start = start.operands[0]
    is_async = start is not None and start.opcode == "async_start"
    if is_async and schema.opcode.endswith("_done"):
        wrapped = OPS.get(schema.opcode.removesuffix("_done")) if wrapped is None else wrapped
        schema = OPS["async_done"]
    if schema.opcode not in ("async_update", "async_done"):
        return schema
    if start is None or not is_async:
        got = f"{start.opcode.replace('_', '-')} {start.name!r}" if start is not None else "no operand"
        body.reader.fail(
            "missing_start", f"{schema.spelling}: expected an async-start as its operand, got {got}", place=place
        )
    begun = wrapped_in(start)
    if wrapped is not None and (begun is None or begun.opcode != wrapped.opcode):
        name = "several ops" if begun is None else begun.opcode.replace("_", "-")
        body.reader.fail(
            "done_kind_mismatch",
            f"{start.name!r} started {name}, but this op completes {wrapped.spelling}",
            place=place,
        )
    return schema


def extra_keys(schema: Schema, starts: Schema | None) -> Mapping[str, Any]:
    """Additional attributes that an async op may have in the text."""
    return IN_SUGAR if starts else IN_HALVES if schema.opcode in HALVES else NOTHING


def check_repeated(body: Body, parsed: ParsedInstruction, place: int) -> None:
    """Check attributes that an update or done repeats from its start, as in older texts."""
    start = parsed.operands[0]
    while start.opcode == "async_update":
        start = start.operands[0]
    for key in IN_HALVES.keys() & parsed.written.keys():
        first, again = getattr(start.attributes, key), parsed.written.pop(key)
        if first is not again and first != again:
            texts = [getattr(each, "name", each) for each in (again, first)]
            body.reader.fail(
                "invalid_attribute", f"{key}={texts[0]} differs from {key}={texts[1]} in {start.name!r}", place=place
            )


def unfold_start(
    body: Body, wrapped: Schema, parsed: ParsedInstruction, shape: AnyShape | None, place: int
) -> ParsedInstruction:
    """Expand the short form of an async-start: its op, operands and attributes become a computation."""
    if not isinstance(shape, TupleShape) or len(shape) < 2:
        body.reader.fail(
            "shape_mismatch",
            f"expected ((operands), result, contexts...) as the shape of an async-start, got {shape}",
            place=place,
        )
    kept = (*KEPT.get(wrapped.opcode, ()),)
    thread = {key: parsed.written.pop(key) for key in (THREAD,) if key in parsed.written}
    inner = evolve(
        parsed, shape=shape.elements[1].plain(), notes={k: parsed.notes.pop(k) for k in kept if k in parsed.notes}
    )
    calls = _wrap_op(body, wrapped, inner, shape.elements[1], place)
    return evolve(parsed, written={"calls": calls, **thread})


def _wrap_op(body: Body, wrapped: Schema, parsed: ParsedInstruction, declared: AnyShape, place: int) -> Computation:
    from .reader import record_of

    values: dict[str, Any] = {}
    segments = None
    parameters = [*_wrapped_parameters(body, parsed)]
    try:
        segments = segments_of(wrapped, len(parameters))
        record = record_of(wrapped, parsed, values)
        shape = infer_shape(wrapped, tuple(p.shape.plain() for p in parameters), segments, record)
        if not compatible(shape, declared):
            refuse("shape_mismatch", f"the result is {shape}, but the text states {declared}")
    except XbuildError as error:
        raise body.fault_of(error, wrapped, parsed.operands, segments, values, place) from None
    root = Instruction(
        wrapped.opcode,
        wrapped.spelling,
        declared,
        tuple(parameters),
        segments,
        record,
        body.where,
        (),
        parsed.annotations,
    )
    check_ids(body, root, wrapped, place)
    computation = Computation(f"wrapped_{wrapped.opcode}", (*parameters, root), root)
    body.reader.add(computation)
    return computation


def _wrapped_parameters(body: Body, parsed: ParsedInstruction) -> Iterator[Instruction]:
    record = OPS["parameter"].attributes
    assert record is not None
    for number, operand in enumerate(parsed.operands):
        attributes = record(number=number, shape=body.plain[operand.name])
        yield Instruction("parameter", f"param_{number}", operand.shape, attributes=attributes, where=body.where)


def check_unshared(body: Body, calls: Computation) -> None:
    """Refuse a computation that two async-starts call."""
    if calls in body.reader.started:
        refuse(
            "invalid_attribute",
            f"another async-start already calls {calls.name}; each async-start needs its own computation",
        )
    body.reader.started.add(calls)
