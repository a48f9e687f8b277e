"""Draws of every op that real XLA:CPU can run, a file for each family: opcode -> draw."""

from __future__ import annotations

import importlib
import pkgutil

from .draw import Draw as Draw

FAMILIES: dict[str, dict[str, Draw]] = {
    info.name: importlib.import_module(f"{__name__}.{info.name}").DRAWS
    for info in pkgutil.iter_modules(__path__)
    if info.name != "draw"
}
DRAWS: dict[str, Draw] = {opcode: draw for draws in FAMILIES.values() for opcode, draw in draws.items()}
