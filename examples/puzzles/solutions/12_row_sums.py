"""A solution of puzzle 12."""

import xbuild as xb


def solution(x):
    return xb.all_reduce(x, xb.add, [(0, 1, 2), (3, 4, 5)])
