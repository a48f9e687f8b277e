"""Mutated MLIR bytecode: portable artifacts of StableHLO texts, with bytes, numbers and sections changed.

jaxlib writes the artifacts and reads the mutants, each in a process of its own, since it aborts on bad input.
"""

from __future__ import annotations

import random
import subprocess
import sys
from base64 import b64decode
from collections.abc import Sequence
from functools import cache

import xbuild as xb
from tests.fuzzing.mlir import texts

NAME = "fuzzed.mlirbc"
SEEDS = 24
_WRITER = """
import sys
from base64 import b64encode
from jaxlib.mlir.dialects import stablehlo
sys.path.insert(0, sys.argv[1])
from xbuild.stablehlo.reading.bytecode_child import context
from jaxlib.mlir import ir
made = context()
for text in sys.stdin.read().split("\\0"):
    try:
        raw = stablehlo.serialize_portable_artifact(ir.Module.parse(text, made), stablehlo.get_current_version())
    except Exception:
        continue
    print(b64encode(raw).decode())
"""


@cache
def artifacts() -> tuple[bytes, ...]:
    """Portable artifacts of some StableHLO texts, in a fixed order."""
    every = [text for text in texts() if "\0" not in text]
    chosen = "\0".join(every[:: max(1, len(every) // SEEDS)])
    command = [sys.executable, "-c", _WRITER, sys.path[0]]
    done = subprocess.run(command, input=chosen, capture_output=True, text=True, check=True, timeout=300)
    return tuple(map(b64decode, done.stdout.split()))


def mutant(seed: int, seeds: Sequence[bytes]) -> bytes:
    """An artifact with up to four changes; the magic number is kept nearly always."""
    chance = random.Random(seed)
    raw = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 4)):
        first = 0 if chance.random() < 0.05 else min(4, len(raw) - 1)
        at = chance.randrange(first, len(raw))
        end = min(len(raw), at + chance.choice((1, 1, 2, 8, 64)))
        kind = chance.randrange(7)
        if kind == 0:  # one bit
            raw[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            raw[at:at] = chance.randbytes(end - at)
        elif kind == 2:
            del raw[at:end]
        elif kind == 3:  # a section, or a part of one, twice
            place = chance.randrange(first, len(raw))
            raw[place:place] = raw[at:end]
        elif kind == 4:  # a varint of nine bytes: the prefix has no one
            raw[at : at + 1] = b"\0" + chance.choice((b"\xff" * 8, b"\xff" * 7 + b"\x7f", chance.randbytes(8)))
        elif kind == 5:  # a varint of more bytes, with another value
            length = chance.randint(2, 8)
            raw[at : at + 1] = ((chance.getrandbits(7 * length) * 2 + 1) << (length - 1)).to_bytes(length, "little")
        else:
            del raw[at:]
        if len(raw) < 8:
            raw += bytes(8)
    return bytes(raw)


def verdict(raw: bytes) -> str:
    """`read` or the kind of the refusal; AssertionError, or what else came, where it is neither."""
    try:
        module = xb.parse_stablehlo(raw, NAME)
    except xb.HloParseError as refusal:
        told = str(refusal)  # bytes have no line to show
        assert told.startswith(NAME), told
        assert len(told) < 2000, told
        return refusal.kind
    xb.check(module, max_seconds=1)
    return "read"
