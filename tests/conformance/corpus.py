"""Programs of HLO text from a folder: read, checked, run on all their devices, and compared with stored outputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference import AnyShape, Shape, TupleShape, leaves
from tests.conformance.reporting import report

Entry = dict[str, Any]


def failure(folder: Path, entry: Entry) -> str | None:
    """What is wrong with how xbuild treats the program, or None."""
    try:
        return _judged(folder, entry)
    except Exception as error:
        if any(target in str(error) for target in _lapack(entry)):
            return None
        return f"{type(error).__name__} came: {_line(error)}"


def _lapack(entry: Entry) -> list[str]:
    """The targets of custom calls that may be refused by name."""
    return [target for target in entry["custom_call_targets"] if target.startswith("lapack_")]


def _judged(folder: Path, entry: Entry) -> str | None:
    text = (folder / entry["file"]).read_text(encoding="utf-8")
    module = xb.parse_hlo(text, entry["file"])
    if found := _printed(module):
        return found
    return None if entry["kind"] == "parse-only" else _counted(entry, module) or _run(folder, entry, module)


def _counted(entry: Entry, module: xb.Module) -> str | None:
    """The devices that a program runs on are those of its header; before partitioning, none are written there."""
    counts = (module.num_replicas, module.num_partitions)
    if counts != (entry["num_replicas"], entry["num_partitions"]):
        return f"{counts} replicas and partitions came, {entry['num_replicas'], entry['num_partitions']} are expected"
    return None


def _printed(module: xb.Module) -> str | None:
    """What is read is printed as text that reads as the same."""
    for style in ("short", "percent", "full"):
        text = module.to_hlo(style=style)
        if xb.parse_hlo(text).to_hlo(style=style) != text:
            return f"its text in style {style} does not read as the same"
    return None


def _run(folder: Path, entry: Entry, module: xb.Module) -> str | None:
    with np.load(folder / entry["inputs_file"]) as stored:
        inputs = dict(stored)
    with np.load(folder / entry["outputs_file"]) as stored:
        outputs = dict(stored)
    rows = [stored_arguments(inputs, device, module.entry) for device in range(module.num_devices)]
    for device, result in enumerate(execute(module, rows)):
        found = _differs(entry, device, result, module.entry.root.shape, outputs)
        if found:
            return found
    return None


def stored_arguments(inputs: dict[str, Any], device: int, computation: xb.Computation) -> list[Any]:
    """The arguments of one device, tuples put together from their leaves."""
    numbers = iter(range(len(inputs)))
    return [_argument(inputs, device, numbers, parameter.shape) for parameter in computation.parameters]


def _argument(inputs: dict[str, Any], device: int, numbers: Iterator[int], shape: AnyShape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_argument(inputs, device, numbers, element) for element in shape.elements)
    number = next(numbers)
    own = f"d{device}_arg{number}"
    return _typed(inputs[own if own in inputs else f"arg{number}"], shape)


def _typed(array: Any, shape: AnyShape) -> Any:
    """An array as stored, in its element type: small floats are stored as bits, small integers as bytes."""
    assert isinstance(shape, Shape)
    wanted = shape.dtype.dtype
    if array.dtype == wanted:
        return array
    if shape.dtype.is_float:
        return array.view(wanted)
    return array.astype(wanted)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in _flat(each)]
    return [] if value is None else [np.asarray(value)]


def _differs(entry: Entry, device: int, result: Any, shape: AnyShape, outputs: dict[str, Any]) -> str | None:
    found = _flat(result)
    expected = [shape for shape in leaves(shape) if isinstance(shape, Shape)]
    if len(found) != len(entry["outputs"]):
        return f"device {device}: {len(found)} results came, {len(entry['outputs'])} are expected"
    for number, (array, leaf) in enumerate(zip(found, expected, strict=True)):
        key = f"d{device}_out{number}"
        wanted = _typed(outputs[key if key in outputs else f"out{number}"], leaf)
        if apart := _apart(array, wanted, entry["tolerance"]):
            return f"device {device}, result {number}: {apart}"
    return None


def _apart(array: Any, wanted: Any, tolerance: dict[str, float]) -> str | None:
    if array.dtype != wanted.dtype or array.shape != wanted.shape:
        return f"{array.dtype}{list(array.shape)} came, {wanted.dtype}{list(wanted.shape)} is expected"
    if wanted.dtype.kind in "biu" or wanted.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        close = array == wanted
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            close = np.isclose(array.astype(wide), wanted.astype(wide), **tolerance, equal_nan=True)
    if np.all(close):
        return None
    place = np.unravel_index(int(np.argmin(close)), wanted.shape)
    return f"at {[int(each) for each in place]} {array[place]!r} came, {wanted[place]!r} is expected"


def _line(text: Any) -> str:
    return next(iter(str(text).splitlines()), "")


def main(arguments: list[str]) -> int:
    lines, count = [], 0
    for folder in map(Path, arguments):
        for entry in json.loads((folder / "manifest.json").read_text()):
            count += 1
            if found := failure(folder, entry):
                lines.append(f"{entry['file']}: {found}")
    return report(lines, count - len(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
