"""A solution of puzzle 8."""

import numpy as np

import xbuild as xb


def solution(x):
    kernel = xb.constant(x.builder, np.ones((1, 1, 3), np.float32))
    return xb.reshape(xb.conv(xb.reshape(x, [1, 1, 8]), kernel, [1], "VALID"), [6])
