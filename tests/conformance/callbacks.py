"""The host callback of a deadlock case: a custom call with a side effect, which on some devices never returns."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import xbuild as xb
from xbuild.op import OPS

if TYPE_CHECKING:
    from tests.conformance.deadlock_data import Item
    from tests.conformance.deadlock_programs import Writer

TARGET = "deadlock_case_host_callback"


def callback(data: Any) -> Any:
    """Return, unless the last number of the data says that this device hangs."""
    while data[-1]:
        time.sleep(0.01)
    return np.float32(0)


def host_callback(writer: Writer, item: Item) -> xb.Value:
    """The custom call; made by hand as long as xbuild has no such op."""
    if hasattr(xb, "custom_call_target"):
        xb.custom_call_target(TARGET)(callback)
    attributes = {"shape": xb.f32[()], "custom_call_target": TARGET, "custom_call_has_side_effect": True}
    if "custom_call" in OPS:
        return writer.named(item, xb.ops.custom_call, (writer.data,), **attributes)
    assert writer.data is not None
    operands = (writer.data.instruction,)
    made = xb.Instruction("custom_call", item["name"], xb.f32[()], operands, None, SimpleNamespace(**attributes))
    return writer.keep(made)
