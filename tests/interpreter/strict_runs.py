"""A strict run that gives its result and its findings, whether it fails or not."""

from __future__ import annotations

from typing import Any

import xbuild as xb
from interpreter import Finding as StrictFinding
from interpreter import StrictFailure, evaluate


def strictly(computation: xb.Computation, *arguments: Any, **options: Any) -> tuple[Any, tuple[StrictFinding, ...]]:
    """The result of a strict run, and what it has found."""
    try:
        return evaluate(computation, *arguments, strict=True, **options), ()
    except StrictFailure as failure:
        return failure.results[0], failure.findings
