"""The shard dialect's reading of a program: each op runs as its result is cut, and its operands are cut so first."""

from __future__ import annotations

from attrs import evolve

from ...core.graph import Instruction, Module
from ...editing import edit
from ...properties.mesh import Mesh
from ..factors import ShardingRule
from ..grid_ops.processes import shard
from ..partition.parts.assignments import Site
from ..rules.table import rule_of
from ..sharding import Sharding
from ..stored import mesh_of_shardings, sharding_of


def with_uses(module: Module) -> Module:
    """The module in which each operand that an op uses in another sharding is annotated so for that use.

    The shardings of a program in which every array has one, as `xb.shard.propagate` gives it, then say of each op how
    it runs: as its result is cut; factors that the result has not are cut as in the first operand that has them.

    Source: MLIR, shard dialect, sharding propagation.
    """
    mesh = mesh_of_shardings(module)
    if mesh is None:
        return module
    with edit(module) as editor:
        for computation in module.computations:
            for instruction in computation.instructions:
                for number, needed in _needed(instruction, mesh):
                    with editor.before(instruction):
                        used = shard(editor[instruction.operands[number]], needed, annotate_for_users=True)
                    editor.replace_operand(instruction, number, used)
    return editor.result


def _needed(instruction: Instruction, mesh: Mesh) -> list[tuple[int, Sharding]]:
    """The operands that are needed in other shardings than they have."""
    result = sharding_of(instruction, mesh) if instruction.operands else None
    rule = rule_of(instruction) if isinstance(result, Sharding) else None
    if rule is None or not isinstance(result, Sharding) or len(rule.results) != 1:
        return []
    had = [sharding_of(each, mesh) for each in instruction.operands]
    if not all(isinstance(each, Sharding) for each in had):
        return []
    needed = _by_result(rule, result, [each for each in had if isinstance(each, Sharding)])
    pairs = enumerate(zip(had, needed, strict=True))
    return [
        (number, now) for number, (before, now) in pairs if isinstance(before, Sharding) and _axes(before) != _axes(now)
    ]


def _by_result(rule: ShardingRule, result: Sharding, operands: list[Sharding]) -> list[Sharding]:
    site = Site(result.mesh, rule, frozenset(range(len(rule.factors))))
    reads = [site.read(result, rule.results[0])]
    reads += [_only(rule, site.read(*each)) for each in zip(operands, rule.operands, strict=True)]
    found = site.merged(reads)
    return [site.sharding(found, dims) for dims in rule.operands]


def _only(rule: ShardingRule, assignment: tuple) -> tuple:  # type: ignore[type-arg]
    """The part of an assignment that says of factors which the result has not."""
    kept = {factor for dims in rule.results[0] for factor in dims}
    return tuple(() if number in kept else axes for number, axes in enumerate(assignment))


def _axes(sharding: Sharding) -> tuple:  # type: ignore[type-arg]
    dims = [dim.axes for dim in evolve(sharding, offsets=()).dims]
    while dims and not dims[-1]:
        dims.pop()
    return tuple(dims)
