"""Writes the StableHLO texts of JAX programs: as lowered, with debug information, exported, and with shardings.

python -m tests.stablehlo.frameworks.emit FILE.jsonl: a line for each text, with its name and form. It is for a process
of its own, since it sets how many devices JAX has.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FORMS = ("plain", "debug", "export", "sharded")


def _ready() -> None:
    """Four devices of the CPU, and types of 64 bits."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4".strip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)


def _texts(function: Callable[..., Any], arguments: tuple[Any, ...], is_parallel: bool) -> Iterator[tuple[str, str]]:
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(function)
    lowered = jitted.lower(*arguments)
    yield "plain", lowered.as_text()
    yield "debug", lowered.as_text(debug_info=True)
    yield "export", str(jax.export.export(jitted)(*arguments).mlir_module())
    if not is_parallel and (ranked := [each for each in jax.tree.leaves(arguments) if each.ndim]):
        yield "sharded", _sharded(jitted, arguments, ranked)


def _sharded(jitted: Any, arguments: tuple[Any, ...], ranked: list[Any]) -> str:
    """The text with the first dimension of each argument over four devices, where it has a multiple of four."""
    import jax

    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    shardings = jax.tree.map(
        lambda x: jax.sharding.NamedSharding(
            mesh, jax.sharding.PartitionSpec(*(["i"] if x.ndim and x.shape[0] % 4 == 0 else []))
        ),
        arguments,
    )
    return str(jax.jit(jitted, in_shardings=shardings).lower(*arguments).as_text())


def records() -> Iterator[dict[str, str]]:
    """The texts, each with the name of its program and its form; a program that JAX refuses is left out, and said."""
    _ready()
    from .jax_control import controlled, derived, parallel
    from .jax_functions import all_functions

    for family in (controlled, all_functions, derived, parallel):
        for name, function, arguments in family():
            try:
                for form, text in _texts(function, arguments, family is parallel):
                    yield {"name": f"jax {name}", "form": form, "text": text}
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    with Path(arguments[0]).open("w") as file:
        for record in records():
            print(json.dumps(record), file=file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
