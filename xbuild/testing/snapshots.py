"""Contracts in files: what a program communicates, kept beside the test that compares it.

A file lists the collectives of a program, one row for all of the same op, axis, size and place:

    # xbuild contract of step: 8 devices, mesh data=4, model=2
    all-reduce      axis data    4.1 kB x 1 array     1 time    jit(step)/psum           train.py in step
    ...
    total           12,288 bytes in 3 collectives

Line numbers, names of instructions and asynchronous forms are not part of it, so that neither an edit elsewhere in the
script nor a new compiler changes it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shape_inference import refuse
from shape_inference.escaping import in_line

from ..core.graph import Computation
from ..core.report_text import folded, more_text
from ..files.arrays import ArchiveError, read_text, replacing
from ..properties.mesh import Mesh
from .contracts import CollectiveRow, Collectives, ContractError, collectives_of, program_of

UPDATE = "XBUILD_UPDATE_CONTRACTS"
"""The environment variable that lets `contract` write files; the option --xbuild-update of pytest sets it."""

FOLDER = "contracts"
"""The folder beside the test, or in the current directory, if none is given."""

HEAD = "# xbuild contract of "
"""How the first line of each file begins."""

MOST_BYTES = 1 << 22
"""The largest file that is compared."""

MOST_NAME = 200
"""The bytes of the longest name."""

MOST_CHANGES, MOST_WIDTH = 100, 400
"""How many changed lines an error shows, and how many characters of each."""

_NAME = re.compile(r"[\w.\-\[\],=]+")
_LINE = re.compile(r":\d+ in ")


def contract(
    name: str,
    target: Any,
    *args: Any,
    mesh: Mesh | None = None,
    folder: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Collectives:
    """Assert that a program communicates as the file `FOLDER/NAME.txt` says, and return its collectives.

    To write the file for the first time, or to accept a change, run pytest with --xbuild-update or set
    XBUILD_UPDATE_CONTRACTS=1. The default `folder` is `contracts` next to the running test or, outside pytest, in the
    current directory. `target`, `args`, `mesh` and `kwargs` are as in `collectives`.
    Raises ContractError with the changed lines if there are any, and ContractError if the file is missing, is not a
    contract, or cannot be read or written. Also raises invalid_attribute if `name` is not a file name, and TypeError if
    `name` or `folder` is not a str.

    >>> import tempfile
    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[8])(xb.cross_replica_sum), num_replicas=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xb.testing.contract("total", total, folder=folder)
    Traceback (most recent call last):
    xbuild.testing.contracts.ContractError: contract total has no file ...

    Source: docs/testing.md.
    """
    __tracebackhide__ = True
    path = _path(name, folder)
    program = program_of(target, args, kwargs)
    found = collectives_of(program, mesh)
    lines = contract_lines(name, found, 1 if isinstance(program, Computation) else program.num_devices)
    kept = _kept_lines(name, path)
    if kept == lines:
        return found
    how = f"run pytest with --xbuild-update, or set {UPDATE}=1, to write it"
    if os.environ.get(UPDATE, "") not in ("", "0"):
        _write(name, path, lines)
        return found
    if kept is None:
        raise ContractError("\n".join([f"contract {name} has no file {in_line(str(path))}: {how}", *lines]))
    raise ContractError("\n".join([f"contract {name} has changed; if it should, {how}", *_changes(kept, lines)]))


def _path(name: str, folder: str | os.PathLike[str] | None) -> Path:
    """The file of a contract. Raises TypeError and invalid_attribute if `name` and `folder` do not name one."""
    for what, given, kinds in (("name", name, str), ("folder", folder, str | os.PathLike | None)):
        if not isinstance(given, kinds) or (isinstance(given, os.PathLike) and not isinstance(os.fspath(given), str)):
            raise TypeError(f"contract: expected a str as {what}, got {type(given).__name__}")
    if not _NAME.fullmatch(name) or name.startswith("."):
        refuse("invalid_attribute", f"contract: {name!r} is not a file name", "use letters, digits, _, - and .")
    if len(name.encode()) > MOST_NAME:
        refuse("invalid_attribute", f"contract: the name has {len(name.encode())} bytes; the limit is {MOST_NAME}")
    return (_folder() if folder is None else Path(folder)) / f"{name}.txt"


def _kept_lines(name: str, path: Path) -> list[str] | None:
    """The lines of the file of a contract; None if it does not exist.

    A file that is no contract is neither shown nor replaced, because it may be a link to any file of the user.
    """
    if not path.exists():
        return None
    try:
        lines = read_text(path, MOST_BYTES).decode().splitlines()
    except ArchiveError as error:
        raise ContractError(f"contract {name} cannot be compared: {error}") from None
    except UnicodeDecodeError:
        lines = [""]
    if lines and not lines[0].startswith(HEAD):
        raise ContractError(
            f"contract {name} cannot be compared: {str(path)!r} is not a contract, because its first line does not "
            f"begin with {HEAD!r}; remove or rename it"
        )
    return lines


def _write(name: str, path: Path, lines: Sequence[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write("\n".join([*lines, ""]).encode())
    except OSError as error:
        reason = error.strerror or error
        raise ContractError(f"contract {name} was not written: {str(path)!r}: {reason}") from None


def _changes(kept: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """The lines that differ, as a diff marks them."""
    diff = difflib.unified_diff(kept, lines, lineterm="", n=0)
    changes = [line for number, line in enumerate(diff) if number > 1 and not line.startswith("@@")]
    shown, hidden = folded(changes, all=False, most=MOST_CHANGES)
    for line in shown:
        yield in_line(line if len(line) <= MOST_WIDTH else f"{line[:MOST_WIDTH]}...")
    if hidden:
        yield more_text(hidden, "a diff of the updated file shows them", "change")


def contract_lines(name: str, found: Collectives, num_devices: int) -> list[str]:
    """The lines of a contract's file: rows of equal collectives in the order of their text, and the total."""
    rows = Counter(map(_row, found))
    cells = [(op, f"{count} x" * (count > 1), *rest) for (op, *rest), count in sorted(rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)] if cells else []
    table = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True) if w).rstrip() for row in cells]
    devices = f"{num_devices} device{'s' * (num_devices != 1)}"
    count = len(found)
    return [
        f"{HEAD}{name}: {devices}",
        *table,
        f"total: {found.bytes:,} bytes in {count} collective{'s' * (count != 1)}",
    ]


def _row(each: CollectiveRow) -> tuple[str, ...]:
    arrays = f" in {each.arrays} arrays" if each.arrays != 1 else ""
    times = f"{each.times} times" if each.times != 1 else "once"
    place = _LINE.sub(" in ", each.line)
    return (each.op.replace("_", "-"), each.where, f"{each.bytes:,} bytes{arrays}", times, in_line(each.scope), place)


def _folder() -> Path:
    """The folder beside the test that pytest is running, as it says in the environment; else in the current one."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    path = Path(os.environ.get("XBUILD_ROOTDIR", ""), test)
    return (path.parent if test and path.exists() else Path()) / FOLDER
