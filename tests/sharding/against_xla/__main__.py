"""`python -m tests.sharding.against_xla [WORD ...]` prints the table of the programs whose names contain a word."""

from __future__ import annotations

import sys

from .rows import rows
from .table import above, summary, table


def main(words: list[str]) -> int:
    found = rows(*words)
    print(table(found), above(found), summary(found), sep="\n\n")
    return 0 if all(each.fault is None for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
