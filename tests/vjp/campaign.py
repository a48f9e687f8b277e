"""At length: every function of the suite against jax.vjp in f64, then the cases of the rules on real XLA, and twice.

`python -m tests.vjp.campaign`, with `--only WORD ...` for those whose names have one of these words, and `--second`
for the second derivatives of the suite.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from . import on_xla
from .jax_suite.child import verdicts
from .jax_suite.reasons import REFUSED, TWICE, settled
from .jax_suite.table import ENTRIES, group_of
from .numeric import check
from .rules.test_twice import CASES


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    parser.add_argument("--second", action="store_true")
    chosen = parser.parse_args(arguments)
    words, times = chosen.only, 1 + chosen.second
    counts: dict[str, Counter[str]] = {}
    met: set[str] = set()
    for name, verdict, opcodes in verdicts([name for name in ENTRIES if any(word in name for word in words)], times):
        kind = settled(name, verdict, times)
        counts.setdefault(group_of(name), Counter())[kind] += 1
        met |= set(opcodes)
        if kind != "equal":
            print(f"{kind}  {name}: {(TWICE | REFUSED).get(name, '')}\n    {verdict}", flush=True)
    for group, row in counts.items():
        print(f"{group:16} {row.total():5}  {dict(row)}")
    total = sum(counts.values(), Counter[str]())
    print(f"{'all':16} {total.total():5}  {dict(total)}")
    print(f"opcodes in the functions: {', '.join(sorted(met))}")
    return 1 if total["unexplained"] + _on_xla(words) + _twice(words) else 0


def _on_xla(words: list[str]) -> int:
    """The programs of cotangents of the cases of the rules' tests: how many give other numbers on real XLA."""
    chosen = [case for case in CASES if any(word in case.name for word in words)]
    counts = Counter[str]()
    for case, verdict in on_xla.verdicts(chosen) if chosen else ():
        counts[verdict.partition(":")[0]] += 1
        if verdict not in ("equal", "not on CPU"):
            print(f"on XLA  {case}: {verdict}")
    print(f"{'on XLA':16} {counts.total():5}  {dict(counts)}")
    return counts["different"] + counts["failure"]


def _twice(words: list[str]) -> int:
    """The same, differentiated once more, against numeric derivatives: how many are wrong."""
    wrong, chosen = 0, [case for case in CASES if any(word in case.name for word in words)]
    for case in chosen:
        try:
            check(case, times=2)
        except AssertionError as error:
            wrong += 1
            print(f"twice   {case}: {error}")
    print(f"{'twice':16} {len(chosen):5}  {{'wrong': {wrong}}}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
