"""How many pairs of a window position and an offset in the window meet an element of the base."""

from __future__ import annotations

import math

import numpy as np

from shape_inference.windows import WindowDimension


def meeting_positions(window: WindowDimension, extent: int, positions: int) -> int:
    """The number of pairs (position, offset) of one dimension at which the window covers an element, and no padding.

    Position p and offset k look at p * stride + k * window_dilation - padding_low, which is an element where it is a
    multiple of base_dilation within the base. The longer of the two ranges is counted in closed form.
    """
    ranges = sorted(((positions, window.stride), (window.size, window.window_dilation)))
    (few, pace), (many, stride) = ranges
    if not few or not extent:
        return 0
    offsets = np.arange(few, dtype=np.int64) * pace - window.padding_low
    return int(_hits(offsets, many, stride, window.base(extent), window.base_dilation).sum())


def _hits(offsets: np.ndarray, count: int, stride: int, end: int, dilation: int) -> np.ndarray:
    """For each offset the number of n < count with offset + n * stride in [0, end) and a multiple of dilation."""
    first = np.maximum(-(offsets // stride), 0)
    last = np.minimum((end - 1 - offsets) // stride, count - 1)
    common = math.gcd(stride, dilation)
    period = dilation // common
    inverse = pow(stride // common, -1, period) if period > 1 else 0
    place = (-offsets // common * inverse) % period
    hits = (last - place) // period - (first - 1 - place) // period
    return np.where((offsets % common == 0) & (last >= first), hits, 0)
