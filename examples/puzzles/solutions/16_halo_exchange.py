"""A solution of puzzle 16."""

import xbuild as xb


def solution(x):
    left = xb.collective_permute(x[2:3], [(0, 1), (1, 2), (2, 3)])
    right = xb.collective_permute(x[0:1], [(1, 0), (2, 1), (3, 2)])
    line = xb.concatenate([left, x, right], 0)
    return line[0:3] + line[1:4] + line[2:5]
