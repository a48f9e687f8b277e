"""The cost analysis of XLA on HLO text, in a child process, which may die without taking the tests along."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import TypeAlias

_PROGRAM = """
import json, sys
import jax
from jaxlib import _hlo, _jax
client = jax.devices("cpu")[0].client
for text in json.load(sys.stdin):
    found = _jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text))
    print(json.dumps([found.get(key, 0) for key in ("flops", "transcendentals", "bytes accessed")]), flush=True)
"""


Figures: TypeAlias = tuple[int, int, int]
"""FLOPs, transcendentals, bytes."""


def analysed(texts: Sequence[str]) -> list[Figures | None]:
    """FLOPs, transcendentals and bytes of each text; None of one at which the analysis of XLA aborts the process."""
    found: list[Figures | None] = []
    while len(found) < len(texts):
        rest = json.dumps(texts[len(found) :])
        done = subprocess.run([sys.executable, "-c", _PROGRAM], input=rest, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            flops, transcendentals, moved = map(int, json.loads(line))
            found.append((flops, transcendentals, moved))
        if done.returncode > 0:
            raise RuntimeError(done.stderr)
        if done.returncode < 0:
            found.append(None)
    return found
