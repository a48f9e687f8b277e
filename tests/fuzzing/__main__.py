"""Campaign over all readers: huge, mutated and coverage-guided HLO texts, files of arrays, command lines."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from tests.fuzzing.archives import Archives
from tests.fuzzing.commands import Commands, place
from tests.fuzzing.mutations import Mutator, corpus, one_of_each
from tests.fuzzing.vast import vast
from tests.fuzzing.verdict import SECONDS, Hang, bounded, verdict

from . import archives, bytecode, commands, growth, mlir

VAST = 10_000_000
Found: TypeAlias = tuple[Counter[str], dict[int, str]]
CHARACTERS = 50_000  # in a second, on a slow machine


def wrong(text: str | bytes) -> tuple[str, str]:
    """What a text comes to, and what is wrong with that, which mostly is nothing."""
    return judged(lambda: verdict(text), SECONDS + len(text) / CHARACTERS)


def judged(verdict: Callable[[], str], seconds: float) -> tuple[str, str]:
    """A verdict, and what is wrong where there is none."""
    try:
        with bounded(seconds):
            return verdict(), ""
    except Hang:
        return "wrong", "it came to no end"
    except Exception:
        return "wrong", traceback.format_exc(limit=-3)


def mutated(seeds: Iterable[int]) -> Found:
    """How many texts came to what, and what was wrong with those of which seeds."""
    texts = [*corpus(), *one_of_each()]
    return counted(lambda seed: wrong(Mutator(seed, texts).text()), seeds)


def archived(seeds: Iterable[int]) -> Found:
    """The same of files of arrays."""
    return counted(lambda seed: judged(lambda: archives.verdict(Archives(seed).file()), SECONDS), seeds)


def commanded(seeds: Iterable[int]) -> Found:
    """The same of command lines."""
    with place() as where:
        return counted(lambda seed: judged(lambda: commands.verdict(Commands(seed).line(), where), SECONDS), seeds)


def counted(judge: Callable[[int], tuple[str, str]], seeds: Iterable[int]) -> Found:
    counts, found = Counter[str](), {}
    for seed in seeds:
        outcome, what = judge(seed)
        counts[outcome] += 1
        if what:
            found[seed] = what
    return counts, found


def in_mlir(seeds: Iterable[int]) -> Found:
    """The same of StableHLO texts."""
    texts = mlir.texts()
    return counted(lambda seed: judged(lambda: mlir.verdict(mlir.mutant(seed, texts)), SECONDS), seeds)


def grown(seeds: Iterable[int]) -> Found:
    """The same of small texts that could cost far more than their length."""
    return counted(lambda seed: judged(lambda: growth.verdict(growth.text(seed), seed), growth.SECONDS), seeds)


def in_bytecode(seeds: Iterable[int]) -> Found:
    """The same of MLIR bytecode."""
    given = bytecode.artifacts()
    return counted(lambda seed: judged(lambda: bytecode.verdict(bytecode.mutant(seed, given)), SECONDS), seeds)


READERS = {
    "text": mutated, "mlir": in_mlir, "bytecode": in_bytecode, "npz": archived, "commands": commanded, "growth": grown,
}  # fmt: skip


def guided(seconds: int, seed: int) -> list[str]:
    """What a search led by coverage finds, where it is installed."""
    if importlib.util.find_spec("atheris") is None:
        print("no search led by coverage, for which `pip install atheris` is wanted")
        return []
    with tempfile.TemporaryDirectory() as folder:
        words = ["--seconds", str(seconds), "--seed", str(seed), "--folder", folder]
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzzing.guided", *words], capture_output=True, text=True, check=False
        )
        print("\n".join(line for line in done.stderr.splitlines() if "DONE" in line))
        finds = [f"{path.name}: {path.read_bytes()!r}" for path in Path(folder).glob("finds/*")]
        return finds + ([done.stderr[-3000:]] if done.returncode else [])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each reader, and as many for the led search")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first input of each reader")
    parser.add_argument("--inputs", type=int, help="how many of each reader, in the place of seconds")
    parser.add_argument("--readers", default=",".join(READERS), help="which of them, with commas between")
    parser.add_argument("--vast", type=int, default=VAST, help="the size of vast texts; 0 for none")
    parser.add_argument("--led", action=argparse.BooleanOptionalAction, default=True, help="search led by coverage")
    chosen = parser.parse_args(arguments)
    found = {name: wrong(text)[1] for name, text in vast(chosen.vast).items()} if chosen.vast else {}
    finds = [f"{name}: {what}" for name, what in found.items() if what]
    for reader in chosen.readers.split(","):
        finds += [f"{reader}, seed {seed}: {what}" for seed, what in _searched(reader, chosen).items()]
    finds += guided(int(chosen.seconds), chosen.seed) if chosen.led else []
    print(*finds, f"{'wrong':28} {len(finds):8}", sep="\n")
    return 1 if finds else 0


def _searched(reader: str, chosen: argparse.Namespace) -> dict[int, str]:
    """What is wrong with which inputs of a reader, after a table of what they came to."""
    begin = time.monotonic()
    seeds = itertools.count(chosen.seed)
    counts, found = READERS[reader](
        itertools.islice(seeds, chosen.inputs)
        if chosen.inputs is not None
        else itertools.takewhile(lambda _: time.monotonic() - begin < chosen.seconds, seeds)
    )
    for row, count in counts.most_common():
        print(f"{reader}: {row:28} {count:8}")
    rate = counts.total() / (time.monotonic() - begin)
    print(f"{f'{reader} in all':28} {counts.total():8}, {rate:.0f} a second, seeds {chosen.seed} on", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
