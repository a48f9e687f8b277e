"""JAX in a process of its own, which judges one entry after the other: names in, verdicts out."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def verdicts(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The verdict on each entry. A child that dies of one is followed by another for the rest."""
    left = list(names)
    while left:
        with subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=_ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("\n".join(left) + "\n")
            child.stdin.close()
            for line in child.stdout:
                name, _, verdict = line.rstrip("\n").partition("\t")
                if name == left[0]:
                    yield left.pop(0), verdict
        if left and child.returncode:
            yield left.pop(0), f"failed: the process ended with {child.returncode}"


def main() -> None:
    from .judge import judged
    from .table import ENTRIES

    for name in sys.stdin.read().splitlines():
        try:
            verdict = judged(ENTRIES[name])
        except Exception:
            verdict = "failed: " + " | ".join(traceback.format_exc().splitlines()[-12:])
        print(name, " ".join(verdict.split()), sep="\t", flush=True)


if __name__ == "__main__":
    main()
