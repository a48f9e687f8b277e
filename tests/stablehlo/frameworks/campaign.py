"""Programs of frameworks, read natively and through jaxlib's conversion to HLO: the same results bit for bit?

python -m tests.stablehlo.frameworks.campaign FILE.jsonl...: lines with a name, a form and a StableHLO text, as `emit`
and `tf_emit` write them. Both readings run in the interpreter with the same random arguments; what differs is listed.
With --writing the program is written, too, and that text is read both ways and run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import compatible
from tests.fuzzing.verdict import Hang, bounded
from tests.stablehlo.frameworks.conversion import converted
from xbuild.files.arrays import leaf_values, random_arguments
from xbuild.stablehlo.reading.reader import parse_stablehlo

SECONDS = 60.0
SAME, NO_CONVERSION = "the same", "jaxlib does not convert it"


def records(paths: list[Path], every: int, words: str) -> list[dict[str, str]]:
    """The lines of the files whose name has all words, or each n-th of them."""
    found = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return [each for each in found if all(word in each["name"] for word in words.split())][::every]


def results(module: xb.Module, arguments: list[list[Any]]) -> list[Any]:
    limits = xb.Limits(seconds=SECONDS)
    return xb.execute(module, arguments, limits=limits)


def flat(module: xb.Module, values: list[Any]) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for value in values for leaf, _ in leaf_values(value, module.entry.root.shape)]


def verdict(text: str, hlo: str, again: str = "") -> str:
    """What the two readings of a text come to; `again` is what jaxlib makes of the text written for it."""
    try:
        native = parse_stablehlo(text)
    except xb.HloParseError as error:
        return f"not read: {_first(error)}"
    if hlo.startswith("!"):
        return f"{NO_CONVERSION}: {hlo[1:80]}"
    try:
        other = xb.parse_hlo(hlo, replicas=native.num_replicas, partitions=native.num_partitions)
    except xb.HloParseError as error:
        return f"its HLO is not read: {_first(error)}"
    found = compared(native, other)
    return rewritten(native, again) if again and found.startswith(SAME) else found


def compared(native: xb.Module, other: xb.Module) -> str:
    """What runs of two modules on the same random arguments come to."""
    shapes = [[p.shape for p in native.entry.parameters]] * native.num_devices
    theirs_shapes = [p.shape for p in other.entry.parameters]
    if len(theirs_shapes) != len(shapes[0]) or not all(map(compatible, shapes[0], theirs_shapes)):
        return "the parameters differ"
    arguments = random_arguments(0, shapes)
    ours, theirs = _outcome(native, arguments), _outcome(other, arguments)
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"{SAME}: {ours}" if ours == theirs else f"runs end otherwise: {str(ours)[:60]}; {str(theirs)[:60]}"
    return SAME if _alike(ours, theirs) else _difference(ours, theirs)


def rewritten(native: xb.Module, hlo: str) -> str:
    """What the text that is written for a module comes to, read natively and, as `hlo`, through jaxlib."""
    counts = {"replicas": native.num_replicas, "partitions": native.num_partitions}
    try:
        back = parse_stablehlo(native.to_stablehlo(), **counts)
        other = None if hlo.startswith("!") else xb.parse_hlo(hlo, **counts)
    except xb.XbuildError as error:
        return f"written: {_first(error)}"
    if other is None:
        return f"written: jaxlib refuses it: {hlo[1:120]}"
    outcomes = (compared(native, back), compared(native, other))
    return next((f"written: {each}" for each in outcomes if not each.startswith(SAME)), SAME)


def written(text: str) -> str:
    """The text that is written for what a text is read as; none where it is not read or cannot be written."""
    try:
        return parse_stablehlo(text).to_stablehlo()
    except xb.XbuildError:
        return ""


def _outcome(module: xb.Module, arguments: list[list[Any]]) -> list[Any] | str:
    """The results of a run, or why there are none."""
    try:
        return flat(module, results(module, arguments))
    except (xb.XbuildError, xb.Refused, xb.Stopped) as error:
        return " ".join([type(error).__name__, *str(error).split()[:8]])


def _alike(ours: list[Any], theirs: list[Any]) -> bool:
    return len(ours) == len(theirs) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(ours, theirs, strict=True)
    )


def _difference(ours: list[Any], theirs: list[Any]) -> str:
    if [(a.dtype, a.shape) for a in ours] != [(b.dtype, b.shape) for b in theirs]:
        return "the results have other shapes"
    apart = 0.0
    for a, b in zip(ours, theirs, strict=True):
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        one, other = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            gaps = np.abs(one - other) / np.maximum(np.abs(other), 1e-30)
        gaps[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
        apart = max(apart, float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0)))
    return f"the results differ: by {apart:.1g}" if apart else "the results differ: in zeros or NaN"


def _first(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return (lines[0].partition(": ")[2] if lines else "")[:150]


def _judged(record: dict[str, str], hlo: str, again: str) -> str:
    try:
        with bounded(SECONDS):
            return verdict(record["text"], hlo, again)
    except Hang:
        return "wrong: it comes to no end"
    except Exception as error:
        return f"wrong: {type(error).__name__}: {str(error)[:100]}"


def judged(found: list[dict[str, str]], seconds: float, writes: bool) -> Iterator[tuple[dict[str, str], str]]:
    begin = time.monotonic()
    texts = converted(each["text"] for each in found)
    others = converted(written(each["text"]) for each in found) if writes else itertools.repeat("")
    for record, hlo, again in zip(found, texts, others, strict=False):
        yield record, _judged(record, hlo, again)
        if time.monotonic() - begin > seconds:
            return


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stablehlo.frameworks.campaign", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take each n-th text")
    parser.add_argument("--words", default="", help="words that the name of a program has to have")
    parser.add_argument("--writing", action="store_true", help="write each program, and read that text both ways")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    chosen = parser.parse_args(arguments)
    counts, wrong = Counter[str](), 0
    for record, outcome in judged(records(chosen.files, chosen.every, chosen.words), chosen.seconds, chosen.writing):
        counts[outcome.partition(":")[0]] += 1
        if not outcome.startswith((SAME, NO_CONVERSION)):
            wrong += 1
            print(f"{record['name']} ({record['form']}): {outcome}", flush=True)
    print(*(f"{what:40} {count:6}" for what, count in counts.most_common()), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
