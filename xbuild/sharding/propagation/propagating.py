"""`propagate`: from the shardings that a program states to those of all its values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from shape_inference import refuse

from ...core.graph import Computation, Module, module_in
from ...properties.mesh import Mesh
from ..regions import check_is_global
from ..stored import mesh_of_shardings, on_one_mesh, with_shardings
from .dialect import Dialect
from .fixed_point import STRATEGIES, FixedPoint
from .flattening import flattened
from .flow import flow_of, settle
from .manual import state_regions
from .propagated import Propagated, shardings_of
from .stating import state

StrategyName: TypeAlias = Literal["shardy", "dialect"]


def propagate(
    module: Module | Computation,
    *,
    mesh: Mesh | None = None,
    strategy: StrategyName = "shardy",
    factors: str = "aggressive",
) -> Propagated:
    """The program with a sharding for every array, found from those that it states.

    `shardy` goes forward and backward to a fixed point, by the priorities of the user, of ops, and of factors
    (`factors`: aggressive, basic, or basic_then_aggressive); open dimensions take axes, closed ones do not. `dialect`
    is the rule of MLIR's shard dialect: each op once, backward and then forward, all or nothing.
    `mesh` is that of the program where it names one. Raises TypeError where the program is none; invalid_attribute
    where nothing is annotated and no mesh is given, or a word is no strategy; invalid_operand for a program that is
    partitioned already.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {'y'}]}
    ...   b = f32[4,6] parameter(1)
    ...   ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> found = propagate(xb.parse_hlo(text))
    >>> [[[axis.name for axis in dim.axes] for dim in found.sharding(name).dims] for name in ("b", "y")]
    [[['y'], []], [['x'], []]]
    >>> found.cause("b").source
    'a'

    Source: Shardy, propagation; MLIR, shard dialect, sharding propagation.
    """
    program = _program(module)
    found_mesh = mesh or mesh_of_shardings(program)
    if found_mesh is None:
        refuse(
            "invalid_attribute",
            f"module {program.name} states no sharding, and no mesh is given: nothing propagates",
            "annotate a value: xb.shard.annotated(module, {name: sharding})",
            "or say on which devices it runs: mesh=xb.Mesh(x=2)",
        )
    if strategy not in ("shardy", "dialect"):
        refuse("invalid_attribute", f"strategy is {strategy!r}, and shardy or dialect is wanted")
    if factors not in STRATEGIES:
        refuse("invalid_attribute", f"factors is {factors!r}, and one of {', '.join(STRATEGIES)} is wanted")
    program = on_one_mesh(program, found_mesh)
    check_is_global(program, found_mesh, "propagate")
    program = flattened(program)
    flow = flow_of(program)
    state(flow, found_mesh)
    state_regions(flow, found_mesh)
    settle(flow)
    if strategy == "dialect":
        Dialect(flow).run()
    else:
        FixedPoint(flow, factors).run()
    shardings = shardings_of(flow, found_mesh)
    return Propagated(with_shardings(program, shardings), found_mesh, strategy, shardings, flow)


def _program(given: object) -> Module:
    found = module_in(given)
    if isinstance(found, Computation):
        return Module(found.name, found)
    if not isinstance(found, Module):
        raise TypeError(f"propagate: {given!r} is no program; xb.parse_hlo(text) and builder.build() give one")
    return found
