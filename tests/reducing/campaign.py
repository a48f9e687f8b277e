"""Long searches: `python -m tests.reducing.campaign CASES [deadlocks|crashes|differences]`.

Deadlocks of XLA's verifier and texts on which XLA dies are hidden in XLA's programs and reduced; faults are planted in
programs of the corpus and bisected. Each line is a case; the last one has the medians.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import xbuild as xb
from tests.reducing.hiding import hidden, hidden_text
from tests.reducing.planting import faulty, places
from xbuild.core.graph import Module
from xbuild.files.arrays import random_arguments
from xbuild.reducing import minimize_text
from xbuild.running import engines

SECONDS = 120.0
LARGEST = 40_000
"""The bytes of the largest compressed program in which a fault is hidden."""

Row = tuple[str, int, float]


def hosts(cases: Path) -> Iterator[tuple[str, str]]:
    """The programs, by name, that are one module."""
    for file in sorted((cases / "xla_programs").glob("*.hlo.gz")):
        text = gzip.decompress(file.read_bytes()).decode()
        if file.stat().st_size <= LARGEST and text.count("HloModule ") == 1:
            yield file.name.removesuffix(".hlo.gz"), text


def deadlocks(cases: Path) -> Iterator[Row]:
    """What XLA's verifier refuses, hidden in each program: those that a check can refuse."""
    for case in json.loads((cases / "xla_deadlock.json").read_text())["cases"]:
        try:
            fault = xb.parse_hlo(case["text"])
        except xb.HloParseError:
            continue
        for name, text in hosts(cases) if case["xla"] == "refused" else ():
            try:
                module = hidden(fault, xb.parse_hlo(text))
                kind = xb.check(module).findings[0].kind
                found = xb.minimize(module, f"refused {kind}", seconds=SECONDS)
            except xb.HloParseError as error:  # groups of the host do not fit the devices of the fault
                print(name, case["id"], error.kind)
                continue
            yield f"{name} {case['id']} {kind}: {found.summary}", found.after, found.seconds


def crashes(cases: Path) -> Iterator[Row]:
    """The ten shortest texts on which XLA's parser dies, hidden in two programs."""
    texts = json.loads(gzip.decompress((cases / "xla_texts.json.gz").read_bytes()))["cases"]
    died = sorted((case["text"] for case in texts if case["xla"] == "died"), key=len)[:10]
    for name, text in hosts(cases):
        for number, fault in enumerate(died) if name.startswith(("cpu_dlrm", "cpu_diffrax")) else ():
            found = minimize_text(hidden_text(fault, text), "xla crashes", seconds=SECONDS)
            yield f"{name} {number}: {found.summary}", found.after, found.seconds


def differences(cases: Path) -> Iterator[Row]:
    """Faults planted in programs of the corpus, on the interpreter as a second engine: 0 where they are found."""
    chance = random.Random(0)
    files = sorted((cases / "hlo_corpus").glob("*.hlo"))
    for file in chance.sample(files, len(files)):
        module = xb.parse_hlo(file.read_text())
        names = [*places(module)]
        if len(names) < 4 or xb.check(module).refused:
            continue
        yield from planted(file.name, module, chance.sample(names, 2))


def planted(name: str, module: Module, names: list[str]) -> Iterator[Row]:
    given = random_arguments(1, [[each.shape for each in module.entry.parameters]] * module.num_devices)
    for place in names:
        try:
            found = engines.bisect(module, given, xb.execute, faulty(place))
        except (xb.Stopped, engines.EngineError) as error:
            print(name, place, str(error).partition("\n")[0])
            continue
        if found is not None:
            is_found = found.instruction.name == place
            yield f"{name} {place}: {found.instruction.name}, {found.runs} runs", int(not is_found), 0.0


SEARCHES = {"deadlocks": deadlocks, "crashes": crashes, "differences": differences}


def main(cases: str, *chosen: str) -> None:
    for name in chosen or SEARCHES:
        rows = []
        for line, number, seconds in SEARCHES[name](Path(cases)):
            print(line, flush=True)
            rows.append((number, seconds))
        numbers, seconds_of = zip(*rows, strict=True)
        print(
            f"{name}: {len(rows)} cases, median {statistics.median(numbers):g}, most {max(numbers)}, "
            f"median {statistics.median(seconds_of):.1f} s, most {max(seconds_of):.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
