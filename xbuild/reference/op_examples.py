"""The example of an op's declaration, run and kept: an instruction of the op with the values on all devices."""

from __future__ import annotations

import ast
import doctest
import inspect
from functools import cache
from typing import Any

from attrs import frozen

from shape_inference import XbuildError

from .. import running
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.op import OPS
from ..traces import Trace

_RUNS = ("evaluate", "execute")


@frozen(eq=False)
class OpExample:
    """A run of the example of an op, and the number of the event of its instruction."""

    trace: Trace
    event: int

    @property
    def instruction(self) -> Instruction:
        """The instruction of the op."""
        return self.trace[self.event].instruction


@cache
def op_example(opcode: str) -> OpExample | None:
    """The example of an op; None where its docstring runs no program that has the op.

    >>> op_example("gather").instruction.shape
    f32[2,2]
    """
    call = _call(opcode)
    if call is None:
        return None
    try:
        trace = running.trace(*call, origins=True)
    except (XbuildError, TypeError, ValueError):  # an example that shows a refusal
        return None
    events = [n for n in range(len(trace)) if trace[n].instruction.opcode == opcode]
    return OpExample(trace, events[0]) if events else None


def _call(opcode: str) -> tuple[Any, Any] | None:
    """The program and the inputs that the last call of evaluate or execute in the docstring is given."""
    space: dict[str, Any] = {}
    found = None
    parser = doctest.DocTestParser()
    for each in parser.get_examples(inspect.cleandoc(OPS[opcode].declaration.__doc__ or "")):
        statement = ast.parse(each.source).body[0]
        run = next((node for node in ast.walk(statement) if _is_run(node)), None)
        if run is not None and isinstance(statement, ast.Expr):
            found = _given(run, space) or found
        elif each.exc_msg is None:
            exec(compile(each.source, "example", "exec"), space)
    return found


def _is_run(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _RUNS


def _name(function: ast.expr) -> str:
    """`evaluate` of `xb.evaluate` and of `evaluate`."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _given(run: Any, space: dict[str, Any]) -> tuple[Any, Any] | None:
    """The program and the inputs for each device; None where the call has options, such as an infeed."""
    if run.keywords or not run.args:
        return None
    values = [eval(compile(ast.Expression(each), "example", "eval"), space) for each in run.args]
    if not isinstance(values[0], Computation | Module | ModuleGroup):
        return None
    return (values[0], [values[1:]]) if _name(run.func) == "evaluate" else (values[0], values[1])
