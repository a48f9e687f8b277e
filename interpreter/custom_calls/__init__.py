"""Custom calls: the function of each target, registered by the user or built in, and the refusal of other targets."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

from shape_inference import Shape, XbuildError, leaves
from xbuild.core.callbacks import CALLBACKS
from xbuild.core.context import assigned
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes
from xbuild.properties.effects import is_debug_print
from xbuild.properties.placement import is_same

from ..compiler.facts import communicates, live
from . import lapack as _lapack  # noqa: F401  (importing it fills the table)
from .built_in import BUILT_IN, Target

__all__ = ["CustomCallError", "certain", "check_target", "check_targets", "function_of", "is_skipped", "standing_in"]

_stand_in: ContextVar[Target | None] = ContextVar("xbuild_stand_in", default=None)


def standing_in(function: Target) -> AbstractContextManager[Target | None]:
    """Inside, `function` takes the place of every target without a function."""
    return assigned(_stand_in, function)


_APPLYING = opcodes(lambda op: op.calls in ("elements", "reducer"))
"""Ops that apply a computation to elements; the run cannot wait for a custom call inside of such a computation."""

_ALWAYS = opcodes(lambda op: op.calls in ("once", "wrapped"))
"""Ops that run their computation whenever they run themselves."""


class CustomCallError(XbuildError):
    """A custom call cannot be run: its target has no function, or it is in a place where the run cannot wait for it."""


def function_of(instruction: Instruction) -> Callable[..., Any]:
    """The function of a custom call, with its backend_config or instruction bound, as a function of the operands."""
    a = instruction.attributes
    callback = CALLBACKS.get(a.custom_call_target)
    if callback is None:
        known = BUILT_IN.get(a.custom_call_target) or _stand_in.get() or (_skip if is_skipped(instruction) else None)
        assert known is not None, a.custom_call_target
        return partial(known, instruction)
    return partial(callback.function, backend_config=a.backend_config) if callback.takes_config else callback.function


def is_skipped(instruction: Instruction) -> bool:
    """Whether a run skips a call: one of jax.debug.print, which only the process that lowered the text can print."""
    return (
        instruction.opcode == "custom_call"
        and instruction.attributes.custom_call_target not in CALLBACKS
        and is_debug_print(instruction)
        and not any(isinstance(leaf, Shape) for leaf in leaves(instruction.shape))
    )


def _skip(*_: Any) -> tuple[()]:
    return ()


def check_targets(modules: Iterable[Module]) -> None:
    """Refuse, before the run, an unregistered target that every run calls, and a call in a computation on elements.

    An unregistered target in a branch, a loop or a scan is refused by `check_target` when the run reaches the call.
    """
    for module in dict.fromkeys(modules):
        calls, appliers = _calls_and_appliers(module.entry)
        for instruction in calls:
            check_target(instruction)
        for instruction in appliers:
            _refuse_calls_inside(instruction)


@remembered
def _calls_and_appliers(entry: Computation) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """The custom calls that every run executes, and the ops that apply computations to elements; none without calls."""
    every = [i for c in entry.reachable() for i in c.instructions]
    if all(i.opcode != "custom_call" for i in every):
        return (), ()
    return certain(entry), tuple(i for i in every if i.opcode in _APPLYING and i.called)


def certain(entry: Computation) -> tuple[Instruction, ...]:
    """The custom calls that every run executes: live ones outside of every conditional, loop and scan."""
    calls: list[Instruction] = []
    seen, stack = {entry}, [entry]
    while stack:
        computation = stack.pop()
        needed = live(computation)
        for instruction in computation.instructions:
            if instruction in needed and instruction.opcode == "custom_call":
                calls.append(instruction)
            elif instruction in needed and instruction.opcode in _ALWAYS:
                stack += [called for called in instruction.called if called not in seen]
                seen |= {*instruction.called}
    return tuple(calls)


_PYTHON = (
    "it calls a function of the Python process that lowered the text, as jax.pure_callback and io_callback do; the "
    "text does not contain this function, so define it again: it takes the operands and returns a tuple of arrays"
)
_KERNEL = (
    "XLA has replaced an op with a backend kernel; use the text from before XLA's passes, which still contains the op"
)

_KNOWN = {
    "xla_ffi_python_": _PYTHON, "xla_python_": _PYTHON, "__cublas$": _KERNEL, "__cudnn$": _KERNEL,
    "__onednn$": _KERNEL,
}  # fmt: skip
"""Explanations of targets that the interpreter cannot run, by the prefix of the target."""


def check_target(instruction: Instruction) -> None:
    """Refuse a custom call whose target is not registered."""
    target = instruction.attributes.custom_call_target
    if target in CALLBACKS or target in BUILT_IN or _stand_in.get() is not None or is_skipped(instruction):
        return
    close = difflib.get_close_matches(target, [*CALLBACKS, *BUILT_IN], 1)
    known = [hint for beginning, hint in _KNOWN.items() if target.startswith(beginning)]
    raise _refusal(
        "unregistered_target",
        instruction,
        f"no function is registered for custom_call_target {target!r}",
        f"register a function with the decorator @xb.custom_call_target({target!r})",
        *(known or [f"did you mean {guess!r}?" for guess in close]),
    )


def _refuse_calls_inside(instruction: Instruction) -> None:
    for called in instruction.called:
        inner = next(_calls_in(called), None) if communicates(called) else None
        if inner is not None:
            raise _refusal(
                "disallowed_computation",
                inner,
                f"it is in %{called.name}, which %{instruction.name} applies to each element; custom calls are "
                "allowed only in the entry computation and in computations that a call, fusion, while, conditional "
                "or scan runs",
            )


def _calls_in(computation: Computation) -> Iterator[Instruction]:
    """The custom calls that a computation reaches, but for those that state a placement."""
    every = (i for c in computation.reachable() for i in c.instructions)
    return (i for i in every if i.opcode == "custom_call" and not is_same(i))


def _refusal(kind: str, instruction: Instruction, message: str, *hints: str) -> CustomCallError:
    lines = [
        f"custom-call %{instruction.name}: {message} [{kind}]",
        *([f"  at {instruction.source}"] if instruction.source else []),
    ]
    error = CustomCallError(kind, "\n".join(lines), hints)
    error.message = message
    return error
