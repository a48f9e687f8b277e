"""Random expressions in pairs that differ a little: by a law that holds, by one that does not, or by a slip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

import xbuild as xb

Tree: TypeAlias = tuple[Any, ...]
"""An op and its operands; `("input", n)` and `("number", value)` are leaves."""
INPUTS, SIZE = 3, 4
LARGEST = 1e6
"""Beyond it rounding may be larger than the difference that is looked for."""


@frozen
class Ops:
    """What the ops of trees are, on values of a program or on arrays."""

    total: Callable[[Any], Any]
    largest: Callable[[Any], Any]
    number: Callable[[float], Any]
    where: Callable[[Any, Any, Any], Any]
    functions: Mapping[str, Callable[..., Any]]


def _spread(x: Any) -> Any:
    return xb.broadcast_in_dim(x, [SIZE], [])


def of_program(some: Any) -> Ops:
    """The ops of a program that has a value."""
    functions = {name: getattr(xb, name) for name in ("exp", "log", "tanh", "logistic", "abs", "max", "min", "sin")}
    return Ops(
        lambda x: _spread(xb.reduce(x, 0.0, xb.add)),
        lambda x: _spread(xb.reduce(x, -np.inf, xb.maximum)),
        lambda value: xb.constant(some.builder, np.full(SIZE, value)),
        lambda a, b, c: xb.select(a > b, c, b),
        functions,
    )


ARRAYS = Ops(
    lambda x: np.full(SIZE, x.sum()), lambda x: np.full(SIZE, x.max()), lambda value: np.full(SIZE, value),
    lambda a, b, c: np.where(a > b, c, b),
    {"exp": np.exp, "log": np.log, "tanh": np.tanh, "logistic": lambda x: 1 / (1 + np.exp(-x)), "abs": np.abs,
     "max": np.maximum, "min": np.minimum, "sin": np.sin},
)  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a,
}  # fmt: skip
_OPERANDS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "max", "min"), 2),
    **dict.fromkeys(("neg", "exp", "log", "tanh", "logistic", "abs", "sin", "total", "largest"), 1),
    "where": 3,
}


def value(tree: Tree, inputs: list[Any], ops: Ops, seen: Callable[[Any], None] = lambda found: None) -> Any:
    """The value of a tree; `seen` is told each on the way."""
    op, *rest = tree
    if op == "input":
        found = inputs[rest[0]]
    elif op == "number":
        found = ops.number(rest[0])
    else:
        operands = [value(each, inputs, ops, seen) for each in rest]
        rule = _ARITHMETIC.get(op) or ops.functions.get(op) or getattr(ops, op)
        found = rule(*operands)
    seen(found)
    return found


def drawn(random: Random, depth: int) -> Tree:
    """A random tree."""
    if not depth or random.random() < 0.1:
        if random.random() < 0.8:
            return ("input", random.randrange(INPUTS))
        return ("number", random.choice([0.0, 1.0, 2.0, 0.5, -1.0, 3.0, 0.1]))
    op = random.choice(["add", "sub", "mul", "add", "mul", "exp", "exp", "log", *_OPERANDS])
    return (op, *(drawn(random, depth - 1) for _ in range(_OPERANDS[op])))


def two(a: Tree) -> Tree:
    return ("mul", a, ("number", 2.0))


def _positive(a: Tree) -> Tree:
    return ("exp", a)


RIGHT: list[Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]] = [
    lambda a, b, c: (("exp", ("add", a, b)), ("mul", ("exp", a), ("exp", b))),
    lambda a, b, c: (("exp", ("neg", a)), ("div", ("number", 1.0), ("exp", a))),
    lambda a, b, c: (("log", ("exp", a)), a),
    lambda a, b, c: (("log", ("mul", ("exp", a), _positive(b))), ("add", a, ("log", _positive(b)))),
    lambda a, b, c: (("div", ("exp", a), ("total", ("exp", a))),
                     ("div", ("exp", ("sub", a, ("total", b))),
                      ("total", ("mul", ("exp", a), ("exp", ("neg", ("total", b))))))),
    lambda a, b, c: (("log", ("total", ("exp", a))),
                     ("add", ("largest", a), ("log", ("total", ("exp", ("sub", a, ("largest", a))))))),
    lambda a, b, c: (("tanh", a), ("sub", two(("logistic", two(a))), ("number", 1.0))),
    lambda a, b, c: (("logistic", ("neg", a)), ("sub", ("number", 1.0), ("logistic", a))),
    lambda a, b, c: (("max", a, b), ("neg", ("min", ("neg", a), ("neg", b)))),
    lambda a, b, c: (("max", ("max", a, b), c), ("max", a, ("max", c, b))),
    lambda a, b, c: (("mul", a, ("add", b, c)), ("add", ("mul", c, a), ("mul", a, b))),
    lambda a, b, c: (("sub", ("mul", a, a), ("mul", b, b)), ("mul", ("add", a, b), ("sub", a, b))),
    lambda a, b, c: (("total", ("add", a, b)), ("add", ("total", b), ("total", a))),
    lambda a, b, c: (("div", ("add", a, b), ("exp", c)), ("add", ("div", a, ("exp", c)), ("div", b, ("exp", c)))),
    lambda a, b, c: (("max", two(a), two(b)), two(("max", a, b))),
    lambda a, b, c: (("abs", ("mul", a, b)), ("mul", ("abs", a), ("abs", b))),
]  # fmt: skip
"""Laws that hold: pairs of equal trees."""

WRONG: list[Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]] = [
    lambda a, b, c: (("exp", ("mul", a, b)), ("mul", ("exp", a), ("exp", b))),
    lambda a, b, c: (("exp", ("add", a, b)), ("add", ("exp", a), ("exp", b))),
    lambda a, b, c: (("log", ("add", _positive(a), _positive(b))), ("add", a, b)),
    lambda a, b, c: (("log", ("total", ("exp", a))), ("total", a)),
    lambda a, b, c: (("div", ("exp", a), ("total", ("exp", a))), ("div", ("exp", a), ("total", ("exp", b)))),
    lambda a, b, c: (("log", ("total", ("exp", a))), ("log", ("total", ("exp", ("sub", a, ("largest", a)))))),
    lambda a, b, c: (("tanh", a), ("sub", two(("logistic", a)), ("number", 1.0))),
    lambda a, b, c: (("max", ("add", a, b), c), ("add", a, ("max", b, c))),
    lambda a, b, c: (("max", a, b), ("add", a, b)),
    lambda a, b, c: (("abs", ("add", a, b)), ("add", ("abs", a), ("abs", b))),
    lambda a, b, c: (("total", ("mul", a, b)), ("mul", ("total", a), ("total", b))),
    lambda a, b, c: (("largest", ("add", a, b)), ("add", ("largest", a), ("largest", b))),
    lambda a, b, c: (("mul", a, b), ("mul", ("mul", a, b), ("number", 1.0001))),
    lambda a, b, c: (("where", a, b, c), ("where", b, a, c)),
    lambda a, b, c: (("exp", ("exp", ("add", a, b))), ("exp", ("mul", ("exp", a), ("add", ("exp", b), a)))),
]  # fmt: skip
"""Laws that do not hold."""


@frozen
class Expressions:
    """Two trees and how the second was made of the first."""

    one: Tree
    other: Tree
    how: str

    def computation(self, tree: Tree) -> Any:
        """The program of a tree, in f64."""
        return xb.computation(*[xb.f64[SIZE]] * INPUTS)(lambda *xs: value(tree, list(xs), of_program(xs[0])))

    def verdict(self) -> Any:
        """Whether they are found equal."""
        return xb.equivalent(self.computation(self.one), self.computation(self.other))

    def apart(self, tries: int = 8) -> float:
        """How far the values are apart, by the size of what was computed on the way, where all is of moderate size."""
        return max((self._apart(np.random.default_rng(number)) for number in range(tries)), default=0.0)

    def _apart(self, random: np.random.Generator) -> float:
        inputs = [random.normal(size=SIZE) for _ in range(INPUTS)]
        sizes: list[float] = [1.0]
        with np.errstate(all="ignore"):
            found = [value(each, inputs, ARRAYS, lambda x: sizes.append(float(np.abs(x).max()))) for each in self.trees]
        if not all(size < LARGEST for size in sizes):  # false for NaN
            return 0.0
        return float(np.abs(found[0] - found[1]).max()) / max(sizes)

    @property
    def trees(self) -> tuple[Tree, Tree]:
        """Both."""
        return self.one, self.other


def pair(seed: int) -> Expressions:
    """A random pair."""
    random = Random(seed)
    how = random.choice(["right", "wrong", "slip"])
    depth = random.choice([1, 2, 3])
    if how == "slip":
        tree = drawn(random, depth + 1)
        return Expressions(tree, _slipped(tree, random), how)
    parts = [drawn(random, depth - 1) for _ in range(3)]
    left, right = random.choice(RIGHT if how == "right" else WRONG)(parts[0], parts[1], parts[2])
    around = next(tree for tree in iter(lambda: drawn(random, 2), None) if _has_input(tree))
    return Expressions(*(_with_input(around, each) for each in (left, right)), how)


def _has_input(tree: Tree) -> bool:
    return tree == ("input", 0) or any(isinstance(each, tuple) and _has_input(each) for each in tree[1:])


def _with_input(tree: Tree, inside: Tree) -> Tree:
    """A tree whose first input is another tree."""
    if tree == ("input", 0):
        return inside
    return tree if tree[0] in ("input", "number") else (tree[0], *(_with_input(each, inside) for each in tree[1:]))


def _places(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield path
    if tree[0] not in ("input", "number"):
        for place, each in enumerate(tree[1:], 1):
            yield from _places(each, (*path, place))


def _slipped(tree: Tree, random: Random) -> Tree:
    """The tree with one node changed."""
    return _changed(tree, random.choice(list(_places(tree))), random)


def _changed(tree: Tree, path: tuple[int, ...], random: Random) -> Tree:
    if path:
        place = path[0]
        return (*tree[:place], _changed(tree[place], path[1:], random), *tree[place + 1 :])
    if tree[0] == "input":
        return ("input", (tree[1] + 1) % INPUTS)
    if tree[0] == "number":
        return ("number", tree[1] + 1.0)
    alike = [op for op, count in _OPERANDS.items() if count == len(tree) - 1 and op != tree[0]]
    return (random.choice(alike), *tree[1:]) if alike and random.random() < 0.6 else (tree[0], *tree[:0:-1])
