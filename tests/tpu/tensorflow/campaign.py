"""Random calls through real TensorFlow and xb.tpu: `python -m tests.tpu.tensorflow.campaign PYTHON --calls N --seed S`.

PYTHON is that of an environment with tensorflow-cpu.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.tpu.tensorflow.calls import drawn
from tests.tpu.tensorflow.known import reason
from tests.tpu.tensorflow.ours import outcome

Call = dict[str, Any]


def real(python: str, calls: list[Call]) -> list[dict[str, Any]]:
    """What TensorFlow makes of the calls."""
    child = [python, str(Path(__file__).with_name("child.py"))]
    lines = "".join(f"{json.dumps(call)}\n" for call in calls)
    done = subprocess.run(child, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def judged(call: Call, wanted: dict[str, Any], came: dict[str, Any]) -> str:
    """refused, alike, or known: why they differ, or DIFFERENT."""
    if "error" in wanted and "error" in came:
        return "refused"
    if wanted == came:
        return "alike"
    why = reason(call, wanted, came)
    return f"known: {why}" if why else "DIFFERENT"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tpu.tensorflow.campaign", description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print both messages of what both refuse")
    given = parser.parse_args(arguments)
    calls = drawn(given.seed, given.calls)
    counts: Counter[str] = Counter()
    for call, wanted in zip(calls, real(given.python, calls), strict=True):
        came = outcome(call)
        found = judged(call, wanted, came)
        counts[found] += 1
        if found == "DIFFERENT" or (given.show and found == "refused"):
            print(json.dumps(call), wanted, came, sep="\n  ", end="\n\n")
    print(*(f"{number:6}  {what}" for what, number in counts.most_common()), sep="\n")
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
