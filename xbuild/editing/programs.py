"""Application of an edit of modules to a computation, which is edited as the entry of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.graph import Computation, Module

Program = TypeVar("Program", Module, Computation)


def module_of(program: Module | Computation) -> Module:
    return program if isinstance(program, Module) else Module(program.name, program)


def applied(edit: Callable[[Module], Module], program: Program) -> Program:
    """Apply an edit to a module, or to the module of a computation; the result is of the same type as the program."""
    given: Any = program
    edited: Any = edit(module_of(given))
    return edited if isinstance(given, Module) else edited.entry  # type: ignore[no-any-return]
