"""A solution of puzzle 9."""

import numpy as np

import xbuild as xb


def solution(x):
    zeros = xb.constant(x.builder, np.zeros(4, np.int32))
    ones = xb.constant(x.builder, np.ones(10, np.int32))
    return xb.scatter(
        zeros, x, ones, xb.add,
        update_window_dims=[], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1,
    )  # fmt: skip
