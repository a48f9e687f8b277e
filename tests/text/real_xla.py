"""What real XLA's reader says against texts, asked in a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

_PARSE = """
import json, sys
from jaxlib import _hlo
for line in sys.stdin:
    try:
        _hlo.hlo_module_from_text(json.loads(line))
        print(json.dumps(""), flush=True)
    except Exception as error:
        print(json.dumps(str(error)[:2000]), flush=True)
"""


def refusals(texts: Sequence[str]) -> list[str]:
    """For each text what real XLA says against it, "" where it reads it; in a child process, which may die."""
    said: list[str] = []
    while len(said) < len(texts):
        lines = "".join(f"{json.dumps(text)}\n" for text in texts[len(said) :])
        child = subprocess.run([sys.executable, "-c", _PARSE], input=lines, capture_output=True, text=True, check=False)
        said += map(json.loads, child.stdout.splitlines())
        if child.returncode:
            said.append(f"died with {child.returncode}: {child.stderr[-500:]}")
    return said
