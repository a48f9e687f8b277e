"""Edits of modules applied to a computation, too, which is edited as the module of one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.graph import Computation, Module

Program = TypeVar("Program", Module, Computation)


def module_of(program: Module | Computation) -> Module:
    return program if isinstance(program, Module) else Module(program.name, program)


def applied(edit: Callable[[Module], Module], program: Program) -> Program:
    """The edit of a module, on either; what it gives is of the same kind."""
    given: Any = program
    edited: Any = edit(module_of(given))
    return edited if isinstance(given, Module) else edited.entry  # type: ignore[no-any-return]
