"""The reader of HLO text at length: vast texts, mutated texts, and texts that coverage leads to."""

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
from collections.abc import Iterable
from pathlib import Path

from tests.fuzzing.mutations import Mutator, corpus, one_of_each
from tests.fuzzing.vast import vast
from tests.fuzzing.verdict import SECONDS, Hang, bounded, verdict

VAST = 10_000_000
CHARACTERS = 50_000  # in a second, on a slow machine


def wrong(text: str | bytes) -> tuple[str, str]:
    """What the text comes to, and what is wrong with that, which mostly is nothing."""
    try:
        with bounded(SECONDS + len(text) / CHARACTERS):
            return verdict(text), ""
    except Hang:
        return "wrong", "it came to no end"
    except Exception:
        return "wrong", traceback.format_exc(limit=-3)


def mutated(seeds: Iterable[int]) -> tuple[Counter[str], dict[int, str]]:
    """How many texts came to what, and what was wrong with those of which seeds."""
    texts = [*corpus(), *one_of_each()]
    counts, found = Counter[str](), {}
    for seed in seeds:
        outcome, what = wrong(Mutator(seed, texts).text())
        counts[outcome] += 1
        if what:
            found[seed] = what
    return counts, found


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
    parser.add_argument("--seconds", type=float, default=60, help="for mutated texts, and as many for the led search")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first text")
    parser.add_argument("--texts", type=int, help="how many mutated texts, in the place of seconds")
    parser.add_argument("--vast", type=int, default=VAST, help="the size of vast texts; 0 for none")
    chosen = parser.parse_args(arguments)
    found = {name: wrong(text)[1] for name, text in vast(chosen.vast).items()} if chosen.vast else {}
    end = time.monotonic() + chosen.seconds
    seeds = itertools.count(chosen.seed)
    counts, mutants = mutated(
        itertools.islice(seeds, chosen.texts)
        if chosen.texts is not None
        else itertools.takewhile(lambda _: time.monotonic() < end, seeds)
    )
    for row, count in counts.most_common():
        print(f"{row:28} {count:8}")
    print(f"{'mutated texts':28} {counts.total():8}")
    finds = [f"{name}: {what}" for name, what in found.items() if what]
    finds += [f"seed {seed}: {what}" for seed, what in mutants.items()] + guided(int(chosen.seconds), chosen.seed)
    print(*finds, f"{'wrong':28} {len(finds):8}", sep="\n")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
