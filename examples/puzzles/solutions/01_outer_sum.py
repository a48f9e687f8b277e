"""A solution of puzzle 1."""

import xbuild as xb


def solution(x, y):
    rows = xb.broadcast_in_dim(x, [3, 4], [0])
    columns = xb.broadcast_in_dim(y, [3, 4], [1])
    return xb.add(rows, columns)
