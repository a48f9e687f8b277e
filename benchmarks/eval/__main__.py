"""Print the table of the workloads and training steps: CPU time of NumPy, and ratios of the engines."""

from __future__ import annotations

import argparse
import tempfile
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .children import DEVICES, ROOT, Child, environment, pin

ENGINES = ("numpy", "xbuild", "xla", "jax")
FOLDER = Path(__file__).parent
REPLICATED = ("15a_allreduce_8x4MB", "15b_dp_mlp_8rep")
"""The workloads of eight replicas."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eval", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads, by the start of their names (default: all)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds in which the engines alternate (default: 7)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree whose xbuild is measured (default: this one)")
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"of {', '.join(ENGINES)} (default all)")
    given = parser.parse_args()
    pin()
    with tempfile.TemporaryDirectory() as scratch:
        engines = ["xbuild", *(each for each in given.engines.split(",") if each != "xbuild")]
        measure(given.names, engines, given.rounds, given.tree.resolve(), Path(scratch))


def measure(wanted: list[str], engines: list[str], rounds: int, tree: Path, scratch: Path) -> None:
    own = environment(tree, scratch / "cache")
    children = {engine: Child(FOLDER / "child.py", (engine, str(tree)), own) for engine in engines}
    with_devices = Child(FOLDER / "child.py", ("xla", str(tree)), own | DEVICES)
    names = [name for name in _names() if not wanted or any(map(name.startswith, wanted))]
    print(f"{'workload':26}{'numpy ms':>10}{'xbuild ms':>11}{'/ numpy':>9}{'/ xla':>8}{'/ jax eager':>13}", flush=True)
    rows = []
    try:
        for name in names:
            chosen = children | {"xla": with_devices} if name in REPLICATED and "xla" in children else children
            rows.append(_row(chosen, with_devices, name, rounds, scratch))
            print(_line(name, rows[-1]), flush=True)
    finally:
        for child in (*children.values(), with_devices):
            child.close()
    for what, prefix in (("workloads", "train_"), ("training steps", "")):
        several = [row for name, row in zip(names, rows, strict=True) if name.startswith("train_") != bool(prefix)]
        if several:
            print(_line(f"geometric mean, {len(several)} {what}", _mean(several), 26))


def _names() -> list[str]:
    import sys

    sys.path.insert(0, str(FOLDER))
    from engines import NAMES

    return list(NAMES)


def _row(children: dict[str, Child], lowering: Child, name: str, rounds: int, scratch: Path) -> dict[str, float]:
    """For each engine that runs the workload, its median seconds and the ratio in each round."""
    text = scratch / f"{name}.hlo"
    lowering.ask(do="lower", name=name, text=str(text))
    results: dict[str, Path] = {}
    for engine, child in children.items():
        place = scratch / f"{name}-{engine}.npz"
        tolerance = child.ask(do="prepare", name=name, text=str(text), results=str(place))
        if tolerance is not None:
            results[engine] = place
            _compare(name, engine, results, tolerance)
    times: dict[str, list[float]] = {engine: [] for engine in results}
    for engine in results:
        children[engine].ask(do="run", name=name, count=1)
    for turn in range(rounds):
        order = list(results) if turn % 2 else list(results)[::-1]
        for engine in order:
            times[engine].append(children[engine].ask(do="run", name=name, count=_count(times[engine])))
    for engine in results:
        children[engine].ask(do="forget", name=name)
        results[engine].unlink()
    ours = times["xbuild"]
    found = {engine: median(each) for engine, each in times.items()}
    ratios = {f"/ {e}": median(a / b for a, b in zip(ours, times[e], strict=True)) for e in times if e != "xbuild"}
    return found | ratios


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


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    keys = [key for key in ("/ numpy", "/ xla", "/ jax") if all(key in row for row in rows) or key == "/ jax"]
    given = {key: [log(row[key]) for row in rows if key in row] for key in keys}
    return {key: exp(sum(logs) / len(logs)) for key, logs in given.items() if logs}


def _line(name: str, row: dict[str, Any], width: int = 26) -> str:
    cells = [_cell(row.get("numpy"), 10, 1e3), _cell(row.get("xbuild"), 11, 1e3), _cell(row.get("/ numpy"), 9)]
    return f"{name:{width}}{''.join(cells)}{_cell(row.get('/ xla'), 8)}{_cell(row.get('/ jax'), 13)}"


def _cell(value: float | None, width: int, scale: float = 1) -> str:
    return f"{'-' if value is None else f'{value * scale:.3g}':>{width}}"


if __name__ == "__main__":
    main()
