"""One program on all devices, and a total over them."""

from __future__ import annotations

from typing import Any

import xbuild as xb

# Control flow.


def spmd(body: Any, *shapes: Any, replicas: int = 2, **more: Any) -> xb.Module:
    return xb.Module("m", xb.computation(*shapes)(body), num_replicas=replicas, **more)


def total(x: xb.Value, **attributes: Any) -> xb.Value:
    return xb.ops.all_reduce(x, to_apply=xb.add, **attributes)
