"""Rules of tokens, tuples, transfers, feeds, random numbers and custom calls."""

from __future__ import annotations

from typing import Any

from shape_inference import AnyShape, Layout, Shape, TupleShape, token

from ...core.graph import Instruction
from ...text.spelling.faults import Fault
from ...text.spelling.notes import PAIRS
from ...text.spelling.scanner import Scanner
from ...text.spelling.words import read_pairs
from ..reading.notes import shown
from ..reading.operation import Reading
from ..reading.regions import packed
from ..reading.rules import Results, both, rule
from ..spelling.choices import ALGORITHMS_READ, API_VERSIONS_READ, DISTRIBUTIONS_READ
from ..syntax.attributes import Dense, Record, Symbol
from .collectives import channel


@rule(*both("after_all"))
def after_all(op: Reading) -> Results:
    return op.result("after_all", op.operands)


@rule(*both("create_token"))
def create_token(op: Reading) -> Results:
    return op.result("after_all", ())


@rule(*both("tuple"))
def tuple_(op: Reading) -> Results:
    return op.result("tuple", op.operands)


@rule(*both("get_tuple_element"))
def get_tuple_element(op: Reading) -> Results:
    return op.result("get_tuple_element", *op.wants(1), index=op.integer("index"))


def _payload(op: Reading) -> AnyShape:
    """The results before the token: the only one, or a tuple of all."""
    shapes = op.shapes
    if not shapes or shapes[-1] is not token:
        op.fail("shape_mismatch", "the last result is a token")
    return shapes[0] if len(shapes) == 2 else TupleShape(shapes[:-1])


def _parts(op: Reading, made: Instruction) -> tuple[Instruction, ...]:
    """The results of an op that gives what came and a token."""
    count = len(op.operation.result_types) - 1
    came = op.emit("get_tuple_element", made, index=0)
    values = (came,) if count == 1 else op.elements(came, count)
    return (*values, op.emit("get_tuple_element", made, index=1))


@rule(*both("infeed"))
def infeed(op: Reading) -> Results:
    op.ignore("layout")
    made = op.result("infeed", *op.wants(1), shape=_payload(op), infeed_config=op.text("infeed_config", ""))
    return _parts(op, made)


@rule(*both("outfeed"))
def outfeed(op: Reading) -> Results:
    values, config = op.operands[:-1], op.text("outfeed_config", "")
    if not op.operands:
        op.wants(1)
    given = packed(op, values)
    return op.result("outfeed", given, op.operands[-1], outfeed_shape=given.shape, outfeed_config=config)


def _transferred(op: Reading) -> dict[str, Any]:
    """The channel of a transfer, and whether the host is at its other end."""
    found = {"channel_id": 0, **channel(op)}
    return {**found, "is_host_transfer": op.flag("is_host_transfer", False)}


def _pairs(op: Reading) -> dict[str, Any]:
    """The pairs of a transfer, which XLA's conversion keeps as a frontend attribute."""
    pairs = op.table("source_target_pairs", ()) or _noted_pairs(op)
    return {"source_target_pairs": pairs} if pairs else {}


def _noted_pairs(op: Reading) -> tuple[Any, ...]:
    given = op.attributes.get("mhlo.frontend_attributes")
    text = given.fields.get(PAIRS, "") if isinstance(given, Record) else ""
    if not isinstance(text, str) or not text:
        return ()
    try:
        return read_pairs(Scanner(text))  # type: ignore[arg-type]  # it calls no computation
    except Fault as fault:
        op.fail("invalid_attribute", f"{PAIRS}={text[:60]!r}: {fault.message}")


def _noted(op: Reading, start: Instruction, done: Instruction) -> Instruction:
    """The done; both halves have the frontend attributes, without the one that the pairs were."""
    notes = dict(done.annotations)
    rest = {key: value for key, value in notes.pop("frontend_attributes", {}).items() if key != PAIRS}
    pairs = {"frontend_attributes": rest} if rest else {}
    object.__setattr__(done, "annotations", {**notes, **pairs})
    op.note(start, **pairs)
    return done


@rule(*both("send"))
def send(op: Reading) -> Results:
    if not op.operands:
        op.wants(1)
    ids = _transferred(op)
    start = op.emit("send", packed(op, op.operands[:-1]), op.operands[-1], **ids, **_pairs(op))
    return _noted(op, start, op.result("send_done", start, **ids))


@rule(*both("recv"))
def recv(op: Reading) -> Results:
    ids = _transferred(op)
    start = op.emit("recv", *op.wants(1), shape=_payload(op), **ids, **_pairs(op))
    return _parts(op, _noted(op, start, op.result("recv_done", start, **ids)))


@rule(*both("rng"))
def rng(op: Reading) -> Results:
    """The third operand is the shape, which the result has already."""
    low, high, _ = op.wants(3)
    word = op.word("rng_distribution")
    if word not in DISTRIBUTIONS_READ:
        op.fail("invalid_attribute", f"{word!r} is no distribution; there are {', '.join(DISTRIBUTIONS_READ)}")
    return op.result("rng", low, high, shape=op.array_shape, distribution=DISTRIBUTIONS_READ[word])


@rule(*both("rng_bit_generator"))
def rng_bit_generator(op: Reading) -> Results:
    word, shapes = op.word("rng_algorithm"), op.shapes
    if word not in ALGORITHMS_READ:
        op.fail("invalid_attribute", f"{word!r} is no algorithm; there are {', '.join(ALGORITHMS_READ)}")
    if len(shapes) != 2:
        op.fail("arity_mismatch", "the results are the state and the bits")
    (state,) = op.wants(1)
    return op.elements(op.result("rng_bit_generator", state, algorithm=ALGORITHMS_READ[word], shape=shapes[1]))


@rule(*both("custom_call"))
def custom_call(op: Reading) -> Results:
    shapes = _result_shapes(op)
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    if op.text("call_target_name") == "ragged_all_to_all":
        return _ragged_all_to_all(op)
    version = 4 if _is_typed(op) else op.integer("api_version", 1)
    if version not in API_VERSIONS_READ:
        op.fail("invalid_attribute", f"api_version {version} is none of {', '.join(map(str, API_VERSIONS_READ))}")
    made = op.result(
        "custom_call",
        op.operands,
        custom_call_target=op.text("call_target_name"),
        shape=shape,
        custom_call_has_side_effect=op.flag("has_side_effect", False),
        backend_config=_config(op),
        api_version=API_VERSIONS_READ[version],
        called_computations=_called(op),
        output_to_operand_aliasing=_aliases(op),
        **_layouts(op),
    )
    return op.one_or_elements(made)


def _ragged_all_to_all(op: Reading) -> Results:
    """An op of HLO that JAX and XLA's own conversion write as a custom call."""
    op.ignore("api_version", "has_side_effect", "called_computations")
    fields = op.fields("backend_config") if op.has("backend_config") else op.fields("mhlo.backend_config")
    groups = fields.get("replica_groups")
    rows = groups.array.tolist() if isinstance(groups, Dense) and groups.array.ndim == 2 else []
    channel_id = fields.get("channel_id")
    ids = {"channel_id": channel_id} if type(channel_id) is int and channel_id > 0 else {}
    lists = tuple(tuple(each for each in row if each >= 0) for row in rows if row)
    return op.result("ragged_all_to_all", *op.wants(6), replica_groups=lists, **ids)


def _is_typed(op: Reading) -> bool:
    """Whether JAX has written the dictionary of a typed call under another name, beside an empty text."""
    op.ignore("api_version", "backend_config")
    return isinstance(op.attributes.get("mhlo.backend_config"), Record)


def _config(op: Reading) -> str:
    for key in ("mhlo.backend_config", "backend_config"):
        found = op.get(key, None)
        if found is not None:
            return found if isinstance(found, str) else shown(found)
    return ""


def _called(op: Reading) -> tuple[Any, ...]:
    names = op.get("called_computations", ())
    if not isinstance(names, tuple) or not all(isinstance(each, Symbol) for each in names):
        op.fail("invalid_attribute", "called_computations: a list of functions is wanted")
    return tuple(op.scope.reader.function(op, each.name) for each in names)


def _aliases(op: Reading) -> tuple[Any, ...]:
    found = []
    for each in op.get("output_operand_aliases", ()):
        fields = each.fields if isinstance(each, Record) else {}
        found.append((
            fields.get("output_tuple_indices", ()),
            fields.get("operand_index", 0),
            fields.get("operand_tuple_indices", ()),
        ))  # fmt: skip
    return tuple(found)


def _layouts(op: Reading) -> dict[str, Any]:
    """The operands' shapes with the layouts that are stated."""
    shapes = [operand.shape for operand in op.operands]
    given = op.get("operand_layouts", None)
    if not isinstance(given, tuple) or len(given) != len(shapes):
        return {}
    pairs = zip(shapes, given, strict=True)
    return {"operand_layout_constraints": tuple(_laid_out(op, "operand_layouts", *pair) for pair in pairs)}


def _result_shapes(op: Reading) -> tuple[AnyShape, ...]:
    """The results' shapes, with a layout where the stated one is not row by row, which is that of no layout."""
    given = op.get("result_layouts", None)
    if not isinstance(given, tuple) or len(given) != len(op.shapes):
        return op.shapes
    laid_out = [_laid_out(op, "result_layouts", *pair) for pair in zip(op.shapes, given, strict=True)]
    return tuple(each.plain() if _is_by_rows(each) else each for each in laid_out)


def _is_by_rows(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and shape.layout == Layout(tuple(reversed(range(shape.rank))))


def _laid_out(op: Reading, key: str, shape: AnyShape, layout: Any) -> AnyShape:
    """An array's shape with its layout; a tuple or a token as it is."""
    if not isinstance(shape, Shape) or not isinstance(layout, Dense):
        return shape
    order = tuple(layout.array.reshape(-1).tolist())
    if sorted(order) != list(range(shape.rank)):
        op.fail("invalid_attribute", f"{key}: {list(order)} is no order of the dimensions of {shape}")
    return Shape(shape.dtype, shape.dims, shape.dynamic, Layout(order))
