"""Shardy's own propagation as a judge: programs with stated shardings in, the sharding of each value out.

Run as a module it reads a list of jobs as JSON from standard input and prints a list of answers; jaxlib is in this
process alone.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import xbuild as xb
from xbuild.core.graph import Instruction, Module
from xbuild.sharding.propagation import Propagated
from xbuild.sharding.sharding import Sharding
from xbuild.sharding.stated_shardings import sharding_of

from .importing import imported
from .importing import prepared as prepared

ROOT = Path(__file__).parents[3]
RULE = "sdy.sharding_rule"
PIPELINE = "builtin.module(sdy-import-pipeline,sdy-user-priority-propagate)"
EDGE = "sdy.data_flow_edge"
RULES = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
"""The pass by which Shardy writes down the rule of each operation."""

Cuts: TypeAlias = list[list[str]]
"""For each dimension the axes that cut it, each as Shardy spells it."""


def job_of(module: Module, mesh: xb.Mesh) -> dict[str, Any]:
    """A program as Shardy is given it: StableHLO with names as locations, and the stated shardings by name."""
    stated, groups, results = {}, [], None
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            is_grouped = "shard_" in str(instruction.annotations.get("sharding", ""))
            groups += [instruction.name] * is_grouped
            found = None if is_grouped else sharding_of(instruction, mesh)
            if found is None:
                continue
            each = found if isinstance(found, tuple) else (found,)
            if instruction is module.entry.root and instruction.opcode == "tuple":
                results = [_spelled(s, leaf) for s, leaf in zip(each, instruction.shape.elements, strict=True)]  # type: ignore[union-attr]
            else:
                stated[instruction.name] = _spelled(each[0], instruction.shape)
    parameters = [p.name for p in module.entry.parameters]
    return {
        "text": imported(module.to_stablehlo(locations=True)),
        "mesh": ", ".join(f'"{name}"={size}' for name, size in mesh.sizes),
        "stated": stated,
        "groups": groups,
        "results": results,
        "parameters": parameters,
    }


def _spelled(sharding: Any, shape: Any) -> str:
    """A sharding as Shardy's attribute."""
    assert isinstance(sharding, Sharding)
    dims = []
    for dim in sharding.padded(shape.rank).dims:
        axes = [axis.spelled(sharding.mesh) for axis in dim.axes]
        dims.append("{" + ", ".join(axes + ["?"] * dim.is_open) + "}" + (f"p{dim.priority}" if dim.priority else ""))
    extra = ""
    for word, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        if axes:
            extra += f", {word}={{{', '.join(axis.spelled(sharding.mesh) for axis in axes)}}}"
    return f"#sdy.sharding<@mesh, [{', '.join(dims)}]{extra}>"


def cuts_of(sharding: Any, rank: int) -> Cuts:
    return [[axis.spelled(sharding.mesh) for axis in dim.axes] for dim in sharding.padded(rank).dims]


def ask(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Shardy answers, from a process of its own: for each job a list of cuts for each name, or `error`.

    Shardy ends its process on some programs: then each job has one of its own.
    """
    for options in ([], ["--apart"]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.sharding.propagation.shardy", *options],
            cwd=ROOT, input=json.dumps(jobs), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.returncode:
            return json.loads(done.stdout)  # type: ignore[no-any-return]
    raise AssertionError(done.stderr[-3000:])


def compared(found: Propagated, answer: dict[str, list[list[Cuts]]]) -> tuple[int, list[tuple[str, str, Any, Any]]]:
    """How many values have the same sharding in both, and those that do not: name, opcode, ours, Shardy's."""
    same, other = 0, []
    for instruction in found.instructions():
        if instruction.name not in answer or _is_border(instruction):
            continue
        theirs = answer[instruction.name]
        ours = found.shardings[instruction]
        each = ours if isinstance(ours, tuple) else (ours,)
        shapes = getattr(instruction.shape, "elements", (instruction.shape,))
        mine = [cuts_of(s, shape.rank) for s, shape in zip(each, shapes, strict=True)]
        if mine in theirs:
            same += 1
        else:
            other.append((instruction.name, instruction.opcode, mine, theirs))
    return same, other


def _is_border(instruction: Instruction) -> bool:
    """Whether MLIR has no operation for it: tuples, and the borders of manual regions."""
    target = str(getattr(instruction.attributes, "custom_call_target", ""))
    return instruction.opcode in ("tuple", "get_tuple_element") or target.startswith("xla.sdy.")


def _main() -> None:
    _context()
    one = _apart if "--apart" in sys.argv else _answer
    print(json.dumps([one(job) for job in json.load(sys.stdin)]))


@functools.cache
def _context() -> Any:
    from jax._src.interpreters import mlir

    return mlir.make_ir_context()


def _apart(job: dict[str, Any]) -> dict[str, Any]:
    """The answer from a fork, since Shardy ends its process on some programs."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(_answer(job), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as given:
        text = given.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text and not status else {"error": f"Shardy ended with status {status}"}


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy  # noqa: F401
    from jaxlib.mlir.passmanager import PassManager

    with _context():
        head = f"sdy.mesh @mesh = <[{job['mesh']}]>\n"
        text = job["text"].replace("{\n", "{\n" + head, 1)
        try:
            module = ir.Module.parse(text)
            if not job.get("rules"):
                _annotate(ir, module, job)
            PassManager.parse(job.get("pipeline", PIPELINE)).run(module.operation)
        except Exception as error:
            return {"error": str(error)[:2000]}
        return _rules(module) if job.get("rules") else _read(ir, module, job)


def _rules(module: Any) -> dict[str, Any]:
    """The rules that Shardy gives operations of functions, as text."""
    found = [each for function in _functions(module) for each in function.regions[0].blocks[0].operations]
    texts = [str(each.operation.attributes[RULE]) for each in found if RULE in each.operation.attributes]
    return {"rules": [text.removeprefix("#sdy.op_sharding_rule") for text in texts]}


def _functions(module: Any) -> Any:
    return (op.operation for op in module.body.operations if op.operation.name == "func.func")


def _name(operation: Any) -> str:
    return str(operation.location).split('"')[1] if '"' in str(operation.location) else ""


def _walk(operation: Any) -> Any:
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                yield each.operation
                yield from _walk(each.operation)


def _annotate(ir: Any, module: Any, job: dict[str, Any]) -> None:
    for function in _functions(module):
        if function.attributes["sym_name"].value == "main":
            arguments = [
                {"sdy.sharding": ir.Attribute.parse(job["stated"][name])} if name in job["stated"] else {}
                for name in job["parameters"]
            ]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in arguments])
            if job["results"]:
                found = [{"sdy.sharding": ir.Attribute.parse(each)} for each in job["results"]]
                function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in found])
        for operation in _walk(function):
            stated = job["stated"].get(_name(operation))
            if stated and len(operation.results) == 1 and _rank(ir, operation.results[0]) == len(_cuts(stated, 0)):
                each = stated.removeprefix("#sdy.sharding")
                operation.attributes["sdy.sharding"] = ir.Attribute.parse(f"#sdy.sharding_per_value<[{each}]>")
        _group(ir, function, job)


def _group(ir: Any, function: Any, job: dict[str, Any]) -> None:
    """Put the values of a group into it: each by an operation at the end of its block."""
    block = function.regions[0].blocks[0]
    values = dict(zip(job["parameters"], block.arguments, strict=True)) if job.get("groups") else {}
    values |= {_name(each.operation): each.results[0] for each in block.operations if len(each.results) == 1}
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    for name in job.get("groups", ()):
        ir.Operation.create("sdy.sharding_group", operands=[values[name]], attributes={"group_id": number},
                            loc=ir.Location.unknown(), ip=ir.InsertionPoint.at_block_terminator(block))  # fmt: skip


def _read(ir: Any, module: Any, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for function in _functions(module):
        if function.attributes["sym_name"].value == "main":
            block = function.regions[0].blocks[0]
            attributes = [None] * len(block.arguments)
            if "arg_attrs" in function.attributes:
                attributes = function.attributes["arg_attrs"]
            for name, argument, each in zip(job["parameters"], block.arguments, attributes, strict=True):
                stated = each["sdy.sharding"] if each is not None and "sdy.sharding" in each else None
                found[name] = [[_cuts(stated, _rank(ir, argument))]]
        for operation in _walk(function):
            if not operation.results:
                continue
            if operation.name == EDGE:
                continue
            stated = list(_per_value(operation))
            each = [_cuts(s, _rank(ir, value)) for s, value in zip(stated, operation.results, strict=True)]
            found.setdefault(_name(operation), []).append(each)
    return found


def _per_value(operation: Any) -> list[Any]:
    if "sdy.sharding" not in operation.attributes:
        return [_on_edge(each) for each in operation.results]
    return [str(each) for each in _list(str(operation.attributes["sdy.sharding"]))]


def _on_edge(value: Any) -> Any:
    """What the edge of the data flow that takes a value says, for results of loops, branches and barriers."""
    edges = [use.owner for use in value.uses if use.owner.name == EDGE]
    return edges[0].attributes["sharding"] if edges and "sharding" in edges[0].attributes else None


def _list(text: str) -> list[str]:
    """The shardings of `#sdy.sharding_per_value<[<@mesh, [...]>, <@mesh, [...]>]>`."""
    return list(text.split("<@mesh, ")[1:])


def _rank(ir: Any, value: Any) -> int:
    text = str(value.type)
    return ir.RankedTensorType(value.type).rank if text.startswith("tensor<") else 0


def _cuts(sharding: Any, rank: int) -> Cuts:
    if sharding is None:
        return [[] for _ in range(rank)]
    text = str(sharding).split("<@mesh, ")[-1]
    depth = text.index("[")
    inner = text[depth + 1 : text.index("]", depth)]
    dims = [part.partition("}")[0] for part in inner.split("{")[1:]]
    return [[axis.strip() for axis in dim.split(",") if axis.strip() not in ("", "?")] for dim in dims]


if __name__ == "__main__":
    _main()
