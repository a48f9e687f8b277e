"""A solution of puzzle 3."""

import xbuild as xb


def solution(x):
    columns = xb.iota(x.builder, xb.s32[5, 4], 1)
    wanted = xb.broadcast_in_dim(x, [5, 4], [0])
    return xb.convert(xb.eq(columns, wanted), xb.s32)
