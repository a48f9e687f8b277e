"""Formulas of the acceptance cases as functions of values: `x + y`, `(mean(x + 1), None)`, `{'a': sum(x)}`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import xbuild as xb


def _sum(x: Any) -> Any:
    return xb.reduce(x, 0, xb.add)


def _mean(x: Any) -> Any:
    return _sum(x) / int(np.prod(x.shape.dims))


_WORDS = {
    "dict": dict, "list": list, "tuple": tuple, "float": float, "int": int, "zeros": np.zeros, "ones": np.ones,
    "array": np.float32, "float32": np.float32, "group": xb.tpu.group, "int32": np.int32, "max": xb.maximum,
    "mean": _mean, "min": xb.minimum, "no_op": xb.tpu.no_op, "reduce_mean": _mean, "reduce_sum": _sum, "sum": _sum,
    "cross_replica_sum": xb.tpu.cross_replica_sum,
}  # fmt: skip
_SPACE = {**{name: value for name, value in vars(xb).items() if inspect.isfunction(value)}, **_WORDS}
SPACE = {**_SPACE, "np": np, "tf": SimpleNamespace(**_SPACE), "tpu": xb.tpu, "xb": xb}


def computation(formula: str) -> Callable[..., Any]:
    """The function of a formula; its names that are no function are the arguments, in the order of the alphabet.

    A formula without such names takes any arguments.
    """
    tree = ast.parse(formula.strip(), mode="eval")
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names, code = sorted(found - SPACE.keys()), compile(tree, "<case>", "eval")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if names else inspect.Parameter.VAR_POSITIONAL

    def function(*arguments: Any) -> Any:
        return eval(code, dict(SPACE), dict(zip(names, arguments, strict=False)))

    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names or ["any"]])  # type: ignore[attr-defined]
    return function
