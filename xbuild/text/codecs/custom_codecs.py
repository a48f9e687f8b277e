"""Codecs of attributes with a syntax of their own in HLO text, and of those that the text derives from shapes."""

from __future__ import annotations

from typing import Any

from shape_inference import AnyShape, PrimitiveType, Shape, TupleShape, refuse
from shape_inference.dims import wider
from shape_inference.escaping import hlo_kept, hlo_string
from shape_inference.ops.elementwise import ORDERS

from ...core.graph import Instruction
from ..spelling.groups import groups_text, read_groups
from ..spelling.notes import read_pairs_of
from ..spelling.parsed import ParsedInstruction
from ..spelling.spelling import Attribute, Found, Joined, told
from ..spelling.words import CHOICE, DIMS, INTEGER, ONE_DIM, SHAPE, read_dims
from ..spelling.writer import Writer


def _slice(writer: Writer, instruction: Instruction) -> str:
    a = instruction.attributes
    strides = a.strides or (1,) * len(a.start_indices)
    is_dense = set(strides) <= {1}
    ranges = (
        f"[{low}:{high}]" if is_dense else f"[{low}:{high}:{step}]"
        for low, high, step in zip(a.start_indices, a.limit_indices, strides, strict=True)
    )
    return f", slice={{{', '.join(ranges)}}}"


def _range(reader: Any) -> tuple[int, int, int]:
    """`[low:high]` or `[low:high:step]`."""
    reader.expect("[")
    low = reader.integer()
    reader.expect(":")
    high = reader.integer()
    step = reader.integer() if reader.take(":") else 1
    reader.expect("]")
    return low, high, step


def _read_slice(parsed: ParsedInstruction) -> Found:
    if "slice" not in parsed.written:
        return {}
    starts, limits, strides = zip(*parsed.written["slice"], strict=True) if parsed.written["slice"] else ((), (), ())
    return {"start_indices": starts, "limit_indices": limits, "strides": () if set(strides) <= {1} else strides}


SLICE = Joined(
    ("start_indices", "limit_indices", "strides"),
    _slice,
    _read_slice,
    {"slice": lambda reader: reader.listed(lambda: _range(reader))},
)


def _branches(writer: Writer, instruction: Instruction) -> str:
    branches = list(map(writer.called, instruction.attributes.branch_computations))
    if getattr(getattr(instruction.operands[0].shape, "dtype", None), "kind", "") == "pred" and len(branches) == 2:
        return f", true_computation={branches[0]}, false_computation={branches[1]}"
    return f", branch_computations={{{', '.join(branches)}}}"


def _read_branches(parsed: ParsedInstruction) -> Found:
    pair = [parsed.written[key] for key in ("true_computation", "false_computation") if key in parsed.written]
    if pair and (len(pair) < 2 or "branch_computations" in parsed.written):
        refuse("missing_attribute", "true_computation and false_computation are wanted, or branch_computations alone")
    if pair:
        return {"branch_computations": tuple(pair)}
    return {key: parsed.written[key] for key in ("branch_computations",) if key in parsed.written}


BRANCHES = Joined(
    ("branch_computations",),
    _branches,
    _read_branches,
    {
        "true_computation": lambda reader: reader.region(),
        "false_computation": lambda reader: reader.region(),
        "branch_computations": lambda reader: tuple(reader.listed(reader.region)),
    },
)


def _domain(writer: Writer, instruction: Instruction) -> str:
    a = instruction.attributes
    return f", domain={{kind={hlo_string(a.kind)}, entry={a.entry}, exit={a.exit}}}"


def _read_domain(reader: Any) -> Found:
    """`{kind="sharding", entry={...}, exit={...}}`."""
    found: Found = {}
    for before, key in zip("{,,", ("kind", "entry", "exit"), strict=True):
        reader.expect(before)
        if not reader.take(f"{key}="):
            reader.expected(f"{key}=")
        found[key] = reader.string() if key == "kind" else hlo_kept(reader.braces())
    reader.expect("}")
    return found


DOMAIN = Joined(
    ("kind", "entry", "exit"), _domain, lambda parsed: dict(parsed.written.get("domain", {})), {"domain": _read_domain}
)


def _exchanged_dimension(writer: Writer, instruction: Instruction) -> str:
    """HLO has one dimension for both; where they differ, `expansion` writes several instructions."""
    a = instruction.attributes
    if a.split_dimension is None:
        return ""
    if a.concat_dimension in (None, a.split_dimension):
        return f", dimensions={{{a.split_dimension}}}"
    return f", split_dimension={a.split_dimension}, concat_dimension={a.concat_dimension}"


def _read_exchange(parsed: ParsedInstruction) -> Found:
    if "dimensions" not in parsed.written:
        return {}
    dim = parsed.written["dimensions"]
    return {"split_dimension": dim, "concat_dimension": dim, "split_count": parsed.exchanged()}


EXCHANGE = Joined(
    ("split_dimension", "concat_dimension", "split_count"),
    _exchanged_dimension,
    _read_exchange,
    {"dimensions": ONE_DIM.read},
)


def _read_groups(parsed: ParsedInstruction) -> Found:
    """The plain groups; how they were spelled is a note, unless it is the plain way."""
    spelled = parsed.written.get("replica_groups")
    if spelled is None:
        return {"replica_groups": ()}
    parsed.notes["replica_groups"] = spelled
    return {"replica_groups": spelled.groups}


def _constrained(instruction: Instruction) -> str:
    """A note that XLA has right after the groups."""
    kept = instruction.annotations.get("constrain_layout")
    return "" if kept is None else f", constrain_layout={kept}"


GROUPS = Joined(
    ("replica_groups",),
    lambda writer, instruction: f", replica_groups={groups_text(writer, instruction)}{_constrained(instruction)}",
    _read_groups,
    {"replica_groups": read_groups},
)


def _contexts(parsed: ParsedInstruction) -> tuple[AnyShape, ...]:
    shape = parsed.result()
    return shape.elements[2:] if isinstance(shape, TupleShape) else ()


CONTEXTS = told("context_shapes", _contexts)


def shards(dimension: str, grows: bool, of_start: bool = False) -> Joined:
    """How often the result holds the operand along the dimension, or the operand the result."""

    def find(parsed: ParsedInstruction) -> int:
        dim, operand = parsed.written.get("dimensions"), parsed.operand()
        result = parsed.element(1, 2) if of_start else parsed.shape
        if isinstance(result, TupleShape) and result.elements:  # of several operands
            result = result.elements[0]
        if not isinstance(dim, int) or operand is None or not isinstance(result, Shape):
            return parsed.members()
        if not 0 <= dim < min(operand.rank, result.rank):
            return parsed.members()
        small, large = (operand, result) if grows else (result, operand)
        fits = small.dims[dim] and not large.dims[dim] % small.dims[dim] and large.dims[dim]
        return large.dims[dim] // small.dims[dim] if fits else parsed.members()

    return told("shard_count", find, by_operands=True)


def _preferred(parsed: ParsedInstruction) -> PrimitiveType | None:
    """The element type of the result where the operands alone would give another."""
    if not isinstance(parsed.shape, Shape):
        return None
    dtypes = [operand.shape.dtype for operand in parsed.operands[:2] if isinstance(operand.shape, Shape)]
    usual = dtypes[0] if len(set(dtypes)) == 1 else None
    if len(dtypes) == 2 and all(dtype.is_float for dtype in dtypes):
        usual = wider(*dtypes)
    found = parsed.shape.dtype
    is_poorer = usual is not None and _RICHNESS[found.kind] < _RICHNESS[usual.kind]  # a convert follows
    return None if found is usual or is_poorer else found


_RICHNESS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}

PREFERRED = told("preferred_element_type", _preferred, by_operands=True)


def _read_mapped(parsed: ParsedInstruction) -> Found:
    """All dimensions, unless some are written."""
    operand = parsed.operand()
    every = tuple(range(operand.rank)) if operand else ()
    return {"dimensions": parsed.written.get("dimensions") or every}


MAPPED = Joined(
    ("dimensions",),
    lambda writer, instruction: f", dimensions={DIMS.write(writer, instruction.attributes.dimensions)}",
    _read_mapped,
    {"dimensions": read_dims},
    by_operands=True,
)

PAIRS_ELSEWHERE = told("source_target_pairs", read_pairs_of)  # frontend_attributes has them

OUTFED = Joined(
    ("outfeed_shape",),
    lambda writer, instruction: f", outfeed_shape={writer.shape(instruction.attributes.outfeed_shape)}",
    lambda parsed: {"outfeed_shape": parsed.written.get("outfeed_shape") or parsed.operands[0].shape},
    {"outfeed_shape": SHAPE.read},
    by_operands=True,
)

CHANNEL = Attribute("channel_id", "channel_id", INTEGER, missing=0)


def _channel(parsed: ParsedInstruction) -> Found:
    """That of the start, where a done has none of its own."""
    start = parsed.operands[0].attributes if parsed.operands else None
    return {"channel_id": parsed.written.get("channel_id", getattr(start, "channel_id", 0))}


CHANNEL_OF_START = Joined(
    ("channel_id",),
    lambda _, instruction: f", channel_id={instruction.attributes.channel_id}",
    _channel,
    {"channel_id": INTEGER.read},
    by_operands=True,
)


def _compared(parsed: ParsedInstruction) -> Found:
    """The order that is written, where it is one of the operands' type; XLA takes theirs where it is not."""
    operand, word = parsed.operand(), parsed.written.get("type")
    orders = ORDERS.get(operand.dtype.kind, ()) if operand else ()
    return {"type": word} if word in orders or word not in _WORDS_OF_ORDERS else {}


_WORDS_OF_ORDERS = {word for words in ORDERS.values() for word in words}
COMPARED = Joined(
    ("type",),
    lambda _, instruction: f", type={instruction.attributes.type}" if instruction.attributes.type else "",
    _compared,
    {"type": CHOICE.read},
    by_operands=True,
)
