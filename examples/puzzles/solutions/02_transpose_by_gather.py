"""A solution of puzzle 2."""

import numpy as np

import xbuild as xb


def solution(x):
    starts = np.int32([[[i, j] for i in range(3)] for j in range(4)])
    return xb.gather(
        x, starts,
        offset_dims=[], collapsed_slice_dims=[0, 1], start_index_map=[0, 1], slice_sizes=[1, 1], index_vector_dim=2,
    )  # fmt: skip
