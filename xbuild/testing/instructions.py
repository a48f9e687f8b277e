"""What instructions a program has, which arguments it may overwrite, and what it calls on the host.

Sections:

    The instructions of a program
    assert_ops: numbers of ops, by element type, scope and memory
    assert_donated: arguments whose memory results use
    assert_no_callbacks: functions of the host
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from shape_inference import AnyShape, Shape, leaves, primitive_type
from shape_inference.escaping import in_line

from ..core.graph import Instruction, Module, ModuleGroup
from ..core.op import OPS, opcodes
from ..core.report_text import MOST_ROWS, join_words, more_text
from ..costs.buffers import is_on_host, parts_of
from ..costs.memory import aliases_of
from ..costs.report import columns
from ..properties.effects import (
    FEEDS,
    TRANSFERS,
    base_of,
    calls_python,
    jax_primitive,
    name_in_report,
    spelling,
)
from ..text.header import stated_entry_shape
from .contracts import ContractError, Count, Program, count_faults, program_of

# ----------------------------------------------------------------------------
# The instructions of a program

_UNCOUNTED = opcodes(lambda op: op.half in ("update", "done") or op.calls == "wrapped")
"""The opcodes that complete a start, and those that start an op that is counted in the computation that they call."""


def _instructions_of(program: Program) -> Iterator[Instruction]:
    """The instructions of all computations, each once; a computation precedes the computations that it calls."""
    if isinstance(program, ModuleGroup):
        for module in dict.fromkeys(program.modules.values()):
            yield from _instructions_of(module)
        return
    entry = program.entry if isinstance(program, Module) else program
    for computation in reversed(entry.reachable()):
        yield from computation.instructions


def _scope_of(instruction: Instruction) -> str:
    return str((instruction.annotations.get("metadata") or {}).get("op_name", ""))


def _place_of(instruction: Instruction) -> str:
    return in_line(str(instruction.source or _scope_of(instruction)))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a report: at most MOST_ROWS rows."""
    rows = list(rows)
    yield from (line.rstrip() for line in columns(heads, rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        yield more_text(len(rows) - MOST_ROWS, "`xbuild show` prints all", "instruction")


# ----------------------------------------------------------------------------
# assert_ops: numbers of ops, by element type, scope and memory


def assert_ops(
    target: Any,
    *args: Any,
    dtype: Any = None,
    scope: str | None = None,
    on_host: bool | None = None,
    others: int | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **counts: Count,
) -> tuple[Instruction, ...]:
    """Assert how many instructions of each op a program has, and return the counted instructions.

    For each op, under its HLO name in snake_case, `counts` gives a number (`dot=2, conditional=0`) or a range (such as
    `fusion=range(1, 9)` or `at_least(1)`). `custom_call={"target": 1}` gives a number for each custom_call_target.
    Instructions in fusions, loops and other called computations count once each, as in the text. An asynchronous start
    counts as its op, and its done does not count. `others` is the number of instructions of all ops that `counts` does
    not name.

    If `dtype` (an HLO name, or a NumPy or JAX dtype) is given, only instructions with a result of that element type are
    counted. So `assert_ops(step, x, dtype="f64", others=0)` asserts that nothing is computed in f64. If `scope` is
    given, only instructions whose `op_name` contains that text are counted. `on_host=True` counts only instructions
    with a result in host memory (JAX's "pinned_host"), and `on_host=False` counts all others.

    `target` and `args` are as in `collectives`, and `kwargs` are keyword arguments of the function.
    Raises ContractError if a number differs, and TypeError for an unknown op or element type.

    >>> import xbuild as xb
    >>> square = xb.computation(xb.f32[8, 8])(lambda x: xb.dot(x, x) + 1.0)
    >>> len(xb.testing.assert_ops(square, dot=1, conditional=0, custom_call=0))
    1
    >>> len(xb.testing.assert_ops(square, dtype="f64", others=0))
    0
    >>> xb.testing.assert_ops(square, dot=2)
    Traceback (most recent call last):
    xbuild.testing.contracts.ContractError: expected 2 dot instructions, got 1
      op   shape     instruction  place
      dot  f32[8,8]  dot...

    Source: XLA, HLO text; StableHLO, Specification, Ops.
    """
    __tracebackhide__ = True
    unknown = [name for name in counts if name not in OPS]
    if unknown:
        raise TypeError(f"assert_ops: {unknown[0]!r} is not an op; write the name of an HLO op in snake_case")
    by_key = [op for op, count in counts.items() if isinstance(count, Mapping) and op != "custom_call"]
    if by_key:
        raise TypeError(
            f"assert_ops: {by_key[0]} takes a number; only custom_call takes a separate number for each target"
        )
    kind = None if dtype is None else primitive_type(dtype)
    program = program_of(target, args, kwargs or {})
    shapes = _stated_shapes(program)
    found = []
    for each in _instructions_of(program):
        arrays = [*leaves(each.shape), *shapes.get(each, ())]
        if (
            each.opcode not in _UNCOUNTED
            and (kind is None or any(isinstance(a, Shape) and a.dtype is kind for a in arrays))
            and (scope is None or scope in _scope_of(each))
            and (on_host is None or any(map(is_on_host, arrays)) == on_host)
        ):
            found.append(each)
    chosen = [each for each in found if base_of(each) in counts]
    rest = [each for each in found if base_of(each) not in counts]
    such = "".join(
        [f" of element type {kind}" * (kind is not None), f" in scope {scope!r}" * (scope is not None)]
        + ([] if on_host is None else [" in host memory" if on_host else " outside host memory"])
    )
    faults = [fault for op, count in counts.items() for fault in _faults(chosen, op, count, such)]
    if others is not None and len(rest) != others:
        faults.append(f"expected {others} instructions of other ops{such}, got {len(rest)}")
        chosen += rest
    if faults:
        heads = ("op", "shape", "instruction", "place")
        rows = ((_op_text(each), str(each.shape), in_line(each.name), _place_of(each)) for each in chosen)
        raise ContractError("\n".join([join_words(faults), *(_table(heads, rows) if chosen else ())]))
    return tuple(chosen)


def _faults(chosen: Sequence[Instruction], op: str, count: Count, such: str) -> Iterator[str]:
    """What is wrong with the number of instructions of one op, for each target if numbers are given by target."""
    wanted = count if isinstance(count, Mapping) else {None: count}
    for goal, number in wanted.items():
        actual = sum(base_of(each) == op and (goal is None or _goal(each) == goal) for each in chosen)
        noun = f"{spelling(op)} instructions"
        yield from count_faults(number, actual, noun, f"{f' of {goal}' if goal else ''}{such}")


def _goal(call: Instruction) -> str:
    return str(call.attributes.custom_call_target)


def _op_text(instruction: Instruction) -> str:
    goal = f" {in_line(_goal(instruction))}" if instruction.opcode == "custom_call" else ""
    return spelling(instruction.opcode) + goal


def _stated_shapes(program: Program) -> dict[Instruction, Sequence[AnyShape]]:
    """The layouts that the header states for parameters and the result, since XLA:CPU states host memory only there."""
    if isinstance(program, ModuleGroup):
        modules = dict.fromkeys(program.modules.values())
        return {key: shapes for module in modules for key, shapes in _stated_shapes(module).items()}
    stated = stated_entry_shape(program.annotations) if isinstance(program, Module) else None
    if stated is None or not isinstance(program, Module):
        return {}
    entry = program.entry
    found: dict[Instruction, Sequence[AnyShape]]
    found = {
        parameter: (*leaves(shape),) for parameter, shape in zip(entry.parameters, stated.parameters, strict=False)
    }
    found[entry.root] = (*found.get(entry.root, ()), *leaves(stated.result))
    return found


# ----------------------------------------------------------------------------
# assert_donated: arguments whose memory results use


def assert_donated(
    target: Any,
    *args: Any,
    arguments: str | int | Sequence[str | int],
    kwargs: Mapping[str, Any] | None = None,
) -> tuple[Instruction, ...]:
    """Assert that results reuse the memory of all arrays in these arguments, and return the parameters of the arrays.

    An argument is the name of a parameter of the function, such as "state", or a path such as "state['w']"; a name
    covers all arrays in that parameter. An int is the number of a parameter of the compiled program. JAX donates an
    argument only if `donate_argnums` or `donate_argnames` of `jax.jit` names it, and an array in it only if a result
    has the same shape, element type and sharding.

    `target` and `args` are as in `collectives`, and `kwargs` are keyword arguments of the function.
    Raises ContractError if the memory of an array is not reused or no parameter has the name, and TypeError for a
    program without a header.

    >>> import xbuild as xb
    >>> text = '''HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
    ... ENTRY main {
    ...   state = f32[8] parameter(0)
    ...   batch = f32[8] parameter(1)
    ...   sum = f32[8] add(state, batch)
    ...   ROOT results = (f32[8], f32[8]) tuple(sum, batch)
    ... }
    ... '''
    >>> [each.name for each in xb.testing.assert_donated(text, arguments="state")]
    ['state']
    >>> xb.testing.assert_donated(text, arguments=["state", "batch"])
    Traceback (most recent call last):
    xbuild.testing.contracts.ContractError: expected results in the memory of state and batch, got 1 of 2 arrays
      parameter  not donated  shape
      1          batch        f32[8]
    donate them with donate_argnums of jax.jit; each needs a result of its shape, type and sharding

    Source: XLA, Aliasing in XLA; JAX, Buffer donation.
    """
    __tracebackhide__ = True
    program = program_of(target, args, kwargs or {})
    if not isinstance(program, Module):
        raise TypeError(f"assert_donated: expected a program with a header, got {type(program).__name__}")
    names = [arguments] if isinstance(arguments, str | int) else [*arguments]
    parameters = program.entry.parameters
    chosen: dict[Instruction, None] = {}
    for name in names:
        matching = [each for each in parameters if _is_in(each, name)]
        if not matching:
            listed = ", ".join(in_line(name_in_report(each)) for each in parameters[:MOST_ROWS])
            raise ContractError(f"the program has no parameter {name!r}; its parameters are {listed or 'none'}")
        chosen.update(dict.fromkeys(matching))
    ends = [0, *accumulate(len(parts_of(each.shape)) for each in parameters)]
    reused = set(aliases_of(program).values())
    results = {each: all(place in reused for place in range(*ends[n : n + 2])) for n, each in enumerate(parameters)}
    missing = [each for each in chosen if not results[each]]
    if missing:
        got = f"got {len(chosen) - len(missing)} of {len(chosen)} arrays"
        fix = "donate them with donate_argnums of jax.jit; each needs a result of its shape, type and sharding"
        rows = [(str(each.attributes.number), in_line(name_in_report(each)), str(each.shape)) for each in missing]
        heads = ("parameter", "not donated", "shape")
        lines = [f"expected results in the memory of {join_words(list(map(str, names)))}, {got}", *_table(heads, rows)]
        raise ContractError("\n".join([*lines, fix]))
    return tuple(chosen)


def _is_in(parameter: Instruction, name: str | int) -> bool:
    """Whether a parameter has a number, or is an array of the argument with a name."""
    if isinstance(name, int):
        return bool(parameter.attributes.number == name)
    return any(
        path == name or path.startswith((f"{name}[", f"{name}."))
        for path in (name_in_report(parameter), _scope_of(parameter), parameter.name)
    )


# ----------------------------------------------------------------------------
# assert_no_callbacks: functions of the host


def assert_no_callbacks(target: Any, *args: Any, **kwargs: Any) -> None:
    """Assert that a program calls no host functions and exchanges no values with the host.

    Refuses jax.debug.print, jax.debug.callback, jax.pure_callback and io_callback, infeed and outfeed, and transfers to
    the host. `target`, `args` and `kwargs` are as in `collectives`.
    Raises ContractError, which lists the calls and their lines.

    >>> import xbuild as xb
    >>> xb.testing.assert_no_callbacks(xb.computation(xb.f32[8])(lambda x: x + 1.0))

    Source: JAX, External callbacks.
    """
    __tracebackhide__ = True
    found = [each for each in _instructions_of(program_of(target, args, kwargs)) if _needs_host(each)]
    if found:
        rows = ((_host_text(each), in_line(each.name), _place_of(each)) for each in found)
        first = f"expected no calls of functions of the host, got {len(found)}"
        raise ContractError("\n".join([first, *_table(("call", "instruction", "place"), rows)]))


def _needs_host(instruction: Instruction) -> bool:
    is_transfer = instruction.opcode in TRANSFERS and instruction.attributes.is_host_transfer
    return is_transfer or instruction.opcode in FEEDS or calls_python(instruction)


def _host_text(instruction: Instruction) -> str:
    return in_line(jax_primitive(instruction)) if calls_python(instruction) else spelling(instruction.opcode)
