"""The check and interpreter dialects of StableHLO's tests: rules of the reader that record calls, and the functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

import xbuild as xb
from interpreter.engines.comparison import distance
from shape_inference import Shape, TokenShape, TupleShape
from xbuild.core.graph import Instruction, Module, ModuleGroup
from xbuild.stablehlo.reading.operation import OperationReading
from xbuild.stablehlo.reading.reader import module_of
from xbuild.stablehlo.reading.rules import rule
from xbuild.stablehlo.syntax.trees import Symbol

Array: TypeAlias = Any
_NOTHING = TupleShape(())


@define
class _Run:
    """One module under test: what is wrong so far, what probes have kept, and the grids that it runs."""

    wrong: list[str] = field(factory=list)
    probed: dict[str, list[Array]] = field(factory=dict)
    grids: list[Callable[[list[Array]], list[Array]]] = field(factory=list)
    made: Callable[[Module], Module] = field(default=lambda module: module)


_now = _Run()
"""What the functions of the calls write into."""


@contextmanager
def ready(made: Callable[[Module], Module] = lambda module: module) -> Iterator[list[str]]:
    """Inside, a module can be read and run; the list is what is wrong with it.

    `made` gives the program of a device, of the module of each function that a grid runs.
    """
    global _now
    _now = _Run(made=made)
    yield _now.wrong


def run(program: Module | ModuleGroup, rows: Sequence[Any], **options: Any) -> list[Any]:
    return xb.execute(program, rows, denormals="keep", **options)


def _call(op: OperationReading, target: str, operands: Sequence[Instruction], shape: Any, **config: Any) -> Instruction:
    return op.record_result(
        "custom_call",
        tuple(operands),
        custom_call_target=target,
        shape=shape,
        custom_call_has_side_effect=True,
        backend_config=json.dumps(config),
    )


# Expectations

DEFAULT_TOLERANCE = 0.0001
DEFAULT_ULPS = 3


@rule("check.expect_eq", "check.expect_almost_eq", "check.expect_close")
def expect(op: OperationReading) -> None:
    _expect(op, op.expect_operands(2))


@rule("check.expect_eq_const", "check.expect_almost_eq_const")
def expect_const(op: OperationReading) -> None:
    (operand,) = op.expect_operands(1)
    _expect(op, (operand, op.emit("constant", literal=np.array(op.literal("value")))))


def _expect(op: OperationReading, operands: tuple[Instruction, ...]) -> None:
    config: dict[str, Any] = {"kind": op.operation.name.removesuffix("_const")}
    if op.has("tolerance"):
        config["tolerance"] = op.number("tolerance")
    config["most"] = op.integer("max_ulp_difference", DEFAULT_ULPS)
    config["least"] = op.integer("min_ulp_difference", 0)
    _call(op, "check.expect", operands, _NOTHING, **config)


@xb.custom_call_target("check.expect")
def _expected(found: Array, wanted: Array, *, backend_config: str) -> tuple[()]:
    config = json.loads(backend_config)
    found, wanted = np.asarray(found), np.asarray(wanted)
    met = _KINDS[config["kind"]](found, wanted, config)
    if found.shape != wanted.shape or not np.all(met):
        _now.wrong.append(f"{config['kind']}: found {found.tolist()!s:.80}, wanted {wanted.tolist()!s:.80}")
    return ()


def _equal(found: Array, wanted: Array, config: dict[str, Any]) -> Array:
    return found == wanted


def _almost(found: Array, wanted: Array, config: dict[str, Any]) -> Array:
    """Equal, both NaN, or apart by at most the tolerance."""
    tolerance = config.get("tolerance", DEFAULT_TOLERANCE)
    if np.iscomplexobj(found):
        return _almost(found.real, wanted.real, config) & _almost(found.imag, wanted.imag, config)
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        return (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= tolerance)


def _close(found: Array, wanted: Array, config: dict[str, Any]) -> Array:
    """So many values of the type apart."""
    apart = np.where(found == wanted, 0, distance(found, wanted))
    return (config["least"] <= apart) & (apart <= config["most"])


_KINDS = {"check.expect_eq": _equal, "check.expect_almost_eq": _almost, "check.expect_close": _close}


# Probes


@rule("interpreter.probe")
def probe(op: OperationReading) -> Instruction:
    (operand,) = op.expect_operands(1)
    return _call(op, "interpreter.probe", (operand,), operand.shape, name=op.text("probe_id"))


@xb.custom_call_target("interpreter.probe")
def _probe(value: Array, *, backend_config: str) -> Array:
    _now.probed.setdefault(json.loads(backend_config)["name"], []).append(np.array(value))
    return value


@rule("check.expect_serialized_eq")
def expect_serialized(op: OperationReading) -> None:
    config = {"name": op.text("probe_id"), "iteration": op.integer("iteration", 1)}
    _call(op, "check.expect_serialized", op.expect_operands(1), _NOTHING, **config)


@xb.custom_call_target("check.expect_serialized")
def _serialized(wanted: Array, *, backend_config: str) -> tuple[()]:
    config = json.loads(backend_config)
    kept = _now.probed.get(config["name"], [])
    number = config["iteration"] - 1
    if not 0 <= number < len(kept) or not np.array_equal(kept[number], wanted):
        _now.wrong.append(f"check.expect_serialized_eq: probe {config['name']!r} has {kept!s:.80}")
    return ()


@rule("interpreter.print")
def print_(op: OperationReading) -> None:
    _call(op, "interpreter.print", op.operands, _NOTHING)


@xb.custom_call_target("interpreter.print")
def _print(*values: Array) -> tuple[()]:
    for value in values:
        np.asarray(value).tolist()  # the value exists; what is printed is for people
    return ()


# Grids


@rule("interpreter.run_parallel")
def run_parallel(op: OperationReading) -> tuple[Instruction, ...]:
    """The programs as one run; tokens are left out on the way in, and new ones come out."""
    names = [[each.name for each in row] for row in op.get("programs")]
    feeds = [each.name for each in op.get("infeed", ()) if isinstance(each, Symbol)]
    given = [each for each in op.operands if isinstance(each.shape, Shape)]
    shapes = [each for each in op.shapes if isinstance(each, Shape)]
    _now.grids.append(_grid(op, names, feeds))
    made = _call(op, "interpreter.run_parallel", given, TupleShape(tuple(shapes)), number=len(_now.grids) - 1)
    arrays = (op.emit("get_tuple_element", made, index=index) for index in range(len(shapes)))
    return tuple(op.emit("after_all", ()) if isinstance(each, TokenShape) else next(arrays) for each in op.shapes)


def _grid(op: OperationReading, names: list[list[str]], feeds: list[str]) -> Callable[[list[Array]], list[Array]]:
    reader = op.scope.reader
    replicas, partitions = len(names), len(names[0])

    def module(name: str, replicas: int = 1, partitions: int = 1) -> Module:
        return module_of(reader.tree, reader.text, reader.file, entry=name, replicas=replicas, partitions=partitions)

    every = [name for row in names for name in row]
    programs = {name: _now.made(module(name, replicas, partitions)) for name in dict.fromkeys(every)}
    program: Module | ModuleGroup = (
        programs[every[0]]
        if len(programs) == 1
        else ModuleGroup({device: programs[name] for device, name in enumerate(every)})
    )

    def runs(arguments: list[Array]) -> list[Array]:
        left = iter(arguments)
        rows = [
            [None if isinstance(each.shape, TokenShape) else next(left) for each in programs[name].entry.parameters]
            for name in every
        ]
        items = [run(module(name), [()])[0] for name in feeds]
        results = run(program, rows, infeed={0: items} if feeds else None)
        shapes = [programs[name].entry.root.shape for name in every]
        return [leaf for value, shape in zip(results, shapes, strict=True) for leaf in _arrays(value, shape)]

    return runs


def _arrays(value: Any, shape: Any) -> Iterator[Array]:
    if isinstance(shape, TupleShape):
        for each, inner in zip(value, shape.elements, strict=True):
            yield from _arrays(each, inner)
    elif isinstance(shape, Shape):
        yield value


@xb.custom_call_target("interpreter.run_parallel")
def _run_parallel(*arguments: Array, backend_config: str) -> tuple[Array, ...]:
    return tuple(_now.grids[json.loads(backend_config)["number"]](list(arguments)))
