"""JAX in a process of its own, which judges one entry after the other: names in, verdicts out."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from .entry import Entry

_ROOT = Path(__file__).parents[3]


def verdicts(names: Iterable[str], times: int = 1) -> Iterator[tuple[str, str, list[str]]]:
    """The verdict on each entry, and the opcodes of its function.

    A child that dies of an entry is followed by another for the rest.
    """
    left = list(names)
    while left:
        with subprocess.Popen(
            [sys.executable, "-m", __name__, str(times)],
            cwd=_ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("\n".join(left) + "\n")
            child.stdin.close()
            for line in child.stdout:
                name, verdict, opcodes = line.rstrip("\n").split("\t")
                assert name == left[0], (name, left[0])
                yield left.pop(0), verdict, opcodes.split()
        if left and child.returncode:
            yield left.pop(0), f"failed: the process ended with {child.returncode}", []
        elif left:
            raise RuntimeError(f"the child ended before {left[0]!r}")


def main() -> None:
    from .table import ENTRIES

    for name in sys.stdin.read().splitlines():
        verdict, opcodes = _judged(ENTRIES[name], int(sys.argv[1]))
        print(name, " ".join(verdict.split()), " ".join(sorted(opcodes)), sep="\t", flush=True)


def _judged(entry: Entry, times: int) -> tuple[str, set[str]]:
    from .judge import judged

    try:
        return judged(entry, times)
    except Exception:
        return "failed: " + " | ".join(traceback.format_exc().splitlines()[-12:]), set()


if __name__ == "__main__":
    main()
