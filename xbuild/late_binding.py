"""Functions that `xbuild.core` and `xbuild.traces` call and higher packages supply: text, programs, pictures.

Each package is imported at the first call, so that building a program loads no printer and no pictures.
"""

from __future__ import annotations

from typing import Any

import xbuild
from shape_inference.trees import flatten

from .core import hooks
from .core.builder import Value, stands_for
from .core.graph import Computation, Instruction
from .core.hooks import forms
from .differentiation import rules as derivatives
from .stablehlo.reading import rules as operations

forms.namespace = xbuild


@hooks.text_of.supply
def _text(thing: Any, style: str = "short", **flags: bool | None) -> str:
    from .text import printer
    from .text.spelling import make_style

    if isinstance(thing, Instruction):
        return printer.instruction_text(thing)
    if isinstance(thing, Computation):
        return printer.computation_text(thing)
    return printer.module_text(thing, make_style(style, **flags))


@hooks.applied.supply
def _applied(computation: Computation, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if _has_value(arguments):
        return xbuild.call(arguments, computation, **options)
    return xbuild.evaluate(computation, *arguments, **options)


def _has_value(argument: Any) -> bool:
    """Whether an argument is a value, or a tuple or list that holds one."""
    return any(isinstance(stands_for(leaf), Value) for leaf in flatten(argument))


@hooks.stablehlo_of.supply
def _stablehlo(program: Any, locations: bool) -> str:
    from .stablehlo.writing.module import stablehlo_text

    return stablehlo_text(program, locations)


@operations.enter_all_rules.supply
def _rules() -> None:
    from .stablehlo import op_rules  # noqa: F401  (importing fills the table)


@derivatives.all_rules.supply
def _derivatives() -> None:
    from .differentiation import ops  # noqa: F401  (importing fills the tables)


@operations.make_sized_reader.supply
def _sized_reader(*arguments: Any) -> Any:
    from .stablehlo.op_rules.dynamic import SizedReader

    return SizedReader(*arguments)


@hooks.program_in.supply
def _program_in(thing: Any, **options: Any) -> Any:
    from .files.programs import program_in

    return program_in(thing, **options)


@hooks.drawing.supply
def _drawing(thing: Any) -> Any:
    from .pictures import viz

    return viz(thing)


@hooks.reported.supply
def _reported(lines: Any) -> str:
    from .pictures.html import report

    return report(lines)


@hooks.framed.supply
def _framed(trace: Any) -> str:
    from .pages import framed

    return framed(trace)
