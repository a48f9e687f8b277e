"""Plants faults in programs of a folder or of a file of JAX's tests, and counts those that `xb.lint` finds.

python -m tests.linting.campaign FOLDER PROGRAMS.jsonl.gz --seed 1 --most 400
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import xbuild as xb
from shape_inference import XbuildError
from xbuild.files.targets import load, module_targets

from .planting import FAULTS, finds, is_plain, plant


def modules_in(path: Path) -> Iterator[tuple[str, xb.Module]]:
    """The programs of a folder of HLO texts, or of a file with a JSON object with the text `hlo` on each line."""
    if path.is_dir():
        for file in sorted(each for each in path.iterdir() if ".hlo" in each.name):
            for target in module_targets(str(file)):
                try:
                    module = load(target)
                except ValueError:
                    continue
                if isinstance(module, xb.Module):
                    yield Path(target).name, module
        return
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["hlo"]:
                yield row["id"], xb.parse_hlo(row["hlo"], origins=True)
            if row["devices"] == 1:
                yield f"{row['id']} as lowered", xb.parse_stablehlo(row["stablehlo"])


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=100, help="the number of faults to plant")
    parser.add_argument("--largest", type=int, default=5_000, help="the instructions of the largest program")
    parser.add_argument("--clean", action="store_true", help="lint the programs as they are, and print the reports")
    options = parser.parse_args(given)
    found_modules = [pair for path in options.paths for pair in modules_in(path)]
    modules = [
        (name, module)
        for name, module in found_modules
        if sum(len(each.instructions) for each in module.entry.reachable()) <= options.largest
    ]
    if options.clean:
        return _clean(modules)
    generator = random.Random(options.seed)
    planted, found = Counter[str](), Counter[str]()
    places = [(fault, name, module) for name, module in modules if is_plain(module) for fault in FAULTS]
    generator.shuffle(places)
    rounds: dict[str, list[tuple[str, xb.Module]]] = {}
    for fault, name, module in places:
        rounds.setdefault(fault, []).append((name, module))
    while sum(planted.values()) < options.most and any(rounds.values()):
        for fault, left in rounds.items():
            seed = generator.randrange(1 << 30)
            while left and sum(planted.values()) < options.most:
                name, module = left.pop()
                one = plant(module, fault, seed)
                if one is None:
                    continue
                planted[fault] += 1
                report = xb.lint(one.program)
                if finds(report, one):
                    found[fault] += 1
                else:
                    is_small = finds(xb.lint(one.program, least=0), one)
                    print(f"missed{' below the least share' * is_small}: {fault} in {name}, seed {seed}", flush=True)
                break
    for fault in FAULTS:
        print(f"{fault:24}{found[fault]:5} of {planted[fault]}")
    print(f"{'all':24}{found.total():5} of {planted.total()}")
    return int(found.total() < planted.total())


def _clean(modules: list[tuple[str, xb.Module]]) -> int:
    rules = Counter[str]()
    for name, module in modules:
        try:
            report = xb.lint(module)
        except XbuildError as error:
            print(f"{name}: {error}")
            continue
        rules.update(each.rule for each in report.issues)
        if not report:
            print(f"{name}\n{report}\n")
    print(f"{rules.total()} issues in {len(modules)} programs: {dict(rules)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
