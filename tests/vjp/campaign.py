"""At length: the derivative of every function of the suite against jax.vjp in f64.

`python -m tests.vjp.campaign`, with `--only WORD ...` for the entries whose names have one of these words.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from .jax_suite.child import verdicts
from .jax_suite.reasons import DIFFERENT, REFUSED, settled
from .jax_suite.table import ENTRIES, group_of


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    words = parser.parse_args(arguments).only
    counts: dict[str, Counter[str]] = {}
    met: set[str] = set()
    for name, verdict, opcodes in verdicts([name for name in ENTRIES if any(word in name for word in words)]):
        kind = settled(name, verdict)
        counts.setdefault(group_of(name), Counter())[kind] += 1
        met |= set(opcodes)
        if kind != "equal":
            print(f"{kind}  {name}: {(DIFFERENT | REFUSED).get(name, '')}\n    {verdict}", flush=True)
    for group, row in counts.items():
        print(f"{group:16} {row.total():5}  {dict(row)}")
    total = sum(counts.values(), Counter[str]())
    print(f"{'all':16} {total.total():5}  {dict(total)}")
    print(f"opcodes in the functions: {', '.join(sorted(met))}")
    return 1 if total["unexplained"] else 0


if __name__ == "__main__":
    sys.exit(main())
