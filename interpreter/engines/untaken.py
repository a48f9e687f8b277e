"""Stand-ins for custom calls that XLA lacks and a run may not execute; a stand-in fails when it is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shape_inference import Shape, leaves
from xbuild.core.graph import Instruction, Module
from xbuild.editing import edit

from ..custom_calls import certain
from .process import Failure

# XLA resolves every target when it compiles, and counts the results of a handler when it runs it.
_LACKED = re.compile(r"(?:untyped custom call to|No FFI handler registered for) (\S+) (?:for|on)\b")
_MISCOUNTED = "Wrong number of results"
_STAND_INS = {"lapack_spotrf_ffi": 2, "lapack_sgetrf_ffi": 3}
"""Handlers of jaxlib, each with the number of its results."""


def uncertain(module: Module) -> list[Instruction]:
    """The custom calls under a conditional, a loop or a scan, which a run may not execute."""
    every = [i for c in module.entry.reachable() for i in c.instructions if i.opcode == "custom_call"]
    needed = set(certain(module.entry))
    return [call for call in every if call not in needed]


def calls_python(call: Instruction) -> bool:
    """Whether a custom call calls back into the Python process that lowered the program."""
    return "_python_" in call.attributes.custom_call_target


def lacked(failure: Failure, calls: Iterable[Instruction]) -> list[Instruction]:
    """The calls whose target XLA's message reports as missing."""
    found = _LACKED.search(failure.message)
    return [call for call in calls if found and call.attributes.custom_call_target == found[1]]


def with_stand_ins(module: Module, calls: Iterable[Instruction]) -> Module:
    """The module with stand-ins for these calls: handlers of jaxlib with another number of results."""
    with edit(module) as editor:
        for call in calls:
            count = sum(isinstance(leaf, Shape) for leaf in leaves(call.shape))
            editor.set_attributes(
                call,
                custom_call_target=next(name for name, results in _STAND_INS.items() if results != count),
                api_version="API_VERSION_TYPED_FFI",
                backend_config="",
            )
    result = editor.result
    assert isinstance(result, Module)
    return result


def reached(failure: Failure, calls: list[Instruction]) -> str | None:
    """The refusal of the custom call whose stand-in the run executed; None where it failed for another reason."""
    if not calls or _MISCOUNTED not in failure.message:
        return None
    told = [
        f"%{call.name} to {call.attributes.custom_call_target!r}{f' ({call.source})' if call.source else ''}"
        for call in calls[:4]
    ]
    more = f" or {len(calls) - 4} more" if len(calls) > 4 else ""
    return f"the run came to a custom call that XLA does not have here: {' or '.join(told)}{more}"
