"""`tiling`: how a value of a program is cut in tiles over the devices of a mesh."""

from __future__ import annotations

from shape_inference import Shape, refuse

from ...core.graph import Computation, Module
from ..propagation import Propagated, propagate
from ..sharding import Sharding
from .partitioned import Partitioned
from .parts.holding import Tiling


def tiling(found: Partitioned | Propagated | Module | Computation, name: str, *, leaf: int = 0) -> Tiling:
    """How a value is cut in tiles, and which devices have which; `xb.viz` draws it.

    Of a propagated program, or one that is propagated first, `name` is a value of the global program, and `leaf`
    numbers the arrays of a tuple. Of a `Partitioned` it is an instruction of what each device runs.
    Raises undefined_name for a name that no value has, or that has no part of one global array; invalid_operand for a
    value that is on no axes of the mesh; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = "HloModule m\\nENTRY e {\\n  ROOT a = f32[5,4] parameter(0), sharding={mesh['x'=2], [{'x'}, {}]}\\n}"
    >>> found = tiling(xb.parse_hlo(text), "a")
    >>> found.holders, found.local, found.ranges((1, 0))
    ({(0, 0): [0], (1, 0): [1]}, (3, 4), ((3, 5), (0, 4)))
    """
    if isinstance(found, Partitioned):
        return found.held.get(name) or refuse(
            "undefined_name", f"{name!r} has no part of a value of the global program"
        )
    propagated = found if isinstance(found, Propagated) else propagate(found)
    propagated.cause(name, leaf)  # refuses a name or a leaf that there is not
    sharding, shape = propagated.sharding(name), propagated.shape(name, leaf)
    one = sharding[leaf] if isinstance(sharding, tuple) else sharding
    if not isinstance(one, Sharding) or not isinstance(shape, Shape):
        refuse("invalid_operand", f"{name} is on no axes of the mesh, and has no tiles")
    return Tiling(name, shape.plain(), one)
