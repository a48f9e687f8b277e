"""The host callback of a deadlock case: a custom call with a side effect, which on some devices never returns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import xbuild as xb

if TYPE_CHECKING:
    from tests.conformance.deadlock_cases.data import Item
    from tests.conformance.deadlock_cases.writer import Writer

TARGET = "deadlock_case_host_callback"


@xb.custom_call_target(TARGET)
def callback(data: Any) -> Any:
    """Return, unless the last number of the data says that this device hangs."""
    while data[-1]:
        time.sleep(0.01)
    return np.float32(0)


def host_callback(writer: Writer, item: Item) -> xb.Value:
    """The custom call."""
    return writer.named(
        item, xb.custom_call, (writer.data,), custom_call_target=TARGET, shape=xb.f32[()], has_side_effect=True
    )
