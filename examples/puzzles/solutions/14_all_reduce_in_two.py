"""A solution of puzzle 14."""

import xbuild as xb


def solution(x):
    return xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4), 0, 4)
