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
from pathlib import Path
from typing import Any

from shape_inference import refuse
from shape_inference.escaping import in_line

from ..core.graph import Computation
from ..files.arrays import replacing
from ..properties.mesh import Mesh
from .contracts import CollectiveRow, Collectives, ContractError, collectives_of, program_of

UPDATE = "XBUILD_UPDATE_CONTRACTS"
"""The environment variable that lets `contract` write files; the option --xbuild-update of pytest sets it."""

FOLDER = "contracts"
"""The folder beside the test, or in the current directory, if none is given."""

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
    XBUILD_UPDATE_CONTRACTS=1. The default `folder` is `contracts` next to the running test, or in the current directory
    outside pytest. `target`, `args`, `mesh` and `kwargs` are as in `collectives`.
    Raises ContractError with the changed lines, or if the file is missing, and invalid_attribute if `name` is not a
    file name.

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
    if not _NAME.fullmatch(name) or name.startswith("."):
        refuse("invalid_attribute", f"contract: {name!r} is not a file name", "use letters, digits, _, - and .")
    program = program_of(target, args, kwargs)
    found = collectives_of(program, mesh)
    lines = contract_lines(name, found, 1 if isinstance(program, Computation) else program.num_devices)
    path = Path(folder) if folder is not None else _folder()
    path = path / f"{name}.txt"
    kept = path.read_text(encoding="utf-8").splitlines() if path.is_file() else None
    if kept == lines:
        return found
    how = f"run pytest with --xbuild-update, or set {UPDATE}=1, to write it"
    if os.environ.get(UPDATE, "") not in ("", "0"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write("\n".join([*lines, ""]).encode())
        return found
    if kept is None:
        raise ContractError("\n".join([f"contract {name} has no file {path}: {how}", *lines]))
    diff = difflib.unified_diff(kept, lines, lineterm="", n=0)
    changes = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    raise ContractError("\n".join([f"contract {name} has changed; if it should, {how}", *changes]))


def contract_lines(name: str, found: Collectives, num_devices: int) -> list[str]:
    """The lines of a contract's file: rows of equal collectives in the order of their text, and the total."""
    rows = Counter(map(_row, found))
    cells = [(op, f"{count} x" * (count > 1), *rest) for (op, *rest), count in sorted(rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)] if cells else []
    table = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True) if w).rstrip() for row in cells]
    devices = f"{num_devices} device{'s' * (num_devices != 1)}"
    count = len(found)
    return [
        f"# xbuild contract of {name}: {devices}",
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
