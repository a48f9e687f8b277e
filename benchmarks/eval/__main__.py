"""Print the table of the workloads and training steps: CPU time of NumPy, and ratios of the engines."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from attrs import define

from .children import DEVICES, ROOT, Child, environment, pin

ENGINES = ("numpy", "xbuild", "auto", "xla", "jax")
SLOW_ENGINES = ("stablehlo", "evaluator")
"""Interpreters that are written for correctness; they are measured at the small scale only."""
FOLDER = Path(__file__).parent
REPLICATED = ("15a_allreduce_8x4MB", "15b_dp_mlp_8rep")
"""The workloads of eight replicas."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eval", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads, by the start of their names (default: all)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds in which the engines alternate (default: 7)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree whose xbuild is measured (default: this one)")
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"of {', '.join(ENGINES)} (default all)")
    parser.add_argument(
        "--references",
        action="store_true",
        help="also compare with StableHLO's reference interpreter, at a small scale",
    )
    parser.add_argument(
        "--evaluator", metavar="PYTHON", help="with --references, also HloEvaluator: a Python that has jaxlib 0.4.13"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures to this JSON file")
    given = parser.parse_args()
    pin()
    chosen = given.engines.split(",")
    if given.references:
        chosen = ["xla", "stablehlo", *(["evaluator"] if given.evaluator else [])]
    evaluation = Evaluation(["xbuild", *(each for each in chosen if each != "xbuild")], given.rounds)
    evaluation.tree, evaluation.evaluator = given.tree.resolve(), given.evaluator
    evaluation.scale = "small" if given.references else "full"
    with tempfile.TemporaryDirectory() as scratch:
        evaluation.measure(given.names, Path(scratch), given.save)


@define
class Evaluation:
    """What is measured: engines, of which xbuild is the first, in so many rounds, at a scale."""

    engines: list[str]
    rounds: int
    tree: Path = ROOT
    scale: str = "full"
    evaluator: str | None = None

    def measure(self, wanted: list[str], scratch: Path, save: Path | None = None) -> None:
        """Measure the workloads whose names begin so, print a line for each, and write all figures so far to a file."""
        own = environment(self.tree, scratch / "cache") | {"XDG_CACHE_HOME": str(scratch)}
        children = {engine: self._child(engine, own) for engine in self.engines}
        with_devices = self._child("xla", own | DEVICES)
        names = [name for name in _names() if not wanted or any(map(name.startswith, wanted))]
        if self.scale == "small":
            names = [name for name in names if not name.startswith("train_") and name not in REPLICATED]
        columns = [f"/ {engine}" for engine in self.engines if engine != "xbuild"]
        if "auto" in self.engines:
            columns = [*(c for c in columns if c != "/ auto"), *(f"auto / {e}" for e in ("numpy", "xla", "xbuild"))]
        heads = "".join(f"{column:>{max(9, len(column) + 2)}}" for column in columns)
        print(f"{'workload':26}{'numpy ms':>10}{'xbuild ms':>11}{heads}", flush=True)
        rows: dict[str, dict[str, float]] = {}
        try:
            for name in names:
                chosen = children | {"xla": with_devices} if name in REPLICATED and "xla" in children else children
                rows[name] = self._row(chosen, with_devices, name, scratch)
                print(_line(name, rows[name], columns), flush=True)
                if save is not None:
                    save.write_text(json.dumps({"scale": self.scale, "rows": rows}, indent=1) + "\n")
        finally:
            for child in (*children.values(), with_devices):
                child.close()
        for what, is_step in (("workloads", False), ("training steps", True)):
            several = [row for name, row in rows.items() if name.startswith("train_") == is_step]
            if several:
                print(_line(f"geometric mean, {len(several)} {what}", _mean(several, columns), columns))

    def _child(self, engine: str, own: dict[str, str]) -> Child:
        python = self.evaluator if engine == "evaluator" and self.evaluator else sys.executable
        return Child(FOLDER / "child.py", (engine, str(self.tree)), own, python)

    def _row(self, children: dict[str, Child], lowering: Child, name: str, scratch: Path) -> dict[str, float]:
        """For each engine that runs the workload, its median seconds and the ratio in each round."""
        text = scratch / f"{name}.hlo"
        lowering.ask(do="lower", name=name, text=str(text), scale=self.scale)
        results: dict[str, Path] = {}
        for engine, child in children.items():
            place = scratch / f"{name}-{engine}.npz"
            tolerance = child.ask(do="prepare", name=name, text=str(text), results=str(place), scale=self.scale)
            if tolerance is not None:
                results[engine] = place
                _compare(name, engine, results, tolerance)
        times: dict[str, list[float]] = {engine: [] for engine in results}
        for engine in results:
            children[engine].ask(do="run", name=name, count=1)
        for turn in range(self.rounds):
            order = list(results) if turn % 2 else list(results)[::-1]
            for engine in order:
                times[engine].append(children[engine].ask(do="run", name=name, count=_count(times[engine])))
        for engine in results:
            children[engine].ask(do="forget", name=name)
            results[engine].unlink()
        found = {engine: median(each) for engine, each in times.items()}
        for one in {"xbuild", "auto"} & times.keys():
            for other in times:
                ratio = median(a / b for a, b in zip(times[one], times[other], strict=True))
                found |= {f"/ {other}" if one == "xbuild" else f"auto / {other}": ratio}
        return found


def _names() -> list[str]:
    sys.path.insert(0, str(FOLDER))
    from engines import NAMES

    return list(NAMES)


def _count(before: list[float]) -> int:
    """The number of runs of a program per round, for about 20 milliseconds."""
    return max(1, int(0.02 / max(before[-1], 1e-5))) if before else 1


def _compare(name: str, engine: str, results: dict[str, Path], tolerance: float) -> None:
    """Raise AssertionError if an engine's results differ from the first engine's by more than the tolerance."""
    first = next(iter(results))
    with np.load(results[first]) as known, np.load(results[engine]) as found:
        assert len(known) == len(found), (name, engine, len(known), len(found))
        for key in known:
            scale = max(float(np.abs(known[key]).max(initial=0)), 1e-30)
            wrong = float(np.abs(known[key] - found[key].reshape(known[key].shape)).max(initial=0))
            assert wrong <= tolerance * scale, f"{name}: {engine} differs from {first} by {wrong / scale:.2g}"


def _mean(rows: list[dict[str, float]], columns: list[str]) -> dict[str, float]:
    """The geometric mean of each column, over the rows that have it."""
    given = {column: [log(row[column]) for row in rows if column in row] for column in columns}
    return {column: exp(sum(logs) / len(logs)) for column, logs in given.items() if logs}


def _line(name: str, row: dict[str, Any], columns: list[str]) -> str:
    cells = [_cell(row.get(column), max(9, len(column) + 2)) for column in columns]
    return f"{name:26}{_cell(row.get('numpy'), 10, 1e3)}{_cell(row.get('xbuild'), 11, 1e3)}{''.join(cells)}"


def _cell(value: float | None, width: int, scale: float = 1) -> str:
    return f"{'-' if value is None else f'{value * scale:.3g}':>{width}}"


if __name__ == "__main__":
    main()
