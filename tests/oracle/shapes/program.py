"""A small program whose ops may be wrong: each is inferred, and the first refusal kept beside a guess of the shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

import xbuild as xb
from shape_inference import AnyShape, Shape, ShapeError, TokenShape, TupleShape, parse_shape, token, u32
from xbuild.core.builder import Value, infer_shape
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS

from ..chance import Chance
from ..instance import Instance, flat, leaves, mapped

TELLING = frozenset({
    "all_gather", "all_reduce", "all_to_all", "bitcast", "bitcast_convert", "broadcast", "collective_broadcast",
    "collective_permute", "constant", "convert", "custom_call", "domain", "dynamic_reshape", "dynamic_slice",
    "dynamic_update_slice", "fusion", "infeed", "iota", "opt_barrier", "outfeed", "parameter", "partition_id",
    "ragged_all_to_all", "recv", "reduce_precision", "reduce_scatter", "replica_id", "reshape", "rng",
    "rng_bit_generator", "rng_get_and_update_state", "scaled_dot", "send", "slice", "stochastic_convert",
})  # fmt: skip
"""The ops whose shape real XLA reads in the text, and does not infer."""

_HALVES = ("_start", "_update", "_done")
_PARAMETER = re.compile(r"\s*(ROOT )?(\S+) = (.*) parameter\((\d+)\).*")
_SHAPE = re.compile(r"( = )(?:\([^=]*?\)|\S+)( [a-z][\w-]*\()")


class Lenient(xb.Builder):
    """A builder that takes what the shape rules refuse."""

    def sub_builder(self, name: str) -> xb.Builder:
        return Lenient(self._computation_names.unique(name), self)

    def record(self, schema: Any, operands: Any, segments: Any, attributes: Any, name: Any) -> Value:
        try:
            return super().record(schema, operands, segments, attributes, name)
        except ShapeError:
            for role in schema.regions:
                if not isinstance(attributes.get(role), Computation):
                    attributes = self._traced(schema, operands, segments, attributes)
                    break
            record = schema.read(attributes) if attributes or schema.names else None
            sources = tuple(each.instruction for each in operands)
            shape = guessed(schema.opcode, [each.shape for each in sources], record)
            instruction = Instruction(
                schema.opcode, self._names.fresh(schema.spelling), shape, sources, segments, record
            )
            self._instructions.append(instruction)
            return Value(instruction, self)


def guessed(opcode: str, operands: list[AnyShape], record: Any) -> AnyShape:
    """A shape for what has none: the one that the attributes tell, or the first operand's."""
    told = vars(record) if record is not None else {}
    operands = operands or [Shape(xb.f32, ())]
    if opcode in ("copy_start", "collective_permute_start"):
        return TupleShape((operands[0], operands[0], *([u32[()]] if opcode == "copy_start" else [])))
    if opcode in ("send", "recv"):
        return TupleShape((told.get("shape", operands[0]), u32[()], token))
    if opcode.endswith("_done") and isinstance(operands[0], TupleShape) and len(operands[0]) > 1:
        return operands[0].elements[0 if opcode == "copy_done" else 1]
    if opcode == "rng_bit_generator":
        return TupleShape((operands[0], told["shape"]))
    if isinstance(told.get("shape"), Shape):
        return told["shape"]
    first = next((each for each in operands if isinstance(each, Shape)), Shape(xb.f32, ()))
    if opcode == "slice":
        return Shape(first.dtype, _cut(told, first.rank))
    if opcode == "dynamic_slice":
        return Shape(first.dtype, told["dynamic_slice_sizes"])
    if opcode == "dynamic_reshape":
        return Shape(first.dtype, told["new_size_bounds"], told["dims_are_dynamic"])
    if "shard_count" in told:
        return _shared_out(opcode, operands, told)
    if opcode.startswith(("all_to_all", "all_reduce")) and len(operands) > 1:
        return TupleShape(operands)
    for key in ("sizes", "new_sizes"):
        if key in told:
            return Shape(first.dtype, told[key])
    if "new_element_type" in told:
        return first.with_dtype(told["new_element_type"])
    return operands[0] if operands else first


def _shared_out(opcode: str, operands: list[AnyShape], told: Mapping[str, Any]) -> AnyShape:
    """Operands with one extent multiplied by the number of shards, or divided."""
    dim, count = told.get("all_gather_dimension", told.get("scatter_dimension")), told["shard_count"]
    found = []
    for each in operands:
        extents = list(each.dims) if isinstance(each, Shape) else []
        if 0 <= dim < len(extents):
            extents[dim] = extents[dim] * count if "gather" in opcode else extents[dim] // (count or 1)
        found.append(evolve(each, dims=tuple(extents)) if isinstance(each, Shape) else each)
    result = found[0] if len(found) == 1 else TupleShape(found)
    return TupleShape((operands[0], result)) if opcode.endswith("_start") else result


def _cut(told: Mapping[str, Any], rank: int) -> list[int]:
    strides = told["strides"] or (1,) * rank
    bounds = zip(told["start_indices"], told["limit_indices"], strides, strict=False)
    return [max(-((low - high) // max(step, 1)), 0) for low, high, step in bounds]


@frozen(eq=False)
class Program:
    """The computation of an instance, the instruction that it is about, and the first refusal."""

    computation: Computation
    subject: Instruction
    refusal: ShapeError | None
    num_replicas: int = 1
    num_partitions: int = 1
    change: str = ""

    @property
    def module(self) -> xb.Module:
        return xb.Module("m", self.computation, num_replicas=self.num_replicas, num_partitions=self.num_partitions)

    @property
    def is_refused_whole(self) -> bool:
        """Whether the check of whole programs refuses it."""
        return xb.check(self.module).kind == "error"

    def text(self) -> str:
        """HLO text without the shapes that real XLA infers for itself, as XLA:CPU can take it."""
        head, _, entry = self.module.to_hlo().rpartition("ENTRY ")
        lines = [part for line in entry.splitlines() for part in _given(line)]
        chosen = {each.name for each in self.computation.instructions if _is_chosen(each)}
        return "\n".join(_untold(line, chosen) for line in [*head.splitlines(), f"ENTRY {lines[0]}", *lines[1:]])


def _is_chosen(instruction: Instruction) -> bool:
    """Whether the element type of the result is an attribute."""
    return instruction.attribute_values().get("preferred_element_type") is not None


def _untold(line: str, chosen: Collection[str]) -> str:
    found = _SHAPE.search(line)
    opcode = found[2][1:-1].replace("-", "_") if found else ""
    if not found or opcode in TELLING or opcode.endswith(_HALVES) or line[: found.start()].split()[-1] in chosen:
        return line
    return line[: found.start()] + " =" + line[found.start(2) :]


def _given(line: str) -> Iterator[str]:
    """A parameter without what XLA:CPU does not take in one: a bound is set, and a token is made, on the spot."""
    found = _PARAMETER.fullmatch(line)
    shape = parse_shape(found[3]) if found else None
    if not found or not (isinstance(shape, TokenShape) or (isinstance(shape, Shape) and shape.is_dynamic)):
        yield line
        return
    root, name, _, number = found.groups("")
    if isinstance(shape, TokenShape):
        yield f"{name}.unused = f32[] parameter({number})"
        yield f"{root}{name} = token[] after-all()"
        return
    dims = [dim for dim, is_bound in enumerate(shape.dynamic) if is_bound]
    last, kept = f"{name}.whole", shape.layout or ""
    yield f"{last} = {Shape(shape.dtype, shape.dims)}{kept} parameter({number})"
    for dim in dims:
        new = f"{name}.{dim}" if dim != dims[-1] else f"{root}{name}"
        yield f"{name}.size.{dim} = s32[] constant({max(shape.dims[dim] - 1, 0)})"
        yield f"{new} = set-dimension-size({last}, {name}.size.{dim}), dimensions={{{dim}}}"
        last = new


def region(chance: Chance, old: Computation) -> Computation:
    """Another computation: of other types, of more or fewer parameters, or with another result."""
    dtype = chance.type()
    parameters = [each.shape for each in old.parameters]
    if chance.odds(0.5):
        parameters = [Shape(dtype, each.dims) if isinstance(each, Shape) else each for each in parameters]
    if chance.odds(0.3):
        parameters = [*parameters, parameters[-1]] if chance.odds(0.5) and parameters else parameters[:-1]
    builder = xb.Builder("other")
    values = [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(parameters)]
    arrays = [each for each in values if isinstance(each.shape, Shape)]
    if not arrays:
        return builder.build(values[0] if values else xb.constant(builder, literal=np.float32(0)))
    kind = chance.between(0, 4)
    if kind == 0:
        return builder.build(xb.ops.compare(arrays[0], arrays[0], direction="EQ"))
    if kind == 1:
        return builder.build(xb.ops.convert(arrays[-1], new_element_type=chance.type()))
    if kind == 2:
        return builder.build(xb.tuple_(arrays[: chance.between(1, 2)], builder=builder))
    return builder.build(arrays[0])


def program(instance: Instance) -> Program:
    """The instance alone, with its operands as parameters."""
    builder = Lenient("instance")
    arrays = [np.asarray(a if instance.devices == 1 else a[0]) for a in leaves(instance.operands)]
    from tests.support.compare import shape_of

    parameters = iter([xb.parameter(builder, number=n, shape=shape_of(a)) for n, a in enumerate(arrays)])
    results = instance.value(builder, mapped(lambda _: next(parameters), instance.operands))
    root = results if isinstance(results, Value) else xb.tuple_(flat(results), builder=builder)
    computation = builder.build(root)
    subject = [each for each in computation.instructions if each.opcode == instance.opcode][-1]
    start = Program(computation, subject, None, instance.num_replicas, instance.num_partitions)
    return again(start, lambda instruction: instruction, "")


def again(old: Program, change: Callable[[Instruction], Instruction], what: str) -> Program:
    """The program with each instruction changed and inferred anew."""
    made: dict[Instruction, Instruction] = {}
    refusal: ShapeError | None = None
    for instruction in old.computation.instructions:
        changed = change(instruction)
        operands = tuple(made.get(each, each) for each in changed.operands)
        schema, shapes = OPS[changed.opcode], tuple(made.get(each, each).shape for each in changed.operands)
        try:
            shape = infer_shape(schema, shapes, changed.segments, changed.attributes)
        except ShapeError as error:
            refusal = refusal or error
            shape = guessed(changed.opcode, list(shapes), changed.attributes)
        made[instruction] = evolve(changed, operands=operands, shape=shape)
    computation = Computation(
        old.computation.name, tuple(made[each] for each in old.computation.instructions), made[old.computation.root]
    )
    return Program(computation, made[old.subject], refusal, old.num_replicas, old.num_partitions, what)
