"""A solution of puzzle 4."""

import xbuild as xb


def solution(x):
    rows = xb.iota(x.builder, xb.s32[4, 4], 0)
    columns = xb.iota(x.builder, xb.s32[4, 4], 1)
    return xb.select(xb.ge(rows, columns), x, 0)
