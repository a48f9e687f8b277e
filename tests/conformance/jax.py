"""Programs that JAX lowers and compiles, one JSON a line: read, checked, printed, run, partitioned, and compared.

A program passes where all of this holds:

- its lowered text (StableHLO) and its compiled text (HLO) are read;
- read again from its own HLO text, or its own StableHLO text, a program has the same structure: the canonical form of
  `xb.same_structure`, in which names, metadata, layouts, the order of independent instructions and whether defaults are
  stated do not count. Compiled text holds fusions, which StableHLO has not: what its StableHLO text reads as has to
  come back the same;
- the verdict on the compiled text, on the lowered text of one device, and on the partitioned program is ok;
- the compiled program, the lowered program of one device, and the program that `xb.shard.partition` makes of a lowered
  one of several devices give the captured values: equal for integers, and within the tolerance of the type
  (`interpreter.engines.comparison`) for others.

Values may differ for two reasons, which no id decides. `OF_THE_PROCESS` are targets whose function only the process
that lowered the text has; there the run has to name the target, and the compiled text alone is compared. `NOT_UNIQUE`
are decompositions that leave a sign, a phase or an order free: a result that differs passes where the slices of each
matrix or vector along one axis are those of JAX in some order, times numbers of magnitude 1, or where inputs that are
changed in their last place change it as much.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from interpreter import execute
from interpreter.engines.comparison import beyond
from shape_inference import Shape
from tests.conformance.reporting import report
from xbuild.core.graph import Module
from xbuild.sharding.partition.partitioned import join_parts

Array = Any
Case = dict[str, Any]

PROCESSES = 2
SECONDS = 120
"""For one program."""

OF_THE_PROCESS = re.compile(r"CustomSPMDPartitioning|xla_(?:ffi_)?python_\w+")
NOT_UNIQUE = re.compile(
    r"lapack_[sdcz](?:geev|syevd|heevd|gees|gesdd|gesvd|geqrf|orgqr|ungqr|gehrd|sytrd|hetrd)(?:_ffi)?"
)
DRAWS = 8


class Wrong(Exception):
    """What is wrong with a program."""


def cases_of(path: Path) -> Iterator[Case]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return (json.loads(line) for line in text.splitlines() if line.strip())


def array_of(stored: Case) -> Array:
    """An array as it is stored: its type by NumPy's or ml_dtypes' name, its dimensions, its bytes."""
    name = stored["t"]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return np.frombuffer(base64.b64decode(stored["b"]), dtype).reshape(stored["s"])


def stored(array: Array) -> Case:
    """The same the other way."""
    found = np.asarray(array)
    return {"t": str(found.dtype), "s": list(found.shape), "b": base64.b64encode(found.tobytes()).decode()}


def failure(case: Case) -> str | None:
    """What is wrong with a program, or None."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        _judge(case)
        return None
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:  # whatever else happens is our fault, and is reported
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def _too_long(*_: Any) -> None:
    raise Wrong(f"it takes more than {SECONDS} s")


def _judge(case: Case) -> None:
    lowered = xb.parse_stablehlo(case["stablehlo"])
    compiled = xb.parse_hlo(case["hlo"]) if case["hlo"] else None
    _same("the lowered text over HLO", lowered, xb.parse_hlo(lowered.to_hlo()))
    _same("the lowered text over StableHLO", lowered, xb.parse_stablehlo(lowered.to_stablehlo()))
    values = case["values"]
    if compiled is not None:
        _same("the compiled text over HLO", compiled, xb.parse_hlo(compiled.to_hlo()))
        once = xb.parse_stablehlo(compiled.to_stablehlo())
        _same("the compiled text over StableHLO", once, xb.parse_stablehlo(once.to_stablehlo()))
        _is_ok("the compiled text", compiled)
        if values:
            _compiled(compiled, values)
    if case["devices"] > 1:
        _partitioned(lowered, compiled, values)
    else:
        _is_ok("the lowered text", lowered)
        if values:
            rows = _rows(values["in"], 1)
            _compare(
                "the lowered program", lowered, lambda given: _by_device(lowered, given), rows, _rows(values["out"], 1)
            )


def _same(what: str, module: Module, again: Module) -> None:
    if not xb.same_structure(module, again):
        raise Wrong(f"{what} is another program: {xb.diff(module, again)}")


def _is_ok(what: str, module: Module) -> None:
    verdict = xb.check(module)
    if str(verdict.kind) != "ok" and not _targets(module, OF_THE_PROCESS):
        raise Wrong(f"{what} is {verdict}")


def _targets(module: Module, pattern: re.Pattern[str]) -> list[str]:
    every = (each for computation in module.entry.reachable() for each in computation.instructions)
    named = (str(each.attributes.custom_call_target) for each in every if each.opcode == "custom_call")
    return [target for target in named if pattern.fullmatch(target)]


# Runs


def _rows(stored: Sequence[Sequence[Case]], devices: int) -> list[list[Array]]:
    """The arrays of each device, of lists over devices."""
    return [[array_of(each[device]) for each in stored] for device in range(devices)]


def _flat(value: Any) -> list[Array]:
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in _flat(each)]
    return [] if value is None else [np.asarray(value)]


def _by_device(module: Module, rows: list[list[Array]]) -> list[list[Array]]:
    return [_flat(each) for each in execute(module, rows)]


def _compiled(module: Module, values: Case) -> None:
    rows, wanted = _rows(values["in"], module.num_devices), _rows(values["out"], module.num_devices)
    _compare("the compiled program", module, lambda given: _by_device(module, given), rows, wanted)


def _partitioned(lowered: Module, compiled: Module | None, values: Case | None) -> None:
    found = xb.shard.partition(lowered)
    _is_ok("the partitioned program", found.module)
    if not values:
        return
    if values["gin"] is not None and values["gout"] is not None and None not in values["gin"]:
        row, wanted = [array_of(each) for each in values["gin"]], [each and array_of(each) for each in values["gout"]]
        _compare("the partitioned program", lowered, lambda given: [_flat(found.run(*given[0]))], [row], [wanted])
        return
    rows, wanted = _rows(values["in"], lowered.num_partitions), _rows(values["out"], lowered.num_partitions)
    locals_ = [each.shape.dims for each in found.module.entry.parameters if isinstance(each.shape, Shape)]
    if locals_ != [each.shape for each in rows[0]]:  # XLA has cut arguments another way
        rows = found.arguments(*_whole(lowered, compiled, rows))
    _compare("the partitioned program", lowered, lambda given: _cut_alike(found, given, wanted), rows, wanted)


def _cut_alike(found: Any, rows: list[list[Array]], wanted: list[list[Array]]) -> list[list[Array]]:
    """The results of each device; one that XLA has cut another way is cut like that, if its tiles are those of JAX."""
    results = execute(found.module, rows)
    ours, whole = [_flat(each) for each in results], _flat(found.joined(results))
    for number, (each, theirs) in enumerate(zip(whole, wanted[0], strict=False)):
        if ours[0][number].shape != theirs.shape and each.ndim == theirs.ndim:
            tiles = [*_tiles(each, theirs.shape)]
            for device, row in enumerate(wanted):
                ours[device][number] = next((t for t in tiles if not np.any(beyond(t, row[number]))), tiles[0])
    return ours


def _tiles(whole: Array, dims: tuple[int, ...]) -> Iterator[Array]:
    """The parts of an array of these extents that stand side by side."""
    counts = [extent // size if size else 1 for extent, size in zip(whole.shape, dims, strict=True)]
    for place in np.ndindex(*counts):
        yield whole[tuple(slice(n * size, (n + 1) * size) for n, size in zip(place, dims, strict=True))]


def _whole(lowered: Module, compiled: Module | None, rows: list[list[Array]]) -> Iterator[Array]:
    """The global arguments whose parts the devices of a compiled program have, by the shardings that it states."""
    for number, parameter in enumerate(lowered.entry.parameters):
        parts, shape = [row[number] for row in rows], parameter.shape
        assert isinstance(shape, Shape)
        if parts[0].shape == shape.dims:
            yield parts[0]
            continue
        sharding = xb.shard.sharding_of(compiled.entry.parameters[number]) if compiled else None
        if not isinstance(sharding, xb.shard.Sharding):
            raise Wrong(f"argument {number} is cut, and nothing says how")
        yield join_parts(parts, shape, sharding)


# Values


def _compare(what: str, module: Module, run: Any, rows: list[list[Array]], wanted: list[list[Array]]) -> None:
    """Refuse results that are not those of JAX, for each device."""
    try:
        found = run(rows)
    except xb.XbuildError as error:
        if any(target in str(error) for target in _targets(module, OF_THE_PROCESS)):
            return
        raise
    wrong = _first_wrong(found, wanted)
    if wrong is None or not _targets(module, NOT_UNIQUE):
        if wrong is not None:
            raise Wrong(f"{what}: {_told(found, wanted, *wrong)}")
        return
    spread: list[list[Array]] | None = None
    for device, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if other is None or _is_equal(one, other) or _is_free(one, other):
                continue
            spread = spread or _spread(run, rows, found)
            if not np.all(np.abs(one - other) <= spread[device][number]):
                raise Wrong(f"{what}: {_told(found, wanted, device, number)}")


def _first_wrong(found: list[list[Array]], wanted: list[list[Array]]) -> tuple[int, int] | None:
    for device, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if len(ours) != len(theirs):
            raise Wrong(f"device {device} gives {len(ours)} results, and JAX {len(theirs)}")
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if other is not None and not _is_equal(one, other):
                return device, number
    return None


def _is_equal(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        raise Wrong(f"{one.dtype}{list(one.shape)} came, {other.dtype}{list(other.shape)} is JAX's")
    return not np.any(beyond(one, other))


def _told(found: list[list[Array]], wanted: list[list[Array]], device: int, number: int) -> str:
    one, other = found[device][number], wanted[device][number]
    place = np.unravel_index(int(np.argmax(beyond(one, other))), one.shape)
    where = [int(each) for each in place]
    return f"device {device}, result {number} at {where}: {one[place]!r} came, {other[place]!r} is JAX's"


def _is_free(one: Array, other: Array) -> bool:
    """Whether one is the other but for what a decomposition leaves free, in each matrix or vector of a batch."""
    for rank in range(1, one.ndim + 1):
        pairs = zip(*(each.reshape(-1, *one.shape[one.ndim - rank :]) for each in (one, other)), strict=True)
        if all(any(_is_free_along(*pair, axis) for axis in range(rank)) for pair in pairs):
            return True
    return False


def _is_free_along(one: Array, other: Array, axis: int) -> bool:
    """Whether the slices along an axis are those of the other in some order, times numbers of magnitude 1."""
    left = [*np.moveaxis(other, axis, 0)]
    for each in np.moveaxis(one, axis, 0):
        place = next((number for number, slice_ in enumerate(left) if _is_turned(np.asarray(each), slice_)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _is_turned(one: Array, other: Array) -> bool:
    """Whether a vector is another one times a number of magnitude 1; a number alone has to be equal."""
    if not np.any(beyond(one, np.asarray(other))):
        return True
    if one.size < 2 or one.dtype.kind not in "fc":
        return False
    overlap = np.vdot(other, one)
    return bool(overlap) and not np.any(beyond(one, (other * (overlap / np.abs(overlap))).astype(one.dtype)))


def _spread(run: Any, rows: list[list[Array]], found: list[list[Array]]) -> list[list[Array]]:
    """How far results are moved by inputs that are changed in their last place, twice the most of several draws."""
    chance = np.random.default_rng(0)
    most = [[np.zeros(each.shape) for each in device] for device in found]
    for _ in range(DRAWS):
        signs: dict[int, Array] = {}
        moved = [[_moved(each, signs.setdefault(n, _draw(chance, each))) for n, each in enumerate(row)] for row in rows]
        for device, results in enumerate(run(moved)):
            for number, each in enumerate(results):
                apart = np.abs(each - found[device][number]) if each.dtype.kind in "fc" else 0.0
                most[device][number] = np.maximum(most[device][number], 2 * apart)
    return most


def _draw(chance: np.random.Generator, array: Array) -> Array:
    return chance.integers(-1, 2, array.shape)


def _moved(array: Array, signs: Array) -> Array:
    if array.dtype.kind not in "fc":
        return array
    return (array * (1 + signs * np.finfo(array.dtype).eps)).astype(array.dtype)


def _line(case: Case) -> tuple[str, str | None]:
    return str(case["id"]), failure(case)


def main(arguments: list[str]) -> int:
    cases = [case for path in arguments for case in cases_of(Path(path))]
    if len(cases) < 2 * PROCESSES:
        found = [_line(case) for case in cases]
    else:
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(_line, cases, chunksize=max(1, len(cases) // (16 * PROCESSES))))
    lines = [f"{name}: {' '.join(wrong.split())[:300]}" for name, wrong in found if wrong]
    return report(lines, len(found) - len(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
