"""Losses on meshes that use every collective and cast, loops and branches, for gradients by type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb

m, P = xb.mesh, xb.P
LINE, SQUARE, CUBE, LONG = xb.Mesh(i=2), xb.Mesh(i=2, j=2), xb.Mesh(i=2, j=2, k=2), xb.Mesh(i=3, j=2)


@frozen
class Loss:
    """A loss of global arrays: its mesh, the specs and dimensions of its arguments."""

    name: str
    function: Callable[..., Any]
    mesh: xb.Mesh
    specs: tuple[Any, ...]
    dims: tuple[tuple[int, ...], ...]

    def program(self) -> Any:
        mapped = xb.shard_map(self.function, self.mesh, self.specs, P())
        return mapped.program(*(xb.f64[dims] for dims in self.dims))

    def arguments(self, seed: int = 0) -> list[Any]:
        draw = np.random.default_rng(seed)
        return [draw.normal(size=dims) for dims in self.dims]


def total(x: Any, axes: Any = ()) -> Any:
    """The sum of all elements, and of those of the devices along the axes."""
    found = xb.reduce(x, 0.0, xb.add)
    return m.psum(found, axes) if axes else found


def weighed(x: Any) -> Any:
    """The elements by their place, so that no two have one gradient."""
    places = xb.convert(xb.iota(x.builder, xb.s64[(*x.shape.dims,)], 0), xb.f64)
    return x * xb.sin(places + 1.0)


def coordinate() -> Any:
    return xb.convert(m.axis_index("i"), xb.f64)


def invariant_gather(x: Any) -> Any:
    whole = m.all_gather_invariant(x, "i", tiled=True)
    return total(weighed(whole * whole))


def reduced_weights(x: Any, w: Any) -> Any:
    r = m.pcast(w, "i", to="reduced")
    return total(x * xb.exp(r) * r, "i")


def unreduced_product(x: Any, w: Any) -> Any:
    u = m.pcast(xb.sin(x), "i", to="unreduced")
    r = m.pcast(w, "i", to="reduced")
    return total(weighed(m.psum(-(u * r) + u * r * r, "i")))


def scattered_unreduced(x: Any) -> Any:
    u = m.pcast(x * x, "i", to="unreduced")
    return total(weighed(m.psum_scatter(u, "i", tiled=True)), "i")


def reduced_gather(x: Any) -> Any:
    r = m.all_gather_reduced(x, "i", tiled=True)
    own = m.pcast(xb.tanh(r), "i", to="varying") * (1.0 + coordinate())
    return total(weighed(own), "i")


def counted_loop(x: Any, w: Any) -> Any:
    state = xb.while_((0, x, w), lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.tanh(s[1] * s[2]), s[2]))
    return total(state[1], "i")


def loop_with_a_collective(x: Any, w: Any) -> Any:
    def body(s: Any) -> Any:
        return s[0] + 1, xb.tanh(m.pmean(s[1], "i") + s[2]), s[2] * w_of(s)

    def w_of(s: Any) -> Any:
        return s[3]

    state = xb.while_((0, x, x, w), lambda s: s[0] < 3, lambda s: (*body(s), s[3]))
    return total(state[1] * state[2], "i")


def reduced_outside_a_loop(x: Any, w: Any) -> Any:
    r = m.pcast(w, "i", to="reduced")
    state = xb.while_((0, x, r), lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.sin(s[1]) * s[2], s[2]))
    return total(state[1], "i")


def branches(x: Any, w: Any) -> Any:
    chosen = xb.conditional(
        m.axis_index("i") > 0, (x, w), lambda s: xb.sin(s[0] * s[1]), (x, w), lambda s: s[0] * s[1] * s[1]
    )
    return total(chosen, "i")


def scanned(x: Any, w: Any) -> Any:
    carried = xb.scan([x], [w], lambda each, carry: (each * carry, xb.sin(carry + each)))
    return total(carried[0], "i") + m.psum(carried[1], "i")


def attention(q: Any, k: Any, v: Any) -> Any:
    keys, values = m.all_gather(k, "j", tiled=True), m.all_gather(v, "j", tiled=True)
    scores = xb.dot(q, xb.transpose(keys, (1, 0)))
    dims: Any = (q.shape.dims[0], keys.shape.dims[0])
    top = xb.broadcast_in_dim(xb.reduce(scores, -np.inf, xb.max, (1,)), dims, (0,))
    weights = xb.exp(scores - top)
    sums = xb.broadcast_in_dim(xb.reduce(weights, 0.0, xb.add, (1,)), dims, (0,))
    return total(weighed(xb.dot(weights / sums, values)), ("i", "j"))


def tensor_parallel(x: Any, a: Any, b: Any) -> Any:
    hidden = xb.tanh(xb.dot(x, a))
    return total(weighed(xb.tanh(m.psum(xb.dot(hidden, b), "j"))), "i")


LOSSES = [
    Loss("product of a weight", lambda x, w: total(x * w, "i"), LINE, (P("i"), P()), ((6,), (3,))),
    Loss("sum, then a power", lambda x: total(weighed(m.psum(x, "i") ** 3)), LINE, (P("i"),), ((6,),)),
    Loss("sum of what is one value", lambda w: total(weighed(m.psum(xb.sin(w), "i"))), LINE, (P(),), ((3,),)),
    Loss("mean", lambda x: total(weighed(m.pmean(x * x, ("j", "i")))), SQUARE, (P(("i", "j")),), ((8,),)),
    Loss("largest", lambda x: total(weighed(m.pmax(x, "i"))), LONG, (P("i"),), ((6,),)),
    Loss("smallest of equals", lambda w: total(m.pmin(xb.sin(w), "j")), SQUARE, (P(),), ((3,),)),
    Loss("gather", lambda x: total(weighed(m.all_gather(x, "i") ** 2), "i"), LINE, (P("i"),), ((4,),)),
    Loss("gather along both", lambda x: total(weighed(xb.sin(m.all_gather(x, ("j", "i"), axis=1))), ("i", "j")), SQUARE,
         (P("i", "j"),), ((4, 6),)),
    Loss("invariant gather", invariant_gather, LINE, (P("i"),), ((4,),)),
    Loss("reduced gather", reduced_gather, LONG, (P("i"),), ((6,),)),
    Loss("scatter", lambda x: total(weighed(xb.sin(m.psum_scatter(x, "i", tiled=True))), "i"), LINE, (P("i"),),
         ((8,),)),
    Loss("scatter that drops a dimension", lambda x: total(m.psum_scatter(x, "j") ** 2, ("i", "j")), SQUARE,
         (P(None, ("i", "j")),), ((2, 8),)),
    Loss("own part", lambda w: total(weighed(xb.sin(m.pscatter(w, "i"))) * (1.0 + coordinate()), "i"), LINE, (P(),),
         ((6,),)),
    Loss("exchange", lambda x: total(weighed(xb.sin(m.all_to_all(x, "i", 1, 0, tiled=True))), "i"), LINE, (P("i"),),
         ((4, 6),)),
    Loss("exchange that moves a dimension", lambda x: total(weighed(xb.sin(m.all_to_all(x, "i", 0, 1))), "i"), LINE,
         (P("i"),), ((4, 3),)),
    Loss("permutation", lambda x: total(weighed(xb.sin(m.ppermute(x, "i", [(0, 1), (1, 2)]))), "i"), LONG, (P("i"),),
         ((6,),)),
    Loss("ring", lambda x: total(x * m.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), "i"), LONG, (P("i"),), ((6,),)),
    Loss("broadcast", lambda x: total(x * m.pbroadcast(x, "j", 1), ("i", "j")), SQUARE, (P(("i", "j")),), ((8,),)),
    Loss("reduced weights", reduced_weights, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("unreduced product", unreduced_product, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("scattered unreduced", scattered_unreduced, LINE, (P("i"),), ((8,),)),
    Loss("loop", counted_loop, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("loop with a collective", loop_with_a_collective, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("weights reduced outside a loop", reduced_outside_a_loop, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("branches by device", branches, LINE, (P("i"), P()), ((6,), (3,))),
    Loss("scan", scanned, LINE, (P("i"), P()), ((6,), ())),
    Loss("attention", attention, SQUARE, (P(("i", "j")), P("j"), P("j")), ((8, 3), (4, 3), (4, 3))),
    Loss("tensor parallel on eight", tensor_parallel, CUBE, (P("i"), P(None, "j"), P("j")), ((4, 3), (3, 4), (4, 5))),
]  # fmt: skip
