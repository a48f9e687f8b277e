"""A solution of puzzle 17."""

import xbuild as xb


def solution(x):
    return xb.all_to_all(x, 1, 0, 4)
