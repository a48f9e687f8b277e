"""Codecs of attributes with a special syntax, and of attributes that follow from shapes.

Sections:

    Custom calls, fusions and scans
    Other attributes with a special syntax, or that follow from shapes
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shape_inference import AnyShape, Layout, PrimitiveType, Shape, TupleShape, refuse
from shape_inference.dims import wider
from shape_inference.escaping import hlo_kept, hlo_string
from shape_inference.ops.elementwise import ORDERS

from ..core.attributes import Aliases
from ..core.graph import Instruction
from .annotations import take_pairs
from .literals import literal_text, read_literal
from .meshes import groups_text, read_groups
from .scanner import Fault, Scanner
from .spelling import (
    CHOICE,
    DIMS,
    FLAG,
    INTEGER,
    ONE_DIM,
    REGIONS,
    SHAPE,
    Attribute,
    Found,
    Joined,
    NameWriter,
    ParsedInstruction,
    Word,
    braces,
    derived,
    read_dims,
)

if TYPE_CHECKING:
    from .reader import HloReader


# ----------------------------------------------------------------------------
# Custom calls, fusions and scans


def _aliases_text(writer: NameWriter, aliases: Aliases) -> str:
    pairs = (f"{braces(output)}: ({number}, {braces(index)})" for output, number, index in aliases)
    return f"{{{', '.join(pairs)}}}"


def _read_alias(reader: HloReader) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """Read `{0}: (1, {})`."""
    output = read_dims(reader)
    reader.expect(":")
    reader.expect("(")
    number = reader.integer()
    reader.expect(",")
    index = read_dims(reader)
    reader.expect(")")
    return output, number, index


ALIASES = Word(_aliases_text, lambda reader: tuple(reader.listed(lambda: _read_alias(reader))))
CONSTRAINTS = Word(
    lambda writer, shapes: f"{{{', '.join(map(writer.shape, shapes))}}}",
    lambda reader: tuple(reader.listed(reader.shape)),
)


def _literal_text(writer: NameWriter, instruction: Instruction) -> str:
    """The literal, always with its layout: XLA would read the elements as a layout otherwise."""
    array = instruction.attributes.literal
    if array is None:
        return ""
    layout = Layout(tuple(reversed(range(array.ndim)))) if array.ndim else None
    return f", literal={Shape(array.dtype, array.shape, layout=layout)} {literal_text(array)}"


def _read_literal(reader: HloReader) -> Any:
    """A shape and its elements."""
    return read_elements(reader, reader.shape())[0]


def read_elements(reader: HloReader, shape: AnyShape) -> tuple[Any, str]:
    """Read the elements of an array, in braces or as one number, and their text."""
    place = reader.skip()
    if reader.sees("{"):
        text = reader.braces()
    else:
        match = reader.scan(_ONE)
        text = match[0] if match else reader.expected("the elements of a literal")
    try:
        return read_literal(Scanner(f"{text})"), shape)
    except Fault as fault:
        reader.fail(fault.kind, fault.message, place=place)


_ONE = re.compile(r"\((?:[^()]*+(?:\([^()]*+\))?+)*+\)|-?nan\([^()]*+\)|[^\s,(){}=]++")

LITERAL = Joined(
    ("literal",), _literal_text, lambda parsed: {"literal": parsed.written.get("literal")}, {"literal": _read_literal}
)


def _callees_text(writer: NameWriter, instruction: Instruction) -> str:
    called = instruction.attributes.called_computations
    return f", called_computations={REGIONS.write(writer, called)}" if called else ""


def _read_callees(parsed: ParsedInstruction) -> Found:
    """The called computations; a single one may be written as `to_apply`."""
    one = parsed.written.get("to_apply")
    listed = parsed.written.get("called_computations", ())
    if one is not None and listed:
        refuse("invalid_attribute", "to_apply and called_computations both specify computations; keep only one of them")
    return {"called_computations": (one,) if one is not None else listed}


CALLED = Joined(
    ("called_computations",),
    _callees_text,
    _read_callees,
    {"to_apply": lambda reader: reader.region(), "called_computations": REGIONS.read},
)


def _read_config(parsed: ParsedInstruction) -> Found:
    """The backend_config of a custom call is its attribute; other instructions keep it as an annotation."""
    return {"backend_config": parsed.notes.pop("backend_config", "")}


CONFIG = Joined(("backend_config",), lambda writer, instruction: "", _read_config)


def _length(parsed: ParsedInstruction) -> int | None:
    """The length of a scan without inputs, from the extents of its outputs."""
    carries, dimension = parsed.written.get("num_carries"), parsed.written.get("dimensions")
    if not isinstance(carries, int) or carries < len(parsed.operands) or parsed.shape is None:
        return None
    results = parsed.shape.elements if isinstance(parsed.shape, TupleShape) else (parsed.shape,)
    outputs = [each for each in results[: max(len(results) - carries, 0)] if isinstance(each, Shape)]
    if not outputs or not isinstance(dimension, int) or not 0 <= dimension < outputs[0].rank:
        return None
    return outputs[0].dims[dimension]


LENGTH = derived("length", _length, by_shapes=True)


# ----------------------------------------------------------------------------
# Other attributes with a special syntax, or that follow from shapes


def _slice_text(writer: NameWriter, instruction: Instruction) -> str:
    a = instruction.attributes
    strides = a.strides or (1,) * len(a.start_indices)
    is_dense = set(strides) <= {1}
    ranges = (
        f"[{low}:{high}]" if is_dense else f"[{low}:{high}:{step}]"
        for low, high, step in zip(a.start_indices, a.limit_indices, strides, strict=True)
    )
    return f", slice={{{', '.join(ranges)}}}"


def _read_range(reader: Any) -> tuple[int, int, int]:
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
    _slice_text,
    _read_slice,
    {"slice": lambda reader: reader.listed(lambda: _read_range(reader))},
)


def _branches_text(writer: NameWriter, instruction: Instruction) -> str:
    branches = list(map(writer.computation_name, instruction.attributes.branch_computations))
    if getattr(getattr(instruction.operands[0].shape, "dtype", None), "kind", "") == "pred" and len(branches) == 2:
        return f", true_computation={branches[0]}, false_computation={branches[1]}"
    return f", branch_computations={{{', '.join(branches)}}}"


def _read_branches(parsed: ParsedInstruction) -> Found:
    pair = [parsed.written[key] for key in ("true_computation", "false_computation") if key in parsed.written]
    if pair and (len(pair) < 2 or "branch_computations" in parsed.written):
        refuse("missing_attribute", "write both true_computation and false_computation, or only branch_computations")
    if pair:
        return {"branch_computations": tuple(pair)}
    return {key: parsed.written[key] for key in ("branch_computations",) if key in parsed.written}


BRANCHES = Joined(
    ("branch_computations",),
    _branches_text,
    _read_branches,
    {
        "true_computation": lambda reader: reader.region(),
        "false_computation": lambda reader: reader.region(),
        "branch_computations": lambda reader: tuple(reader.listed(reader.region)),
    },
)


def _domain_text(writer: NameWriter, instruction: Instruction) -> str:
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
    ("kind", "entry", "exit"),
    _domain_text,
    lambda parsed: dict(parsed.written.get("domain", {})),
    {"domain": _read_domain},
)


def _exchange_text(writer: NameWriter, instruction: Instruction) -> str:
    """One dimension; if they differ, `expansion` writes several instructions."""
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
    return {"split_dimension": dim, "concat_dimension": dim, "split_count": parsed.exchange_size()}


EXCHANGE = Joined(
    ("split_dimension", "concat_dimension", "split_count"),
    _exchange_text,
    _read_exchange,
    {"dimensions": ONE_DIM.read},
)


def _read_groups(parsed: ParsedInstruction) -> Found:
    """The groups; their original text becomes an annotation."""
    spelled = parsed.written.get("replica_groups")
    if spelled is None:
        return {"replica_groups": ()}
    parsed.notes["replica_groups"] = spelled
    return {"replica_groups": spelled.groups}


def _constrain_layout_text(instruction: Instruction) -> str:
    """constrain_layout, which XLA prints right after the groups."""
    kept = instruction.annotations.get("constrain_layout")
    return "" if kept is None else f", constrain_layout={kept}"


GROUPS = Joined(
    ("replica_groups",),
    lambda writer, instruction: (
        f", replica_groups={groups_text(writer, instruction)}{_constrain_layout_text(instruction)}"
    ),
    _read_groups,
    {"replica_groups": read_groups},
)


def _contexts(parsed: ParsedInstruction) -> tuple[AnyShape, ...]:
    shape = parsed.result()
    return shape.elements[2:] if isinstance(shape, TupleShape) else ()


CONTEXTS = derived("context_shapes", _contexts)


def shard_count(dimension: str, grows: bool, of_start: bool = False) -> Joined:
    """The shard_count: the quotient of the extents of result and operand along a dimension."""

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

    return derived("shard_count", find, by_shapes=True)


def _preferred_type(parsed: ParsedInstruction) -> PrimitiveType | None:
    """The element type of the result, if the operands imply a different one."""
    if not isinstance(parsed.shape, Shape):
        return None
    dtypes = [operand.shape.dtype for operand in parsed.operands[:2] if isinstance(operand.shape, Shape)]
    usual = dtypes[0] if len(set(dtypes)) == 1 else None
    if len(dtypes) == 2 and all(dtype.is_float for dtype in dtypes):
        usual = wider(*dtypes)
    found = parsed.shape.dtype
    is_narrowed = usual is not None and _KIND_ORDER[found.kind] < _KIND_ORDER[usual.kind]  # a convert follows
    return None if found is usual or is_narrowed else found


_KIND_ORDER = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}

PREFERRED = derived("preferred_element_type", _preferred_type, by_shapes=True)


def _read_map_dimensions(parsed: ParsedInstruction) -> Found:
    """The dimensions of a map; by default all."""
    operand = parsed.operand()
    every = tuple(range(operand.rank)) if operand else ()
    return {"dimensions": parsed.written.get("dimensions") or every}


MAPPED = Joined(
    ("dimensions",),
    lambda writer, instruction: f", dimensions={DIMS.write(writer, instruction.attributes.dimensions)}",
    _read_map_dimensions,
    {"dimensions": read_dims},
    by_shapes=True,
)

PAIRS_ELSEWHERE = derived("source_target_pairs", take_pairs)  # in frontend_attributes

OUTFED = Joined(
    ("outfeed_shape",),
    lambda writer, instruction: f", outfeed_shape={writer.shape(instruction.attributes.outfeed_shape)}",
    lambda parsed: {"outfeed_shape": parsed.written.get("outfeed_shape") or parsed.operands[0].shape},
    {"outfeed_shape": SHAPE.read},
    by_operands=True,
)

CHANNEL = Attribute("channel_id", "channel_id", INTEGER, missing=0)


def _channel(parsed: ParsedInstruction) -> Found:
    """The channel of a done; by default that of its start."""
    start = parsed.operands[0].attributes if parsed.operands else None
    return {"channel_id": parsed.written.get("channel_id", getattr(start, "channel_id", 0))}


CHANNEL_OF_START = Joined(
    ("channel_id",),
    lambda _, instruction: f", channel_id={instruction.attributes.channel_id}",
    _channel,
    {"channel_id": INTEGER.read},
    by_operands=True,
)


def _read_order(reader: Any) -> str:
    """Read `order=TOTAL` or `order=PARTIAL`, which newer XLA writes instead of `type`."""
    place, word = reader.skip(), reader.word()
    if word not in ("TOTAL", "PARTIAL"):
        reader.fail("invalid_attribute", f"expected order=TOTAL or order=PARTIAL, got order={word}", place=place)
    return str(word)


def _read_compare_type(parsed: ParsedInstruction) -> Found:
    """The written order, if it is one for the type of the operands; XLA ignores it otherwise."""
    operand, word, order = parsed.operand(), parsed.written.get("type"), parsed.written.get("order")
    if word and order:
        refuse("invalid_attribute", f"type={word} and order={order} both specify the order; keep only one of them")
    if order == "TOTAL":
        word = "TOTALORDER"
    orders = ORDERS.get(operand.dtype.kind, ()) if operand else ()
    return {"type": word} if word in orders or word not in _WORDS_OF_ORDERS else {}


_WORDS_OF_ORDERS = {word for words in ORDERS.values() for word in words}
COMPARED = Joined(
    ("type",),
    lambda _, instruction: f", type={instruction.attributes.type}" if instruction.attributes.type else "",
    _read_compare_type,
    {"type": CHOICE.read, "order": _read_order},
    by_shapes=True,
)


def _refuse_dynamic_root(parsed: ParsedInstruction) -> Found:
    """Refuse a broadcast whose root is the value of its last operand."""
    if parsed.written.get("has_dynamic_root"):
        refuse(
            "invalid_attribute",
            "with has_dynamic_root=true, the last operand selects the sending device; xbuild supports broadcasts only "
            "from the first device of each group",
        )
    return {}


FIXED_ROOT = Joined((), lambda writer, instruction: "", _refuse_dynamic_root, {"has_dynamic_root": FLAG.read})
