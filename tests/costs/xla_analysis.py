"""The cost analysis of XLA on HLO text, in a child process, which may die without taking the tests along."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

_PROGRAM = """
import json, sys
import jax
from jaxlib import _hlo, _jax
client = jax.devices("cpu")[0].client
for text in json.load(sys.stdin):
    found = _jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text))
    print(json.dumps([found.get(key, 0) for key in ("flops", "transcendentals", "bytes accessed")]), flush=True)
"""


def analysed(texts: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """FLOPs, transcendentals and bytes of each text; None of one at which the analysis of XLA aborts the process."""
    found: list[tuple[int, int, int] | None] = []
    while len(found) < len(texts):
        rest = json.dumps(texts[len(found) :])
        done = subprocess.run([sys.executable, "-c", _PROGRAM], input=rest, capture_output=True, text=True)
        found += [tuple(map(int, json.loads(line))) for line in done.stdout.splitlines()]
        if done.returncode > 0:
            raise RuntimeError(done.stderr)
        found += [None] * (done.returncode < 0)
    return found
