"""Cases of batch normalization."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

TRAIN, INFER, GRAD = (f"Operation Semantics, BatchNorm{name}" for name in ("Training", "Inference", "Grad"))
BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e5m2
NAN = np.nan

# Two features: means 3 and 6, variances 4 and 1.
ROWS = np.array([[1, 5], [5, 7], [1, 5], [5, 7]], np.float32)
SCALE, OFFSET = np.array([10, 2], np.float32), np.array([0.5, -1], np.float32)
MEAN, VARIANCE = np.array([3, 6], np.float32), np.array([4, 1], np.float32)
OUTPUT = np.array([[-9.5, -3], [10.5, 1], [-9.5, -3], [10.5, 1]], np.float32)
EXACT = {"epsilon": 0.0, "feature_index": 1}
GRADIENT = np.array([[1, 1], [2, 0], [3, 0], [6, 3]], np.float32)
# sums (12, 4); sums of g (x - mean) = (8, 2): of 5 (x - 3 = -2, 2, -2, 2) and (-1, 1, -1, 1)
GRAD_SCALE, GRAD_OFFSET = np.array([4, 2], np.float32), np.array([12, 4], np.float32)
SLOPE = np.array([8, 2], np.float32) / 4 / VARIANCE
GRAD_OPERAND = SCALE / np.sqrt(VARIANCE) * (GRADIENT - GRAD_OFFSET / 4 - SLOPE * (ROWS - MEAN))
STATISTICS = (OUTPUT, MEAN, VARIANCE)


def in_type(dtype: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(array.astype(dtype) for array in arrays)


def turned(array: np.ndarray) -> np.ndarray:
    """The features in the middle of three dimensions."""
    return np.ascontiguousarray(array.reshape(2, 2, 2).transpose(0, 2, 1))


CASES = [
    Case("training", xb.ops.batch_norm_training, (ROWS, SCALE, OFFSET), STATISTICS, EXACT, 8, TRAIN),
    Case(
        "training-epsilon", xb.batch_norm_training, (ROWS, SCALE, OFFSET),
        ((ROWS - MEAN) * SCALE / np.sqrt(np.array([9, 6], np.float32)) + OFFSET, MEAN, VARIANCE),
        {"epsilon": 5.0, "feature_index": 1}, 8, TRAIN,
    ),
    Case(
        "training-first", xb.batch_norm_training, (np.ascontiguousarray(ROWS.T), SCALE, OFFSET),
        (OUTPUT.T, MEAN, VARIANCE), {"epsilon": 0.0, "feature_index": 0}, 8, TRAIN,
    ),
    Case(
        "training-middle", xb.batch_norm_training, (turned(ROWS), SCALE, OFFSET), (turned(OUTPUT), MEAN, VARIANCE),
        {"epsilon": 0.0, "feature_index": 1}, 8, TRAIN,
    ),
    Case("training-lists", lambda x: xb.batch_norm_training(x, [10, 2], [0.5, -1.0], 0.0, 1), (ROWS,), STATISTICS,
         tolerance=8, source=TRAIN),
    *(
        Case(f"training-{np.dtype(t).name}", xb.batch_norm_training, in_type(t, ROWS, SCALE, OFFSET),
             in_type(t, *STATISTICS), EXACT, 8, TRAIN)
        for t in (np.float64, np.float16, BF16, F8)
    ),
    Case(
        "training-far", xb.batch_norm_training, (ROWS + 2**20, SCALE, OFFSET), (OUTPUT, MEAN + 2**20, VARIANCE), EXACT,
        1, TRAIN, oracle=False,  # XLA subtracts squares, which are then far too large
    ),
    Case("training-constant", xb.batch_norm_training, (np.ones((3, 1), np.float32), SCALE[:1], OFFSET[:1]),
         (np.full((3, 1), 0.5, np.float32), [1], [0]), {"epsilon": 1e-3, "feature_index": 1}, source=TRAIN,
         oracle=False),
    Case("training-empty", xb.batch_norm_training, (ROWS[:0], SCALE, OFFSET), (ROWS[:0], [NAN, NAN], [NAN, NAN]),
         EXACT, source=TRAIN),
    Case("training-no-feature", xb.batch_norm_training, (ROWS[:, :0], SCALE[:0], OFFSET[:0]),
         (ROWS[:, :0], SCALE[:0], SCALE[:0]), EXACT, source=TRAIN),
    Case("inference", xb.ops.batch_norm_inference, (ROWS, SCALE, OFFSET, MEAN, VARIANCE), OUTPUT, EXACT, 8, INFER),
    Case("inference-own", xb.batch_norm_inference, (ROWS, SCALE, OFFSET, 0 * MEAN, 0 * VARIANCE),
         ROWS * SCALE / 2 + OFFSET, {"epsilon": 4.0, "feature_index": 1}, 8, INFER),
    *(
        Case(f"inference-{np.dtype(t).name}", xb.batch_norm_inference, in_type(t, ROWS, SCALE, OFFSET, MEAN, VARIANCE),
             OUTPUT.astype(t), EXACT, 8, INFER)
        for t in (np.float64, np.float16, BF16, F8)
    ),
    Case("inference-empty", xb.batch_norm_inference, (ROWS[:0], SCALE, OFFSET, MEAN, VARIANCE), ROWS[:0], EXACT,
         source=INFER),
    Case("grad", xb.ops.batch_norm_grad, (ROWS, SCALE, MEAN, VARIANCE, GRADIENT),
         (GRAD_OPERAND, GRAD_SCALE, GRAD_OFFSET), EXACT, 8, GRAD),
    Case("grad-middle", xb.batch_norm_grad, (turned(ROWS), SCALE, MEAN, VARIANCE, turned(GRADIENT)),
         (turned(GRAD_OPERAND), GRAD_SCALE, GRAD_OFFSET), EXACT, 8, GRAD),
    *(
        Case(f"grad-{np.dtype(t).name}", xb.batch_norm_grad, in_type(t, ROWS, SCALE, MEAN, VARIANCE, GRADIENT),
             in_type(t, GRAD_OPERAND, GRAD_SCALE, GRAD_OFFSET), EXACT, 16, GRAD)
        for t in (np.float64, np.float16, BF16)
    ),
    Case("grad-empty", xb.batch_norm_grad, (ROWS[:0], SCALE, MEAN, VARIANCE, GRADIENT[:0]),
         (ROWS[:0], [0, 0], [0, 0]), EXACT, source=GRAD),
]  # fmt: skip


def refused(name: str, form: Any, operands: str, kind: str, *names: str, **attributes: Any) -> Refusal:
    given = {"epsilon": 0.001, "feature_index": 1, **attributes}
    return Refusal(f"{form.__name__.split('_')[-1]}-{name}", form, tuple(operands.split()), kind, names, given)


TRAINING, INFERENCE, GRADIENTS = xb.batch_norm_training, xb.batch_norm_inference, xb.batch_norm_grad
REFUSALS = [
    refused("offset", TRAINING, "f32[2,8] f32[8] f32[7]", "dimension_mismatch", "7", "8", "offset", "dimension 1"),
    refused("index", TRAINING, "f32[2,8] f32[8] f32[8]", "dimension_out_of_range", "feature_index", "2", "0..1",
            feature_index=2),
    refused("negative", TRAINING, "f32[2,8] f32[8] f32[8]", "dimension_out_of_range", "-3", feature_index=-3),
    refused("scalar", TRAINING, "f32[] f32[1] f32[1]", "dimension_out_of_range", "f32[]", feature_index=0),
    refused("type", TRAINING, "f32[2,8] s32[8] f32[8]", "element_type_mismatch", "s32", "f32", "scale"),
    refused("integers", TRAINING, "s32[2,8] s32[8] s32[8]", "element_type_unsupported", "s32"),
    refused("complex", TRAINING, "c64[2,8] c64[8] c64[8]", "element_type_unsupported", "c64"),
    refused("matrix", TRAINING, "f32[2,8] f32[1,8] f32[8]", "rank_mismatch", "scale", "f32[1,8]", "2", "1"),
    refused("epsilon", TRAINING, "f32[2,8] f32[8] f32[8]", "invalid_attribute", "epsilon", "-1", epsilon=-1),
    refused("epsilon-word", TRAINING, "f32[2,8] f32[8] f32[8]", "invalid_attribute", "epsilon", "small",
            epsilon="small"),
    refused("token", TRAINING, "token[] f32[8] f32[8]", "not_array", "token[]"),
    refused("mean", INFERENCE, "f32[2,8] f32[8] f32[8] f32[6] f32[8]", "dimension_mismatch", "mean", "6", "8"),
    refused("variance", INFERENCE, "f32[2,8] f32[8] f32[8] f32[8] f64[8]", "element_type_mismatch", "variance", "f64"),
    refused("rank", GRADIENTS, "f32[2,4,8] f32[4] f32[4] f32[4] f32[2,4]", "rank_mismatch", "3", "2", "grad_output"),
    refused("extents", GRADIENTS, "f32[2,8] f32[8] f32[8] f32[8] f32[3,8]", "dimension_mismatch", "2", "3"),
    refused("type", GRADIENTS, "f32[2,8] f32[8] f32[8] f32[8] f16[2,8]", "element_type_mismatch", "grad_output", "f16"),
]  # fmt: skip
