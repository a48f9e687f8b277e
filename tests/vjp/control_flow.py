"""Programs with loops, branches and calls, whose derivatives several tests look at."""

from __future__ import annotations

from typing import Any

import xbuild as xb

from .numeric import Case

V, S = xb.f64[3], xb.f64[()]


def _long(a: xb.Value, b: xb.Value) -> xb.Value:
    """More instructions than are written out at a call."""
    x = a * b
    for op in (xb.tanh, xb.sin, xb.cos, xb.exp) * 4:
        x = op(x) * 0.9
    return x * b


def squared(x: xb.Value) -> xb.Value:
    """The sum of the squares."""
    return xb.reduce(x * x, 0.0, xb.add)


def counted(x: xb.Value, w: xb.Value) -> Any:
    state = xb.while_((0, x, w), lambda s: s[0] < 4, lambda s: (s[0] + 1, xb.tanh(s[1] * s[2]) + s[1] * 0.5, s[2]))
    return state[1], state[2], state[0]


def by_threes(x: xb.Value, w: xb.Value) -> xb.Value:
    def body(s: xb.Value) -> Any:
        i, x, w = s
        return i + 3, xb.tanh(x * w) * xb.convert(i, new_element_type=xb.f64), w * 1.1

    return xb.while_((1, x, w), lambda s: s[0] <= 9, body)[1]


def downwards(x: xb.Value) -> xb.Value:
    return xb.while_((7, x), lambda s: s[0] > 2, lambda s: (s[0] - 2, xb.sin(s[1])))[1]


def nested(x: xb.Value, w: xb.Value) -> xb.Value:
    def body(s: xb.Value) -> Any:
        i, x, w = s
        inner = xb.while_((0, x, w), lambda t: t[0] != 2, lambda t: (t[0] + 1, xb.sin(t[1] * t[2]), t[2]))
        return i + 1, inner[1] * w, w

    return xb.while_((0, x, w), lambda s: s[0] < 3, body)[1]


def exchanged(x: xb.Value, y: xb.Value) -> xb.Value:
    return xb.while_((0, x, y), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[2] * s[1], xb.sin(s[1])))[1]


def of_pairs(x: xb.Value, w: xb.Value) -> Any:
    """A state with a tuple in it."""
    return xb.while_(
        (0, (x, w), x), lambda s: s[0] < 3, lambda s: (s[0] + 1, (s[1][1] * s[2], xb.sin(s[1][0])), s[1][0] + s[2])
    )


def never(x: xb.Value) -> xb.Value:
    return xb.while_((5, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.sin(s[1])))[1] * x


def branches(x: xb.Value, w: xb.Value) -> xb.Value:
    above = xb.reduce(x, 0.0, xb.add) > 0.0
    return xb.conditional(above, (x, w), lambda t: xb.sin(t[0]) * t[1], (w, x), lambda t: xb.exp(xb.tanh(t[0]) * t[1]))


def cases(x: xb.Value, w: xb.Value, n: xb.Value) -> xb.Value:
    several = [lambda t: xb.tanh(t[0] * t[1]) * t[0], lambda t: xb.exp(t[0]) * 2.0, lambda t: t]
    return xb.conditional(n, [(x, w), (x,), x], several)


def branch_in_loop(x: xb.Value) -> xb.Value:
    def body(s: xb.Value) -> Any:
        i, x = s
        return i + 1, xb.conditional(i < 2, x, lambda y: xb.sin(y) * y, x, lambda y: xb.exp(-y))

    return xb.while_((0, x), lambda s: s[0] < 4, body)[1]


def called_twice(x: xb.Value, w: xb.Value) -> xb.Value:
    long = xb.computation(V, V)(_long)
    return xb.call((xb.call((x, w), long), w), long)


def calls_of_pairs(x: xb.Value, w: xb.Value) -> xb.Value:
    long = xb.computation(V, V)(lambda a, b: (_long(a, b), a * b))
    a, b = xb.call([*xb.call((x, w), long)], long)
    return a * b


def fused(x: xb.Value, w: xb.Value) -> xb.Value:
    long = xb.computation(V, V)(_long)
    return xb.fusion((xb.fusion((x, w), long), w), long)


CASES = [
    Case("counted", counted, [V, V]),
    Case("by_threes", by_threes, [V, V]),
    Case("downwards", downwards, [V]),
    Case("nested", nested, [V, V]),
    Case("exchanged", exchanged, [V, V]),
    Case("of_pairs", of_pairs, [V, V]),
    Case("never", never, [V]),
    Case("branches", branches, [V, V]),
    *(Case(f"case_{n}", cases, [V, V, xb.s32[()]], {2: n}) for n in range(3)),
    Case("branch_in_loop", branch_in_loop, [V]),
    Case("called_twice", called_twice, [V, V]),
    Case("calls_of_pairs", calls_of_pairs, [V, V]),
    Case("fused", fused, [V, V]),
    Case("map", lambda x, w: xb.map((x, w), lambda a, b: xb.sin(a * b) + xb.exp(a)), [V, V]),
    Case("scan", lambda x, w: xb.scan(x, w, lambda a, c: (xb.tanh(a * c), c * a + xb.sin(c))), [xb.f64[5, 3], V]),
    Case(
        "scan_from_the_last",
        lambda x, w: xb.scan(
            x, [w, w], lambda a, c, d: (xb.tanh(a * c) * d, c * a + xb.sin(c) * d, d), dimension=1, is_reverse=True
        ),
        [xb.f64[3, 5], V],
    ),
    Case("scan_of_nothing", lambda w: xb.scan([], w, lambda c: (xb.sin(c), xb.tanh(c) * 2.0), length=4), [V]),
    Case("scan_of_carries", lambda x, w: xb.scan(x, w, lambda a, c: a * c + xb.sin(c)), [xb.f64[5, 3], V]),
]
