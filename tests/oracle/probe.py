"""Which ops real XLA:CPU runs in which element types: a few instances of each are tried, and the refusals kept."""

from __future__ import annotations

from collections.abc import Iterable

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType
from xbuild.core.op import OPS

from . import Oracle
from .chance import UNRUN, Chance
from .draw import DRAWS
from .instance import batch
from .judge import findings
from .record import Record, brief

TRIES = 5
SECONDS = 10
IN_ONE_TYPE = ("infeed", "outfeed", "recv", "recv_done", "send", "send_done")
"""What fails for the op's own sake, after a wait: tried in f32, and the reason holds for every type."""


def probe(record: Record, opcodes: Iterable[str] = OPS) -> None:
    """Fill in the cells of these ops; counts of comparisons stay where the op still runs."""
    with Oracle(SECONDS) as oracle:
        for opcode in opcodes:
            row = record.cells.setdefault(opcode, {})
            only = _tried(opcode, PRIMITIVES["f32"], oracle) if opcode in IN_ONE_TYPE else None
            for name, dtype in PRIMITIVES.items():
                if name in UNRUN:
                    continue
                found = only or _tried(opcode, dtype, oracle)
                row[name] = found or {key: n for key, n in row.get(name, {}).items() if isinstance(n, int)}


def _tried(opcode: str, dtype: PrimitiveType, oracle: Oracle) -> dict[str, str]:
    """Why instances do not run, where most do not.

    Of types of two bits, and between devices of all below a byte, any: with them XLA:CPU writes past its buffers.
    """
    reasons: list[dict[str, str]] = []
    for number in range(TRIES):
        instance = DRAWS[opcode](Chance(number), dtype)
        few = 0 if dtype.bits < (8 if instance.devices > 1 else 4) else TRIES // 2
        try:
            batch([instance])
        except xb.XbuildError as error:
            return {"refused": error.kind}
        (finding,) = findings([[instance]], oracle)
        if finding.kind == "failure" or (few == 0 and finding.kind != "equal"):
            reasons.append({"unable": brief(finding.words)})
        if len(reasons) > few:
            return reasons[0]
    return {}
