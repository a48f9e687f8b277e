"""Code of transfers and custom calls: the plan makes a request, which the grid answers."""

from __future__ import annotations

from ..compiler.requests import emit_request
from ..rules import planned

for _opcode in ("send", "send_done", "recv", "recv_done", "infeed", "outfeed", "custom_call"):
    planned.enter(_opcode, emit_request)
