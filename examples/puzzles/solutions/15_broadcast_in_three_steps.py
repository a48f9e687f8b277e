"""A solution of puzzle 15."""

import numpy as np

import xbuild as xb


def solution(x):
    x = xb.select(xb.eq(xb.replica_id(x.builder), np.uint32(0)), x, 0)
    for have in (1, 2, 4):
        x = x + xb.collective_permute(x, [(replica, replica + have) for replica in range(have)])
    return x
