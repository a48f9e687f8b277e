"""Writes what JAX gives for the functions and their gradients: `python -m tests.array_functions.jax_values FILE`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import jax
import numpy as np

from .functions import FLOATS, FUNCTIONS, PLACES, argument, weights

jax.config.update("jax_enable_x64", True)


def _function(name: str, keywords: dict[str, Any]) -> Any:
    module, _, last = name.partition(".")
    return partial(getattr(getattr(jax, module), last), **keywords)


def _values(x: Any) -> dict[str, Any]:
    """The results and gradients of all functions, which are compiled as one program."""
    found = {}
    for number, (name, keywords, _) in enumerate(FUNCTIONS + PLACES):
        function = _function(name, keywords)
        result = function(x)
        found[f"{number}"] = result
        if number < len(FUNCTIONS):
            scale = weights(result.shape, result.dtype)
            found[f"{number} gradient"] = jax.grad(lambda x, f=function, s=scale: (f(x) * s).sum())(x)
    return found


def main(path: str) -> None:
    found = {}
    for dtype in FLOATS:
        values = jax.jit(_values)(jax.numpy.asarray(argument(dtype)))
        found |= {f"{dtype} {key}": np.asarray(value, np.float64) for key, value in values.items()}
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
