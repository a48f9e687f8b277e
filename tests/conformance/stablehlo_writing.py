"""StableHLO text that is written: our reader and jaxlib take it, and what they make of it gives the same bit for bit.

A folder has programs with inputs (its manifest.json), a file texts (.json.gz), and `cases` stands for tests/cases. Text
that our reader reads is written once more, and has to be the same program then.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference import AnyShape, TokenShape, TupleShape
from tests.conformance.corpus import stored_arguments
from tests.support.converter import Converter, Refused

Program = tuple[str, xb.Module, list[list[Any]]]
SECONDS = 2.0
_JOINED = {"rng", "dynamic_reshape"}  # sizes that the text has in one vector are taken apart where it is read
LIMITS = xb.Limits(seconds=SECONDS, bytes=1 << 28)


def programs(source: str) -> Iterator[Program]:
    path = Path(source)
    if source == "cases":
        yield from _of_cases()
    elif path.is_dir():
        yield from _of_folder(path)
    else:
        yield from _of_texts(path)


def _of_cases() -> Iterator[Program]:
    from tests.ops.test_cases import FAMILIES

    for family, module in FAMILIES.items():
        for case in module.CASES:
            computation = case.computation()
            yield f"{family}-{case.id}", xb.Module("case", computation), [list(case.arguments)]


def _of_folder(folder: Path) -> Iterator[Program]:
    for entry in json.loads((folder / "manifest.json").read_text()):
        if entry["kind"] != "parse-only":
            module = xb.parse_hlo((folder / entry["file"]).read_text(encoding="utf-8"), entry["file"])
            with np.load(folder / entry["inputs_file"]) as stored:
                inputs = dict(stored)
            rows = [stored_arguments(inputs, device, module.entry) for device in range(module.num_devices)]
            yield entry["file"], module, rows


def _of_texts(path: Path) -> Iterator[Program]:
    """The texts that are read, with arguments by chance."""
    for case in json.loads(gzip.decompress(path.read_bytes()).decode())["cases"]:
        try:
            module = xb.parse_hlo(case["text"])
        except xb.HloParseError:
            continue
        yield case["id"], module, list(_by_chance(module))


def _by_chance(module: xb.Module) -> Iterator[list[Any]]:
    chance = np.random.default_rng(1)
    if module.num_devices <= 16 and sum(p.shape.bytes for p in module.entry.parameters) < 1 << 24:
        for _ in range(module.num_devices):
            yield [_drawn(chance, p.shape) for p in module.entry.parameters]


def _drawn(chance: np.random.Generator, shape: AnyShape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_drawn(chance, each) for each in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    return chance.integers(0, 3, shape.dims).astype(shape.dtype.dtype)


def failure(converter: Converter, module: xb.Module, rows: list[list[Any]]) -> str | None:
    """What is wrong with the text of a program, or None."""
    try:
        written, given = module.to_stablehlo(), _results(module, rows)
        if wrong := _read_here(module, written, rows, given):
            return f"read here: {wrong}"
        text = converter.hlo(written)
    except xb.StablehloError as error:
        return f"not written: {_line(error)}"
    except Refused as error:
        return f"jaxlib refuses: {_line(error)}"
    except Exception as error:
        return f"{type(error).__name__} came: {_line(error)}"
    try:
        back = attrs.evolve(xb.parse_hlo(text), num_replicas=module.num_replicas, num_partitions=module.num_partitions)
    except xb.HloParseError as error:
        return f"read back: {_line(error)}"
    wrong = _differs(module, back, rows, given)
    return f"{wrong}{_expanded(module)}" if wrong else None


def _results(module: xb.Module, rows: list[list[Any]]) -> list[Any] | None:
    """What a program gives; None where it does not run, or takes too long to be run again."""
    begin = time.monotonic()
    try:
        found = execute(module, rows, limits=LIMITS)
    except (xb.Stopped, xb.Refused, xb.XbuildError):
        return None
    return found if time.monotonic() - begin < SECONDS else None


def _read_here(module: xb.Module, text: str, rows: list[list[Any]], given: list[Any] | None) -> str | None:
    """What our own reader makes of the text, run on the same arguments, and written and read again."""
    try:
        back = xb.parse_stablehlo(text, replicas=module.num_replicas, partitions=module.num_partitions)
        again = xb.parse_stablehlo(back.to_stablehlo(), replicas=module.num_replicas, partitions=module.num_partitions)
    except xb.HloParseError as error:
        return _line(error)
    opcodes = {i.opcode for c in module.computations for i in c.instructions}
    if not opcodes & _JOINED and not xb.same_structure(back, again):
        return "written and read again it is another program"
    return _differs(module, back, rows, given)


def _differs(module: xb.Module, back: xb.Module, rows: list[list[Any]], given: list[Any] | None) -> str | None:
    if given is None:
        return None  # there are no results to compare
    arguments = [
        [leaf for value, p in zip(row, module.entry.parameters, strict=True) for leaf in _leaves(value, p.shape)]
        for row in rows
    ]
    try:
        found = execute(back, arguments, limits=LIMITS)
    except (xb.Stopped, xb.Refused, xb.XbuildError) as error:
        return f"{type(error).__name__}: {_line(error)}"
    for device, (one, other) in enumerate(zip(given, found, strict=True)):
        a, b = _leaves(one, module.entry.root.shape), _leaves(other, back.entry.root.shape)
        if wrong := _apart(a, b):
            return f"device {device}, {wrong}"
    return None


EXPANDED = frozenset({"acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"})
EXPANDED_OF_COMPLEX = frozenset({"exponential", "log", "log_plus_one", "logistic", "power", "rsqrt", "tan", "tanh"})


def _expanded(module: xb.Module) -> str:
    """The ops that jaxlib's conversion expands, so that other bits come."""
    found = sorted({i.opcode for c in module.computations for i in c.instructions if _is_expanded(i)})
    return f" (jaxlib expands {', '.join(found)})" if found else ""


def _is_expanded(instruction: xb.Instruction) -> bool:
    dtype = getattr(instruction.shape, "dtype", None)
    is_complex = dtype is not None and dtype.kind == "complex"
    return instruction.opcode in EXPANDED or (is_complex and instruction.opcode in EXPANDED_OF_COMPLEX)


def _leaves(value: Any, shape: AnyShape) -> list[Any]:
    if isinstance(shape, TupleShape):
        return [leaf for part, each in zip(value, shape.elements, strict=True) for leaf in _leaves(part, each)]
    return [value]


def _apart(given: list[Any], found: list[Any]) -> str | None:
    if len(given) != len(found):
        return f"{len(found)} results came, {len(given)} are expected"
    for number, (a, b) in enumerate(zip(given, found, strict=True)):
        if a is None or b is None:
            continue
        one, other = np.asarray(a), np.asarray(b)
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"result {number}: {other.dtype}{list(other.shape)} came, {one.dtype}{list(one.shape)} is expected"
        if one.tobytes() != other.tobytes():
            place = np.unravel_index(int(np.argmax((one != other).reshape(-1))), one.shape)
            return f"result {number}: {other[place]!r} came, {one[place]!r} is expected"
    return None


def _line(error: Any) -> str:
    return " ".join(str(error).split())[:300]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program that is looked at")
    parser.add_argument("--count", type=int, help="how many programs are looked at")
    chosen = parser.parse_args(arguments)
    found_all = (each for source in chosen.sources for each in programs(source))
    last = None if chosen.count is None else chosen.first + chosen.count
    passed = failed = 0
    with Converter() as converter:
        for name, module, rows in itertools.islice(found_all, chosen.first, last):
            if found := failure(converter, module, rows):
                print(f"{name}: {found}", flush=True)
                failed += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
