"""How the results of two engines are compared: what counts as the same, and how a difference is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from interpreter.engines import compare
from interpreter.engines.comparison import allowed, beyond, distance, lines
from shape_inference import PRIMITIVES
from tests.conformance.corpus import stored_arguments
from xbuild.files.arrays import leaf_values

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "data" / "hlo"


@pytest.mark.parametrize("name", [name for name, each in PRIMITIVES.items() if each.is_float])
def test_a_float_type_states_how_far_apart_is_the_same(name: str) -> None:
    dtype = PRIMITIVES[name]
    one = np.ones(3, dtype.dtype)
    eps = float(ml_dtypes.finfo(dtype.dtype).eps)
    near, far = one.copy(), one.copy()
    far[1] = np.array(1 + 4 * eps * allowed(dtype)).astype(dtype.dtype)
    near[1] = np.array(1 - eps / 2).astype(dtype.dtype)
    assert not beyond(one, near).any()
    assert beyond(one, far).tolist() == [False, True, False]
    assert beyond(one, near, 0).tolist() == [False, bool(distance(one, near)[1]), False]


def test_others_are_the_same_where_they_are_equal() -> None:
    assert beyond(np.int32([1, 2**31 - 1]), np.int32([1, 2**31 - 2])).tolist() == [False, True]
    assert beyond(np.array([True]), np.array([False])).tolist() == [True]
    odd = np.float32([np.nan, np.inf, -np.inf, 1.0])
    assert beyond(odd, odd).tolist() == [False] * 4
    assert beyond(odd, np.float32([0.0, -np.inf, -np.inf, np.nan])).tolist() == [True, True, False, True]
    assert beyond(np.complex64([1 + 1j]), np.complex64([1 + 2j])).tolist() == [True]
    empty = np.ones((0, 2), np.float32)
    assert compare([empty], [empty], [xb.f32[0, 2]])[0].same


def test_outputs_that_differ_are_told_with_the_first_place() -> None:
    shape = xb.TupleShape((xb.f32[2, 2], xb.s32[()]))
    one = np.float32([[1, 2], [3, 4]]), np.int32(5)
    other = np.float32([[1, 2], [3, 5]]), np.int32(5)
    told = list(lines(compare([one, one], [other, one], [shape, shape])))
    assert len(told) == 3
    assert "device 0  out0  f32[2,2]  max 2.09715e+06 ulp  differs at [1, 1]: interpreter 4.0, xla 5.0" in told[0]
    assert told[1] == "device 1  out0  f32[2,2]  max 0 ulp  the same"
    assert told[2] == "devices 0-1  out1  s32[]  max 0 ulp  the same"


@pytest.mark.slow
def test_the_interpreter_is_within_the_stated_tolerance_on_all_of_the_corpus() -> None:
    """The stored outputs are real XLA's."""
    wrong = []
    for entry in json.loads((FOLDER / "manifest.json").read_text()):
        if entry["kind"] == "parse-only" or entry["custom_call_targets"]:
            continue
        module = xb.parse_hlo((FOLDER / entry["file"]).read_text())
        with np.load(FOLDER / entry["inputs_file"]) as inputs, np.load(FOLDER / entry["outputs_file"]) as outputs:
            rows = [stored_arguments(dict(inputs), device, module.entry) for device in range(module.num_devices)]
            wrong += [f"{entry['file']}: {each}" for each in _apart(module, execute(module, rows), dict(outputs))]
    assert wrong == []


def _apart(module: xb.Module, results: list[Any], stored: dict[str, Any]) -> list[str]:
    shape = module.entry.root.shape
    found = []
    for device, result in enumerate(results):
        for number, (leaf, leaf_shape) in enumerate(leaf_values(result, shape)):
            key = f"d{device}_out{number}"
            theirs = stored[key if key in stored else f"out{number}"]
            theirs = xb_typed(theirs, leaf_shape)
            if leaf_shape.is_dynamic:
                theirs = theirs[tuple(slice(extent) for extent in np.shape(leaf))]
            found += [str(each) for each in compare([leaf], [theirs], [leaf_shape]) if not each.same]
    return found


def xb_typed(array: Any, shape: xb.Shape) -> Any:
    from xbuild.files.arrays import from_bits

    return from_bits(array, shape.dtype)
