"""Campaign: random instances of every op in every element type, computed by the interpreter and by real XLA.

Round n of seed s draws one instance for each cell of the table of ops and types, and feeds it with several values; an
instance is told by seed, round, op, type and the number of its values alone, so that each can be drawn again.
NumPy's generator draws, and not hypothesis: a module takes a second to compile and a hundredth of it to run, so that
many instances share one, which is halved where it fails; a single op on a few elements is small as it is.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from shape_inference import PRIMITIVES
from xbuild.core.op import OPS

from . import Oracle
from .chance import Chance
from .draw import DRAWS, FAMILIES
from .instance import Instance, leaves
from .judge import Finding, findings
from .probe import probe
from .record import Record

PER_MODULE, VARIANTS = 64, 40


def instance(seed: int, number: int, opcode: str, type_name: str, data: int = 0) -> Instance:
    """The one that round `number` of the seed draws, with the values of this number."""
    with np.errstate(all="ignore"):
        words = zlib.crc32(opcode.encode()), zlib.crc32(type_name.encode())
        return DRAWS[opcode](Chance(seed, number, *words, data=data), PRIMITIVES[type_name])


def round_of(
    seed: int, number: int, record: Record, opcodes: Collection[str] = OPS, variants: int = 1
) -> Iterator[list[list[Instance]]]:
    """The round's instances in groups for one module each, of one family and on equally many devices: all variants."""
    for draws in FAMILIES.values():
        cells = [(opcode, name) for opcode in draws if opcode in opcodes for name in record.runnable(opcode)]
        drawn = [[instance(seed, number, *cell, data) for data in range(variants)] for cell in cells]
        for _, group in itertools.groupby(sorted(drawn, key=_devices), _devices):
            rows = list(group)
            for start in range(0, len(rows), PER_MODULE):
                yield list(map(list, zip(*rows[start : start + PER_MODULE], strict=True)))


def _devices(variants: list[Instance]) -> tuple[int, int, bool]:
    """What one module has in common; types of two bits have one of their own, since XLA:CPU may write beside them."""
    first = variants[0]
    two_bits = any(array.dtype.name in ("int2", "uint2") for array in leaves(first.operands))
    return first.num_replicas, first.num_partitions, two_bits


def compared(
    seed: int, number: int, record: Record, oracle: Oracle, opcodes: Collection[str] = OPS, variants: int = 1
) -> Iterator[Finding]:
    """What comes of a round."""
    with np.errstate(all="ignore"):
        for group in round_of(seed, number, record, opcodes, variants):
            yield from findings(group, oracle)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, default=0, help="the first round")
    parser.add_argument("--variants", type=int, default=VARIANTS, help="how many values for each module")
    parser.add_argument("--only", nargs="*", default=list(OPS), metavar="OPCODE")
    parser.add_argument("--probe", action="store_true", help="find out anew what XLA:CPU runs, and keep it")
    parser.add_argument("--keep", action="store_true", help="add the counts to the record")
    chosen = parser.parse_args(arguments)
    record = Record.read()
    if chosen.probe:
        probe(record, chosen.only)
        record.write()
    return run(record, chosen)


def run(record: Record, chosen: argparse.Namespace) -> int:
    """Rounds until the time is over, the last one perhaps not to its end; 1 where something is left unexplained."""
    end, counts, number = time.monotonic() + chosen.seconds, Counter[str](), chosen.round
    with Oracle() as oracle:
        while time.monotonic() < end:
            for finding in compared(chosen.seed, number, record, oracle, chosen.only, chosen.variants):
                counts[finding.kind] += 1
                record.add(finding)
                if not finding.is_explained:
                    counts["unexplained"] += 1
                    print(f"seed {chosen.seed}, round {number}: {finding}", flush=True)
                if time.monotonic() > end:
                    break
            number += 1
    print("\n".join(f"{kind:24} {count:8}" for kind, count in counts.items()))
    wrong = counts.pop("unexplained", 0)
    if chosen.keep and not wrong:
        rounds = {"seed": chosen.seed, "rounds": [chosen.round, number], "variants": chosen.variants}
        record.runs.append({**rounds, "instances": counts.total()})
        record.write()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
