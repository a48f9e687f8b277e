"""How a shape case, stated with XlaBuilder's names, is called in `xb`: names are adapted here, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import AnyShape, ProgramShape, Shape, TokenShape, TupleShape, parse_program_shape, parse_shape
from xbuild.core.builder import Values
from xbuild.core.op import OPS, Schema

Case = Mapping[str, Any]

# Where xb's name is not the case's: functions that take a case's attributes, and other words for an attribute.
FUNCTIONS = {
    "convolution": ("conv_general_dilated", "convolution"),
    "dot-general": ("dot_general",),
    "reduce-window": ("reduce_window_with_general_padding", "reduce_window"),
    "select-and-scatter": ("select_and_scatter_with_general_padding", "select_and_scatter"),
}
OPCODES = {"dot-general": "dot", "top-k": "topk", "rng-uniform": "rng", "rng-normal": "rng"}
SYNONYMS = {
    "start": ("start_indices",),
    "limit": ("limit_indices",),
    "broadcast_sizes": ("sizes",),
    "lhs_contracting": ("lhs_contracting_dims", "lhs_contracting_dimensions"),
    "rhs_contracting": ("rhs_contracting_dims", "rhs_contracting_dimensions"),
    "lhs_batch": ("lhs_batch_dims", "lhs_batch_dimensions"),
    "rhs_batch": ("rhs_batch_dims", "rhs_batch_dimensions"),
    "dimension_numbers": ("dim_labels",),
    "dimensions": ("dimensions_to_reduce",),
    "slice_sizes": ("dynamic_slice_sizes",),
    "comparator": ("to_apply",),
    "to_apply": ("computation", "update_computation"),
    "window_dimensions": ("size",),
    "inserted_window_dims": ("collapsed_slice_dims",),
}
SHAPES = ("shape", "outfeed_shape")


def call(case: Case) -> xb.Value:
    """Record the case's op on parameters of its operand shapes; the names of all values are free of digits."""
    builder = xb.Builder("case")
    shapes = list(map(parse_shape, case["operands"]))
    values = [
        xb.parameter(builder, number=n, shape=shape, name=f"v{ascii_lowercase[n]}") for n, shape in enumerate(shapes)
    ]
    function = _strict(case) or function_of(case["op"])
    if not values and "builder" not in inspect.signature(function).parameters:
        function = getattr(xb.ops, function.__name__, function)  # the strict op takes builder= where nothing tells it
    arguments, keywords = _arguments(case, builder, function, values)
    keywords.update(_attributes(case, function))
    return function(*arguments, **keywords)


def function_of(op: str) -> Callable[..., Any]:
    name = op.replace("-", "_")
    for candidate in (*FUNCTIONS.get(op, ()), name, f"{name}_"):
        if callable(found := getattr(xb, candidate, None)):
            return found
    raise LookupError(f"xb has no {name}")


def _strict(case: Case) -> Callable[..., Any] | None:
    """The strict op, where a dimension is negative: XlaBuilder refuses it, and xb's form counts it from the last."""
    schema = _schema(case["op"], function_of(case["op"]))
    if schema is None or not _counts_from_the_last(case):
        return None
    function = getattr(xb.ops, schema.declaration.__name__)
    given = {*_grouped(case), *case.get("computations", ())}
    return (
        function if {_parameter(name, schema.names) for name in given} == schema.needed | given & schema.names else None
    )


def _counts_from_the_last(case: Case) -> bool:
    given = (value for name, value in case["attrs"].items() if "dim" in name)
    numbers = (each for value in given for each in (value if isinstance(value, list) else [value]))
    return any(isinstance(each, int) and each < 0 for each in numbers)


def spellings(op: str) -> set[str]:
    """The names that an op goes by: the case's, HLO's and XlaBuilder's."""
    from xbuild.reference.op_names import NAMES

    names = {op, OPCODES.get(op, op).replace("_", "-"), getattr(function_of(op), "__name__", op)}
    for row in NAMES.values():
        if {row.spelling, row.xla_builder.lower()} & {op, op.replace("-", "")} or row.opcode in names:
            names |= {row.spelling, row.xla_builder}
    return names - {""}


def _schema(op: str, function: Callable[..., Any]) -> Schema | None:
    name = getattr(function, "__name__", "").strip("_")
    opcode = OPCODES.get(op, op).replace("-", "_")
    return OPS.get(opcode, OPS.get(name))


def _arguments(
    case: Case, builder: xb.Builder, function: Callable[..., Any], values: list[xb.Value]
) -> tuple[list[Any], dict[str, Any]]:
    """The operands, each list of them as one argument; by name, where the function takes attributes between them."""
    parameters = inspect.signature(function).parameters
    schema = _schema(case["op"], function)
    if next(iter(parameters), None) == "builder":
        return [builder], {}
    parts = _parts(schema, values) if schema else [[value] for value in values]
    segments = [_argument(part, kind) for part, kind in _kinds(schema, parts)]
    if case["op"].startswith("dynamic-") and len(parts[-1]) == 1 and isinstance(parts[-1][0].shape, Shape):
        segments[-1] = parts[-1][0] if parts[-1][0].shape.rank else parts[-1]
    needs_builder = {"builder": builder} if not values else {}
    if schema and any(p.kind is p.VAR_POSITIONAL and p.name in schema.operands for p in parameters.values()):
        return values, needs_builder
    is_strict = schema is not None and function is getattr(xb.ops, schema.declaration.__name__)
    if schema and set(schema.operands) <= set(parameters) and not is_strict:
        return [], {**dict(zip(schema.operands, segments, strict=True)), **needs_builder}
    return segments, needs_builder


def _argument(part: list[xb.Value], kind: Any) -> Any:
    return part if kind is Values else part[0] if part else None


def _kinds(schema: Schema | None, parts: list[list[xb.Value]]) -> Iterator[tuple[list[xb.Value], Any]]:
    kinds = schema.kinds if schema and len(schema.kinds) == len(parts) else (None,) * len(parts)
    yield from zip(parts, kinds, strict=True)


def _parts(schema: Schema, values: Sequence[xb.Value]) -> list[list[xb.Value]]:
    """The operands shared out over an op's operand lists, the first of them first, all lists alike long."""
    lists = sum(kind is Values for kind in schema.kinds)
    if not lists:
        return [[value] for value in values]
    many = max(len(values) - (len(schema.kinds) - lists), 0)
    rest, found, seen = list(values), [], 0
    for kind in schema.kinds:
        size = (many + lists - 1 - seen) // lists if kind is Values else 1
        seen += kind is Values
        found.append(rest[:size])
        rest = rest[size:]
    return found


def _attributes(case: Case, function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    given = {**_grouped(case), **_regions(case)}
    found = {_parameter(name, parameters): _read(name, value) for name, value in given.items()}
    return {**_defaults(case, parameters, found), **found}


def _parameter(name: str, parameters: Container[str]) -> str:
    """The function's word for an attribute; the case's own, where it has none, for the function to refuse."""
    return next((each for each in (name, *SYNONYMS.get(name, ())) if each in parameters), name)


def _grouped(case: Case) -> dict[str, Any]:
    """Attributes that xb takes as one: the three numbers of a padded dimension."""
    attributes = dict(case["attrs"])
    if case["op"] == "pad":
        edges = [attributes.pop(key) for key in ("low", "high", "interior")]
        attributes["padding"] = [tuple(each) for each in zip(*edges, strict=True)]
    return attributes


def _read(name: str, value: Any) -> Any:
    if name in SHAPES and isinstance(value, str):
        return parse_shape(value)
    if name == "context_shapes":
        return [parse_shape(each) for each in value]
    return value.lower() if name == "algorithm" else value


def _defaults(case: Case, parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What XlaBuilder's function asks for and the case leaves out: windows without strides, dilations and padding."""
    rank = len(case["attrs"].get("window_dimensions", case["attrs"].get("start", ())))
    neutral = {
        **dict.fromkeys(("window_strides", "base_dilations", "window_dilations", "strides"), [1] * rank),
        "padding": [(0, 0)] * rank,
    }
    lacking = (n for n, p in parameters.items() if p.default is p.empty and n not in found)
    return {name: neutral[name] for name in lacking if name in neutral}


def _regions(case: Case) -> dict[str, Any]:
    """Computations of the signatures that the case states; branches as one list."""
    signatures = {role: parse_program_shape(text) for role, text in case.get("computations", {}).items()}
    made = {role: _computation(signature) for role, signature in signatures.items()}
    branches = [made.pop(role) for role in list(made) if role in ("true", "false") or role.startswith("branch")]
    return {**made, **({"branch_computations": branches} if branches else {})}


def _computation(signature: ProgramShape) -> xb.Computation:
    builder = xb.Builder("region")
    parameters = [
        xb.parameter(builder, number=n, shape=shape, name=f"p{ascii_lowercase[n]}")
        for n, shape in enumerate(signature.parameters)
    ]
    return builder.build(_some(builder, signature.result, parameters))


def _some(builder: xb.Builder, shape: AnyShape, parameters: list[xb.Value]) -> xb.Value:
    """Some value of this shape: a parameter that has it, or else one that is made."""
    for each in parameters:
        if each.shape == shape:
            return each
    if isinstance(shape, TupleShape):
        elements = [_some(builder, each, parameters) for each in shape.elements]
        return xb.ops.tuple_(elements, builder=builder)
    if isinstance(shape, TokenShape):
        return xb.ops.after_all([], builder=builder)
    zero = xb.ops.constant(builder, literal=np.zeros((), shape.dtype.dtype))
    whole = xb.ops.broadcast(zero, sizes=shape.dims, dimensions=()) if shape.dims else zero
    for dim in (dim for dim, is_dynamic in enumerate(shape.dynamic) if is_dynamic):
        size = xb.ops.constant(builder, literal=np.int32(shape.dims[dim]))
        whole = xb.ops.set_dimension_size(whole, size, dimension=dim)
    return whole
