"""Reading rules for ops that involve other devices, the host, or functions behind a name.

Sections:

    Groups stated by axes of a mesh, converted to lists of ids
    Collectives
    Tokens, tuples, transfers, feeds, random numbers and custom calls
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shape_inference import AnyShape, Layout, Shape, TupleShape, token
from shape_inference.bounds import MOST_DEVICES

from ...core.attributes import ReplicaGroups
from ...core.graph import Instruction
from ...text.annotations import PAIRS
from ...text.expansion import exchanged_parts
from ...text.meshes import AxisPart, StatedMesh, read_axis_part, read_mesh
from ...text.scanner import Fault, Scanner
from ...text.spelling import read_pairs
from ..reading.operation import OperationReading, attribute_text
from ..reading.rules import Results, hlo_names, rule
from ..reading.scope import pack_values
from ..spelling import ALGORITHMS_READ, API_VERSIONS_READ, DISTRIBUTIONS_READ
from ..syntax.trees import Dense, Record, Symbol

# ----------------------------------------------------------------------------
# Collectives

Item = TypeVar("Item")

# ----------------------------------------------------------------------------
# Groups stated by axes of a mesh, converted to lists of ids.

_NAMED = re.compile(r'name\s*=\s*"([^"\\]{1,200})"\s*,\s*size\s*=\s*(\d{1,9})', re.ASCII)


def groups_of_axes(op: OperationReading, stated: Record) -> ReplicaGroups:
    """The groups of devices that differ only along the axes; the first axis is outermost."""
    mesh = _read_mesh(op, stated.fields.get("mesh"))
    parts = [_read_axis(op, each) for each in _read_axes(op, stated)]
    try:
        return mesh.groups(parts)
    except ValueError as error:
        return op.fail("invalid_group", str(error))


def _read_axes(op: OperationReading, stated: Record) -> tuple[Any, ...]:
    axes = stated.fields.get("axes", ())
    if not isinstance(axes, tuple) or not all(isinstance(each, Record) for each in axes):
        op.fail("invalid_attribute", 'expected axes written as [#stablehlo.axis_ref<name = "x">]')
    return axes


def _read_axis(op: OperationReading, axis: Record) -> AxisPart:
    """An axis of a mesh, as fields or in Shardy's text."""
    name, part = axis.fields.get("name"), axis.fields.get("sub_axis_info", (None, None))
    if isinstance(name, str) and isinstance(part, tuple) and len(part) == 2:
        return AxisPart(name, *part)
    return _scan_record(op, axis, read_axis_part, "an axis of a mesh")


def _read_mesh(op: OperationReading, given: Any) -> StatedMesh:
    """A mesh, as fields or in Shardy's text, in place or by name."""
    record = _named_mesh(op, given.name) if isinstance(given, Symbol) else given
    if not isinstance(record, Record):
        op.fail("invalid_attribute", "the groups refer to mesh axes, but the mesh is missing")
    sizes = tuple((name, int(size)) for name, size in _NAMED.findall(record.text))
    mesh = StatedMesh(sizes, _read_ids(op, record)) if sizes else _scan_record(op, record, read_mesh, "a mesh")
    count, ids = mesh.count, mesh.ids
    if not 0 < count <= MOST_DEVICES or len(dict(sizes)) < len(sizes):
        op.fail("invalid_attribute", f"a mesh must have 1 to {MOST_DEVICES:,} devices and axes with different names")
    if ids is not None and (len(ids) != count or sorted(ids) != [*range(count)]):
        op.fail("invalid_attribute", f"the device ids of the mesh must be a permutation of 0..{count - 1}")
    return mesh


def _read_ids(op: OperationReading, mesh: Record) -> tuple[int, ...] | None:
    """The device ids of a mesh that is written as fields."""
    stated = mesh.fields.get("device_ids")
    ids = stated.array.reshape(-1).tolist() if isinstance(stated, Dense) else stated
    if ids is None or (isinstance(ids, tuple | list) and all(type(each) is int for each in ids)):
        return None if ids is None else tuple(ids)
    return op.fail("invalid_attribute", "expected a list of integers as the device ids of the mesh")


def _scan_record(op: OperationReading, record: Record, read: Callable[[Scanner], Item], what: str) -> Item:
    scanner = Scanner(record.text)
    try:
        found = read(scanner)
        if scanner.skip() < len(record.text):
            scanner.expected(f"the end of {what}")
    except Fault as fault:
        return op.fail("invalid_attribute", f"cannot read {record.text[:60]!r} as {what}: {fault.message}")
    return found


def _named_mesh(op: OperationReading, name: str) -> Any:
    meshes: Mapping[str, Any] = {
        str(each.attributes.get("sym_name", "")): each.attributes.get("mesh")
        for each in op.scope.reader.tree.regions[0].operations
        if each.name in ("sdy.mesh", "stablehlo.mesh")
    }
    if name not in meshes:
        op.fail("undefined_name", f"undefined mesh @{name[:60]}", *op.scope.reader.near(name, meshes))
    return meshes[name]


# ----------------------------------------------------------------------------
# Rules of collectives; as in HLO, the channel determines whether ids are replicas, partitions or both.


def read_channel(op: OperationReading) -> dict[str, Any]:
    """The channel id; an id of 0 means none."""
    fields = op.fields("channel_handle", None)
    handle = fields.get("handle", 0) if fields else 0
    if type(handle) is not int:
        op.fail("invalid_attribute", "attribute 'channel_handle': expected an integer as the handle")
    return {"channel_id": handle} if handle > 0 else {}


def read_groups(op: OperationReading) -> dict[str, Any]:
    """The groups of ids, without the -1 that pad short groups."""
    found = op.get("replica_groups", None)
    if isinstance(found, Record):
        return {"replica_groups": groups_of_axes(op, found)}
    rows = op.rows("replica_groups", ())
    return {"replica_groups": tuple(tuple(each for each in row if each >= 0) for row in rows if len(row))}


def _read_id_flag(op: OperationReading) -> dict[str, Any]:
    return {"use_global_device_ids": True} if op.flag("use_global_device_ids", False) else {}


def all_reduce_attributes(op: OperationReading) -> dict[str, Any]:
    return {"to_apply": op.region(0, "reducer", 2), **read_groups(op), **read_channel(op), **_read_id_flag(op)}


def all_gather_attributes(op: OperationReading) -> dict[str, Any]:
    dim = op.integer("all_gather_dim")
    ids = {**read_groups(op), **read_channel(op), **_read_id_flag(op)}
    shards = _count_shards(op, op.operands[0].shape if op.operands else None, op.shapes[0] if op.shapes else None, dim)
    return {"all_gather_dimension": dim, "shard_count": shards, **ids}


def permute_attributes(op: OperationReading) -> dict[str, Any]:
    return {"source_target_pairs": op.rows("source_target_pairs"), **read_channel(op)}


STARTED = {
    "all_reduce": all_reduce_attributes,
    "all_gather": all_gather_attributes,
    "collective_permute": permute_attributes,
}
"""The collectives with a start and a done of their own, each with the function that reads its attributes."""


@rule(*hlo_names(*STARTED))
def simple_collective(op: OperationReading) -> Results:
    opcode = op.operation.name.partition(".")[2]
    return op.one_or_elements(op.record_result(opcode, op.operands, **STARTED[opcode](op)))


@rule(*hlo_names("reduce_scatter"))
def reduce_scatter(op: OperationReading) -> Results:
    dim = op.integer("scatter_dimension")
    ids = {**read_groups(op), **read_channel(op), **_read_id_flag(op)}
    shards = _count_shards(op, op.shapes[0] if op.shapes else None, op.operands[0].shape if op.operands else None, dim)
    region = op.region(0, "reducer", 2)
    made = op.record_result(
        "reduce_scatter", op.operands, to_apply=region, scatter_dimension=dim, shard_count=shards, **ids
    )
    return op.one_or_elements(made)


def _count_shards(op: OperationReading, small: Any, large: Any, dim: int) -> int:
    """The extent of the large shape along a dimension as a multiple of that of the small one."""
    if isinstance(small, Shape) and isinstance(large, Shape) and 0 <= dim < min(small.rank, large.rank):
        size, whole = small.dims[dim], large.dims[dim]
        if size and whole and not whole % size:
            return whole // size
    return max(len(read_groups(op)["replica_groups"][0]) if read_groups(op)["replica_groups"] else 1, 1)


@rule(*hlo_names("all_to_all"))
def all_to_all(op: OperationReading) -> Results:
    """Each operand becomes its own all-to-all, since the operands of one HLO op have one shape.

    HLO splits and concatenates the same dimension. If two are named, parts are exchanged along the split dimension and
    then moved to the other, as in XLA's conversion.
    """
    dims = {key: op.integer(key) for key in ("split_dimension", "concat_dimension", "split_count")}
    ids = {**read_groups(op), **read_channel(op)}
    op.ignore("use_global_device_ids")  # the channel implies it
    found = tuple(_exchange_operand(op, each, dims, ids) for each in op.operands)
    return found[0] if len(found) == 1 else found


def _exchange_operand(
    op: OperationReading, operand: Instruction, dims: dict[str, int], ids: dict[str, Any]
) -> Instruction:
    split, concat, count = dims["split_dimension"], dims["concat_dimension"], dims["split_count"]
    rank = operand.shape.rank if isinstance(operand.shape, Shape) else 0
    is_valid = 0 <= split < rank and 0 <= concat < rank and count > 0
    is_stated = any(key.endswith(".sharding") for key in op.operation.attributes)  # it belongs to the all-to-all itself
    if split == concat or not is_valid or is_stated:
        return op.record_result("all_to_all", (operand,), **dims, **ids)
    made = op.record_result("all_to_all", (operand,), **{**dims, "concat_dimension": split}, **ids)
    split_sizes, order = exchanged_parts(operand.shape.dims, split, concat, count)  # type: ignore[union-attr]
    moved = op.emit("transpose", op.emit("reshape", made, new_sizes=split_sizes), permutation=order)
    sizes = moved.shape.dims  # type: ignore[union-attr]
    return op.emit(
        "reshape", moved, new_sizes=(*sizes[:concat], sizes[concat] * sizes[concat + 1], *sizes[concat + 2 :])
    )


@rule(*hlo_names("collective_broadcast"))
def collective_broadcast(op: OperationReading) -> Results:
    if op.flag("has_dynamic_root", False):
        op.fail("invalid_attribute", "xbuild cannot read a collective_broadcast whose root is an operand")
    return op.record_result("collective_broadcast", *op.expect_operands(1), **read_groups(op), **read_channel(op))


@rule(*hlo_names("replica_id", "partition_id"))
def device_id(op: OperationReading) -> Results:
    return op.record_result(op.operation.name.partition(".")[2])


# ----------------------------------------------------------------------------
# Tokens, tuples, transfers, feeds, random numbers and custom calls


@rule(*hlo_names("after_all"))
def after_all(op: OperationReading) -> Results:
    return op.record_result("after_all", op.operands)


@rule(*hlo_names("create_token"))
def create_token(op: OperationReading) -> Results:
    return op.record_result("after_all", ())


@rule(*hlo_names("tuple"))
def tuple_(op: OperationReading) -> Results:
    return op.record_result("tuple", op.operands)


@rule(*hlo_names("get_tuple_element"))
def get_tuple_element(op: OperationReading) -> Results:
    return op.record_result("get_tuple_element", *op.expect_operands(1), index=op.integer("index"))


def _payload_shape(op: OperationReading) -> AnyShape:
    """The shape of the results before the token: the only one, or a tuple."""
    shapes = op.shapes
    if not shapes or shapes[-1] is not token:
        op.fail("shape_mismatch", "expected a token as the last result")
    return shapes[0] if len(shapes) == 2 else TupleShape(shapes[:-1])


def _split_payload(op: OperationReading, made: Instruction) -> tuple[Instruction, ...]:
    """The results of an op that returns a payload and a token."""
    count = len(op.operation.result_types) - 1
    payload = op.emit("get_tuple_element", made, index=0)
    values = (payload,) if count == 1 else op.elements(payload, count)
    return (*values, op.emit("get_tuple_element", made, index=1))


@rule(*hlo_names("infeed"))
def infeed(op: OperationReading) -> Results:
    op.ignore("layout")
    made = op.record_result(
        "infeed", *op.expect_operands(1), shape=_payload_shape(op), infeed_config=op.text("infeed_config", "")
    )
    return _split_payload(op, made)


@rule(*hlo_names("outfeed"))
def outfeed(op: OperationReading) -> Results:
    values, config = op.operands[:-1], op.text("outfeed_config", "")
    if not op.operands:
        op.expect_operands(1)
    payload = pack_values(op, values)
    return op.record_result("outfeed", payload, op.operands[-1], outfeed_shape=payload.shape, outfeed_config=config)


def _read_transfer(op: OperationReading) -> dict[str, Any]:
    """The channel of a transfer, and whether its peer is the host."""
    found = {"channel_id": 0, **read_channel(op)}
    return {**found, "is_host_transfer": op.flag("is_host_transfer", False)}


def _read_pairs(op: OperationReading) -> dict[str, Any]:
    """The source-target pairs of a transfer; XLA's conversion stores them as a frontend attribute."""
    pairs = op.rows("source_target_pairs", ()) or _pairs_in_annotations(op)
    return {"source_target_pairs": pairs} if pairs else {}


def _pairs_in_annotations(op: OperationReading) -> tuple[Any, ...]:
    given = op.attributes.get("mhlo.frontend_attributes")
    text = given.fields.get(PAIRS, "") if isinstance(given, Record) else ""
    if not isinstance(text, str) or not text:
        return ()
    try:
        return read_pairs(Scanner(text))  # type: ignore[arg-type]  # it calls no computation
    except Fault as fault:
        op.fail("invalid_attribute", f"{PAIRS}={text[:60]!r}: {fault.message}")


def _share_annotations(op: OperationReading, start: Instruction, done: Instruction) -> Instruction:
    """Give both halves the frontend attributes, without that of the pairs, and return the done."""
    notes = dict(done.annotations)
    rest = {key: value for key, value in notes.pop("frontend_attributes", {}).items() if key != PAIRS}
    pairs = {"frontend_attributes": rest} if rest else {}
    object.__setattr__(done, "annotations", {**notes, **pairs})
    op.annotate(start, **pairs)
    return done


@rule(*hlo_names("send"))
def send(op: OperationReading) -> Results:
    if not op.operands:
        op.expect_operands(1)
    ids = _read_transfer(op)
    start = op.emit("send", pack_values(op, op.operands[:-1]), op.operands[-1], **ids, **_read_pairs(op))
    return _share_annotations(op, start, op.record_result("send_done", start, **ids))


@rule(*hlo_names("recv"))
def recv(op: OperationReading) -> Results:
    ids = _read_transfer(op)
    start = op.emit("recv", *op.expect_operands(1), shape=_payload_shape(op), **ids, **_read_pairs(op))
    return _split_payload(op, _share_annotations(op, start, op.record_result("recv_done", start, **ids)))


@rule(*hlo_names("rng"))
def rng(op: OperationReading) -> Results:
    """The third operand, the shape, follows from the result type."""
    low, high, _ = op.expect_operands(3)
    word = op.word("rng_distribution")
    if word not in DISTRIBUTIONS_READ:
        op.fail("invalid_attribute", f"unknown distribution {word!r}; expected one of {', '.join(DISTRIBUTIONS_READ)}")
    return op.record_result("rng", low, high, shape=op.array_shape, distribution=DISTRIBUTIONS_READ[word])


@rule(*hlo_names("rng_bit_generator"))
def rng_bit_generator(op: OperationReading) -> Results:
    word, shapes = op.word("rng_algorithm"), op.shapes
    if word not in ALGORITHMS_READ:
        op.fail("invalid_attribute", f"unknown algorithm {word!r}; expected one of {', '.join(ALGORITHMS_READ)}")
    if len(shapes) != 2:
        op.fail("arity_mismatch", f"expected two results, the state and the bits, got {len(shapes)}")
    (state,) = op.expect_operands(1)
    return op.elements(op.record_result("rng_bit_generator", state, algorithm=ALGORITHMS_READ[word], shape=shapes[1]))


@rule(*hlo_names("custom_call"))
def custom_call(op: OperationReading) -> Results:
    shapes = _result_shapes(op)
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    if op.text("call_target_name") == "ragged_all_to_all":
        return _ragged_all_to_all(op)
    version = 4 if _is_typed(op) else op.integer("api_version", 1)
    if version not in API_VERSIONS_READ:
        op.fail(
            "invalid_attribute",
            f"unknown api_version {version}; expected one of {', '.join(map(str, API_VERSIONS_READ))}",
        )
    made = op.record_result(
        "custom_call",
        op.operands,
        custom_call_target=op.text("call_target_name"),
        shape=shape,
        custom_call_has_side_effect=op.flag("has_side_effect", False),
        backend_config=_read_config(op),
        api_version=API_VERSIONS_READ[version],
        called_computations=_read_callees(op),
        output_to_operand_aliasing=_read_aliases(op),
        **_read_layouts(op),
    )
    return op.one_or_elements(made)


def _ragged_all_to_all(op: OperationReading) -> Results:
    """An HLO op that JAX and XLA write as a custom call."""
    op.ignore("api_version", "has_side_effect", "called_computations")
    fields = op.fields("backend_config") if op.has("backend_config") else op.fields("mhlo.backend_config")
    groups = fields.get("replica_groups")
    rows = groups.array.tolist() if isinstance(groups, Dense) and groups.array.ndim == 2 else []
    channel_id = fields.get("channel_id")
    ids = {"channel_id": channel_id} if type(channel_id) is int and channel_id > 0 else {}
    lists = tuple(tuple(each for each in row if each >= 0) for row in rows if row)
    return op.record_result("ragged_all_to_all", *op.expect_operands(6), replica_groups=lists, **ids)


def _is_typed(op: OperationReading) -> bool:
    """Whether JAX wrote the dictionary of a typed call as mhlo.backend_config, beside an empty backend_config."""
    op.ignore("api_version", "backend_config")
    return isinstance(op.attributes.get("mhlo.backend_config"), Record)


def _read_config(op: OperationReading) -> str:
    for key in ("mhlo.backend_config", "backend_config"):
        found = op.get(key, None)
        if found is not None:
            return found if isinstance(found, str) else attribute_text(found)
    return ""


def _read_callees(op: OperationReading) -> tuple[Any, ...]:
    names = op.get("called_computations", ())
    if not isinstance(names, tuple) or not all(isinstance(each, Symbol) for each in names):
        op.fail("invalid_attribute", "attribute 'called_computations': expected a list of functions")
    return tuple(op.scope.reader.function(op, each.name) for each in names)


def _read_aliases(op: OperationReading) -> tuple[Any, ...]:
    found = []
    for each in op.get("output_operand_aliases", ()):
        fields = each.fields if isinstance(each, Record) else {}
        found.append((
            fields.get("output_tuple_indices", ()),
            fields.get("operand_index", 0),
            fields.get("operand_tuple_indices", ()),
        ))  # fmt: skip
    return tuple(found)


def _read_layouts(op: OperationReading) -> dict[str, Any]:
    """The shapes of the operands with the stated layouts."""
    shapes = [operand.shape for operand in op.operands]
    given = op.get("operand_layouts", None)
    if not isinstance(given, tuple) or len(given) != len(shapes):
        return {}
    pairs = zip(shapes, given, strict=True)
    return {"operand_layout_constraints": tuple(_with_layout(op, "operand_layouts", *pair) for pair in pairs)}


def _result_shapes(op: OperationReading) -> tuple[AnyShape, ...]:
    """The shapes of the results; a layout is omitted if it is row-major, the default."""
    given = op.get("result_layouts", None)
    if not isinstance(given, tuple) or len(given) != len(op.shapes):
        return op.shapes
    laid_out = [_with_layout(op, "result_layouts", *pair) for pair in zip(op.shapes, given, strict=True)]
    return tuple(each.plain() if _is_row_major(each) else each for each in laid_out)


def _is_row_major(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and shape.layout == Layout(tuple(reversed(range(shape.rank))))


def _with_layout(op: OperationReading, key: str, shape: AnyShape, layout: Any) -> AnyShape:
    """The shape of an array with its layout; a scalar, a tuple or a token has none."""
    if not isinstance(shape, Shape) or not isinstance(layout, Dense) or (not shape.rank and not layout.array.size):
        return shape
    order = tuple(layout.array.reshape(-1).tolist())
    if sorted(order) != list(range(shape.rank)):
        op.fail("invalid_attribute", f"{key}: {list(order)} is not a permutation of the dimensions of {shape}")
    return Shape(shape.dtype, shape.dims, shape.dynamic, Layout(order))
