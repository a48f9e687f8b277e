"""What pytest adds, by way of `xbuild_pytest.py`, which pytest loads: a guard around tests, and reports in full.

    xbuild_guard       a fixture: fail the test instead of running a program that is refused
    --xbuild-guard     the same for all tests (`xbuild_guard = stop` in the settings of pytest)
    --xbuild-update    write the files that `contract` compares with

If a test fails, each verdict in the failing line's frame, and each in the error, is printed in full below it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import guard
from ..checking import Refused, Verdict
from .contracts import ContractError


@contextmanager
def guarded(mode: str) -> Iterator[Any]:
    """Guard the block; a refused program raises ContractError, which fails one test, where SystemExit could end all."""
    try:
        with guard.active(mode) as active:
            yield active
    except guard.ProgramRefused as error:
        raise ContractError(str(error)) from None


def add_reports(report: Any, excinfo: Any) -> None:
    """Add each verdict of the failing frame of a test, in full, to its report: variables, and what it asserts on."""
    if isinstance(excinfo.value, ContractError | Refused):
        return
    frames = [entry.frame for entry in excinfo.traceback.filter(excinfo)][-1:]
    shown: list[Any] = []
    for frame in frames:
        for name, value in frame.f_locals.items():
            if _has_failed(value) and not any(value is each for each in shown):
                shown.append(value)
                label = "the assertion" if name.startswith("@") else name
                report.sections.append((f"xbuild report of {label}", str(value)))


def _has_failed(value: Any) -> bool:
    """Whether a value is a verdict other than ok or equal; the second kind is imported only where one exists."""
    if isinstance(value, Verdict):
        return value.kind != "ok"
    fields = sys.modules.get("interpreter.fields")
    return fields is not None and isinstance(value, fields.Equivalence) and not value
