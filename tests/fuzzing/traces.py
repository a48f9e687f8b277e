"""Campaign over tampered traces: each field of the index, each column and each file of small traces is changed."""

from __future__ import annotations

import argparse
import io
import itertools
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from interpreter.tracing import across_in, origins_in
from tests.fuzzing.trace_edits import Tamperer
from tests.fuzzing.trace_seeds import seeds, written
from tests.fuzzing.verdict import Hang, bounded
from tests.support.facts import internals
from xbuild.cli.trace import overview
from xbuild.pages import page_text
from xbuild.stepping import Shell
from xbuild.traces import Trace, TraceError
from xbuild.traces.questions import compare_traces

SECONDS = 10
COMMANDS = "\n".join(
    ("where", "program", "list", "devices", "print", "next", "until any(isnan(v))", "to end", "back 2", "trip 1",
     "diff 0 1", "part 0 1", "print max(v)", "")
)  # fmt: skip


def verdict(place: Path) -> str:
    """`read`, where all that reads a trace can do so, or `refused` in a sentence; what is raised else is wrong."""
    try:
        found = Trace.load(place)
    except TraceError as error:
        text = str(error)
        assert len(text) < 5000, f"a sentence of {len(text):,} characters"
        assert text.startswith(repr(str(place))), text
        assert not internals(text.replace(str(place), "").partition("program-")[0]), text
        return "refused"
    overview(found)
    page_text(evolve(found, origins=origins_in(found), across=across_in(found)))
    out = io.StringIO()
    Shell(found, io.StringIO(COMMANDS), out).cmdloop()
    compare_traces(found, found)
    return "read"


def wrong(seed: int, place: Path) -> tuple[str, str]:
    """What a tampered trace comes to, and what is wrong with that, which mostly is nothing."""
    tamperer = Tamperer(seed)
    name, files = tamperer.files()
    written(files, place)
    try:
        with bounded(SECONDS):
            return verdict(place), ""
    except Hang:
        return "wrong", f"{name}: {tamperer.changes}: it came to no end"
    except Exception:
        return "wrong", f"{name}: {tamperer.changes}: {traceback.format_exc(limit=-4)}"


def tampered(seeds: Iterable[int]) -> tuple[Counter[str], dict[int, str]]:
    """How many traces came to what, and what was wrong with those of which seeds."""
    counts, found = Counter[str](), {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            outcome, what = wrong(seed, Path(folder, "t"))
            counts[outcome] += 1
            if what:
                found[seed] = what
    return counts, found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.traces", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first trace")
    chosen = parser.parse_args(arguments)
    seeds()
    begin = time.monotonic()
    numbers = itertools.takewhile(lambda _: time.monotonic() < begin + chosen.seconds, itertools.count(chosen.seed))
    counts, found = tampered(numbers)
    for outcome, count in counts.most_common():
        print(f"{outcome:28} {count:8}")
    print(f"{'tampered traces':28} {counts.total():8}   {counts.total() / (time.monotonic() - begin):.0f} a second")
    print(*(f"seed {seed}: {what}" for seed, what in found.items()), f"{'wrong':28} {len(found):8}", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
