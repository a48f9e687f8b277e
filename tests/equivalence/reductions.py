"""Random pairs of programs of arrays with few named dimensions, for verdicts at smaller and at full extents.

A program is a tree: an op and its operands, over values that have some of the dimensions of `EXTENTS`, in order. The
other program of a pair is the same tree with another order of operands, with a sum moved, or with a slip.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

import xbuild as xb

Tree: TypeAlias = tuple[Any, ...]
EXTENTS = {"a": 12, "b": 16, "c": 24}
INPUTS = ("ab", "bc", "a", "c", "abc")
"""The dimensions of each input."""
_UNARY = ("exp", "tanh", "neg", "square", "relu", "twice", "next")
_BINARY = ("add", "sub", "mul", "div", "dot")
_OVER = ("sum", "mean", "max", "count", "places", "turned", "halves", "norm", "sumsq")


def dims_of(tree: Tree) -> str:
    """The dimensions of the value of a tree."""
    op, *rest = tree
    if op == "input":
        return INPUTS[rest[0]]
    if op in _UNARY or op in ("places", "turned", "halves", "norm"):
        return dims_of(rest[0])
    if op in _OVER:
        return "".join(d for d in dims_of(rest[0]) if d != rest[1])
    both = sorted({*dims_of(rest[0]), *dims_of(rest[1])})
    return "".join(d for d in both if op != "dot" or d != rest[2])


def random_tree(random: Random, depth: int) -> Tree:
    """A tree of at most this depth."""
    if not depth or random.random() < 0.1:
        return "input", random.randrange(len(INPUTS))
    kind = random.random()
    first = random_tree(random, depth - 1)
    if kind < 0.25:
        return random.choice(_UNARY), first
    if kind < 0.6 and dims_of(first):
        return random.choice(_OVER), first, random.choice(dims_of(first))
    second = random_tree(random, depth - 1)
    shared = sorted({*dims_of(first)} & {*dims_of(second)})
    op = random.choice(_BINARY if shared else _BINARY[:-1])
    return (op, first, second, random.choice(shared)) if op == "dot" else (op, first, second)


def value(tree: Tree, inputs: list[Any]) -> Any:
    """The value of a tree in a program."""
    op, *rest = tree
    if op == "input":
        return inputs[rest[0]]
    first, dims = value(rest[0], inputs), dims_of(rest[0])
    if op in _UNARY:
        return {
            "exp": xb.exp, "tanh": xb.tanh, "neg": lambda x: -x, "square": lambda x: x * x,
            "relu": lambda x: xb.maximum(x, _full(x, 0.0)), "twice": lambda x: x + x,
            "next": lambda x: x + _full(x, 1.0),
        }[op](first)  # fmt: skip
    if op in _OVER:
        return _along(op, first, dims, rest[1])
    second, others = value(rest[1], inputs), dims_of(rest[1])
    if op == "dot":
        return _dot(first, dims, second, others, rest[2])
    both = "".join(sorted({*dims, *others}))
    left, right = _spread(first, dims, both), _spread(second, others, both)
    return {"add": xb.add, "sub": xb.subtract, "mul": xb.multiply, "div": xb.divide}[op](left, right)


def _full(x: Any, number: float) -> Any:
    return xb.broadcast(xb.constant(x.builder, np.float32(number)), x.shape.dims, [])


def _spread(x: Any, dims: str, both: str) -> Any:
    return xb.broadcast(x, [EXTENTS[d] for d in both], [both.index(d) for d in dims])


def _along(op: str, x: Any, dims: str, dim: str) -> Any:
    at, extent = dims.index(dim), EXTENTS[dim]
    if op in ("sum", "mean", "sumsq"):
        total = xb.reduce(x * x if op == "sumsq" else x, 0.0, xb.add, (at,))
        return total * _full(total, 1 / extent) if op == "mean" else total
    if op == "max":
        return xb.reduce(x, -np.inf, xb.maximum, (at,))
    if op == "count":
        return xb.reduce(x * x - x * x + _full(x, 1.0), 0.0, xb.add, (at,)) * _full(
            xb.reduce(x, 0.0, xb.add, (at,)), 0.5
        )
    if op == "places":
        return x * xb.convert(xb.iota(x.builder, xb.s32[x.shape.dims], at), xb.f32)
    if op == "turned":
        return xb.reverse(x, [at])
    if op == "halves":
        half = extent // 2
        low = xb.slice_in_dim(x, 0, half, 1, at)
        return xb.concatenate([low + low, xb.slice_in_dim(x, half, extent, 1, at)], at)
    return xb.custom_call(x, "norm", x.shape, backend_config=dim)


def _dot(x: Any, dims: str, y: Any, others: str, over: str) -> Any:
    """The sum of products over a dimension; other dimensions that both have are batch dimensions."""
    batch = [d for d in dims if d in others and d != over]
    found = xb.dot_general(
        x, y, [dims.index(over)], [others.index(over)], [dims.index(d) for d in batch], [others.index(d) for d in batch]
    )
    order = [*batch, *(d for d in dims if d not in others), *(d for d in others if d not in dims)]
    return xb.transpose(found, [order.index(d) for d in sorted(order)])


def program(tree: Tree) -> xb.Module:
    """The program that computes a tree."""
    shapes = [xb.f32[tuple(EXTENTS[d] for d in dims)] for dims in INPUTS]
    return xb.Module("tree", xb.computation(*shapes)(lambda *inputs: value(tree, [*inputs])))


def changed(tree: Tree, random: Random) -> Tree:
    """The tree with a change at one place: one that may keep its value, or a slip."""
    places = [*_places(tree)]
    at = random.choice(places)
    return _replaced(tree, at, _change(_at(tree, at), random))


def _places(tree: Tree, here: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield here
    for n, part in enumerate(tree):
        if isinstance(part, tuple):
            yield from _places(part, (*here, n))


def _at(tree: Tree, place: tuple[int, ...]) -> Tree:
    for n in place:
        tree = tree[n]
    return tree


def _replaced(tree: Tree, place: tuple[int, ...], part: Tree) -> Tree:
    if not place:
        return part
    inner = _replaced(tree[place[0]], place[1:], part)
    return (*tree[: place[0]], inner, *tree[place[0] + 1 :])


def _change(tree: Tree, random: Random) -> Tree:
    op, *rest = tree
    dims = dims_of(tree)
    choices: list[Tree] = [
        ("twice", ("mul", tree, ("next", ("sub", tree, tree)))),
        ("neg", ("neg", tree)),
        ("add", tree, tree),
    ]
    if op in ("add", "mul"):
        choices += [(op, rest[1], rest[0])] * 3
    if op in ("sum", "mean") and rest[0][0] in ("add", "sub") and all(rest[1] in dims_of(each) for each in rest[0][1:]):
        choices += [(rest[0][0], *((op, each, rest[1]) for each in rest[0][1:]))] * 4
    if op == "mul" and rest[0][0] == "sum" and rest[0][2] not in dims_of(rest[1]):
        choices += [("sum", ("mul", rest[0][1], rest[1]), rest[0][2])] * 4
    if op == "dot" and {*dims_of(rest[0])} == {*dims_of(rest[1])}:
        choices += [("sum", ("mul", rest[0], rest[1]), rest[2])] * 4
    if op == "square" and rest[0][0] == "sum":
        choices += [("sumsq", rest[0][1], rest[0][2]), ("mul", rest[0], rest[0])]
    if op in ("sum", "mean", "max", "sumsq", "count"):
        choices += [(other, *rest) for other in ("sum", "mean", "max", "sumsq", "count") if other != op]
    if op in _UNARY:
        choices += [(other, *rest) for other in _UNARY if other != op]
    same = [n for n, each in enumerate(INPUTS) if each == dims]
    return random.choice(choices + [("input", n) for n in same if op != "input"])


def random_pair(seed: int) -> tuple[Tree, Tree]:
    """A tree, and one with a change or two."""
    random = Random(seed)
    tree = random_tree(random, random.randint(2, 5))
    other = changed(tree, random)
    return tree, changed(other, random) if random.random() < 0.3 else other


@frozen(eq=False)
class Judgement:
    """The verdicts on a pair at full and at smaller extents; `is_smaller`: whether any extent became smaller."""

    full: xb.Equivalence
    small: xb.Equivalence

    @property
    def is_smaller(self) -> bool:
        return "extents" in self.small.details

    @property
    def is_apart(self) -> bool:
        """Whether the verdicts are not the same, for a reason other than these three.

        Where programs go by the order of numbers, each verdict is about the cases that its draws show. Degrees may be
        too high at full extents only. Runs in floating point on one of both may meet a division by zero.
        """
        kinds = {self.full.kind, self.small.kind}
        goes_by_order = "order" in dict(self.full.assumed)
        is_too_high = any("degree" in reason for reason in self.full.undecided)
        is_found_by_runs = "differ in floating point" in self.full.reason + self.small.reason
        is_explained = is_too_high or is_found_by_runs or (goes_by_order and "undecided" in kinds)
        return len(kinds) > 1 and not is_explained


def judged(seed: int) -> Judgement | None:
    """The verdicts on a random pair; None if its programs have results of different shapes."""
    tree, other = random_pair(seed)
    if dims_of(tree) != dims_of(other):
        return None
    pair = program(tree), program(other)
    return Judgement(*(xb.equivalent(*pair, reduce_extents=smaller) for smaller in (False, True)))
