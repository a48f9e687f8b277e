"""What every family of the acceptance cases shares: comparison of values and of kinds of error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shape_inference import XbuildError

Case = dict[str, Any]
Outputs = Mapping[str, Any]

# Relative and absolute distance by element type; every other type has to be equal.
TOLERANCES = {"f64": 1e-12, "f32": 1e-6, "bf16": 2.0**-7, "f16": 2.0**-10, "c64": 1e-6, "c128": 1e-12}


def judged(case: Case, outcome: Callable[[Case], Outputs], kinds: Mapping[str, tuple[str, ...]]) -> str | None:
    """What is wrong with the outcome of a case, or None.

    ``outcome`` runs the case and gives its outputs by name, a value for each device; a refusal is raised. ``kinds``
    says by which of xbuild's kinds an error of the cases is refused, where the two have different names for it.
    """
    try:
        came = outcome(case)
    except XbuildError as error:
        return _of_refusal(case, error, kinds)
    except Exception as error:
        return f"{expected(case)} expected, {type(error).__name__} came: {first_line(error)}"
    if "error" in case["expect"]:
        return f"{expected(case)} expected, and nothing was refused: {came}"
    return differing(case, came)


def _of_refusal(case: Case, error: XbuildError, kinds: Mapping[str, tuple[str, ...]]) -> str | None:
    wanted = case["expect"].get("error")
    if wanted is not None and error.kind in kinds.get(wanted, (wanted,)):
        return None
    return f"{expected(case)} expected, {error.kind} came: {first_line(error)}"


def differing(case: Case, came: Outputs) -> str | None:
    """The first output that is not as the case says, or None; where the case says null, any value is right."""
    for name, wanted in case["expect"]["outputs"].items():
        if name not in came:
            return f"output {name} expected, {', '.join(map(str, came)) or 'nothing'} came"
        if not same(wanted, came[name], TOLERANCES.get(case["dtype"], 0.0)):
            return f"{name} = {wanted} expected, {plain(came[name])} came"
    return None


def same(wanted: Any, came: Any, tolerance: float) -> bool:
    """Whether two nested lists have the same structure and numbers; a wanted null equals everything."""
    if wanted is None:
        return True
    came = plain(came)
    if isinstance(wanted, dict):
        alike = isinstance(came, dict) and came.keys() == wanted.keys()
        return alike and all(same(each, came[key], tolerance) for key, each in wanted.items())
    if isinstance(wanted, str) or isinstance(came, str | dict):
        return _word(wanted) == _word(came)
    if isinstance(wanted, list):
        equal = isinstance(came, list) and len(came) == len(wanted)
        return equal and all(same(*pair, tolerance) for pair in zip(wanted, came, strict=True))
    if isinstance(came, list):
        return False
    if came is None:
        return False
    return bool(np.isclose(came, wanted, rtol=tolerance, atol=tolerance, equal_nan=True))


def _word(value: Any) -> Any:
    """A word without case and underscores: NoOp and no_op are one."""
    return value.replace("_", "").lower() if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """Arrays, tuples and scalars as nested lists of Python numbers; dicts and words as they are."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    array = np.asarray(value)
    return (array if array.dtype.kind in "biufc" else array.astype(np.float64)).tolist()


def expected(case: Case) -> str:
    return f"error {case['expect']['error']}" if "error" in case["expect"] else "outputs"


def first_line(text: Any) -> str:
    return next(iter(str(text).splitlines()), "")
